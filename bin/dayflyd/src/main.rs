//! The daemon: parses, wires and runs. What it wires is in `crates/`.
//!
//! Start reading at [`supervise`] (role `all`), then [`role_node`] and [`role_control`].
#![forbid(unsafe_code)]

mod admin_key;
mod args;
mod as_text;
mod backup;
mod bake_display;
mod bench;
mod bounded_file;
mod commands;
mod container_images;
mod crash_point;
mod disk_pace;
mod doctor;
mod egress;
mod egress_proxy;
mod egress_uplink;
mod engine;
mod engine_builds;
mod engines;
mod hand_over;
mod image;
mod internal_network;
mod local_access;
mod manual;
mod operator;
mod pause_guard;
mod pulse;
mod purge;
mod recipe_check;
mod registries;
mod restore;
mod role_control;
mod role_node;
mod settings;
mod settings_file;
mod sharing;
mod sign_in;
mod slow_sync;
mod stop;
mod supervise;
mod tls;
mod traces;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use args::{Arguments, Role, RunArguments};
use clap::Parser;
use dayfly_host::privileges::forbid_core_files;
use dayfly_installation::output::{failed, start_log};
use dayfly_installation::runtime::block_on;
use dayfly_types::LogFormat;
use rustix::process::{
    Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
};

fn main() -> ExitCode {
    let given = bench::with_its_help(std::env::args_os().collect());
    let arguments = Arguments::parse_from(&given);
    let format = log_format(&given, &arguments);
    start_log(format);
    let outcome = match &arguments.command {
        None => run_role(&given, &arguments.run).map(|()| ExitCode::SUCCESS),
        Some(command) => commands::run(command),
    };
    outcome.unwrap_or_else(|error| failed(format, &error))
}

/// How this process writes its log. The daemon looks into the settings file for it before anything
/// else; the processes that it starts get it as a flag, and commands are for people.
fn log_format(given: &[OsString], arguments: &Arguments) -> LogFormat {
    let said = arguments.run.log_format;
    match (&arguments.command, arguments.run.role) {
        (Some(_), _) => LogFormat::Text,
        (None, Role::Control | Role::Node) => said,
        // What is wrong with the settings is told when they are read in earnest.
        (None, Role::All) => {
            settings::resolve(given).map_or(said, |found| found.arguments.log_format)
        }
    }
}

fn run_role(given: &[OsString], arguments: &RunArguments) -> Result<()> {
    // Memory of these processes holds keys, and what users send and receive.
    forbid_core_files().context("cannot switch core files off")?;
    raise_open_files();
    match arguments.role {
        Role::All => block_on(supervise::run(given)),
        Role::Control => role_control::run(arguments),
        Role::Node => {
            end_with_parent(arguments)?;
            role_node::run()
        }
    }
}

/// A sandbox takes a handful of descriptors and an exec two more; the usual limit of 1024 would be
/// the first thing to run out. A refusal leaves the limit as it is.
fn raise_open_files() {
    let most = getrlimit(Resource::Nofile).maximum;
    let wanted = Rlimit {
        current: most,
        maximum: most,
    };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

/// A supervisor that was killed must not leave two daemons behind that nobody restarts. The kernel
/// forgets this wish when a process changes its user, so it comes after that.
pub(crate) fn end_with_parent(arguments: &RunArguments) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("cannot follow the parent")?;
    // One that ended before the wish was made sends no signal.
    let parent = getppid().map(|pid| pid.as_raw_nonzero().get());
    let is_there = arguments.supervisor.is_none() || parent == arguments.supervisor;
    ensure!(is_there, "the supervisor has ended");
    Ok(())
}
