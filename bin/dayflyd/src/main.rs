//! The daemon: parses, wires and runs. What it wires is in `crates/`.
//!
//! Start reading at [`supervise`] (role `all`), then [`role_node`] and [`role_control`].
#![forbid(unsafe_code)]

mod admin_key;
mod args;
mod bake_display;
mod bench;
mod crash_point;
mod doctor;
mod egress;
mod engine;
mod hand_over;
mod operator;
mod pause_guard;
mod pulse;
mod recipe_check;
mod role_control;
mod role_node;
mod settings;
mod settings_file;
mod slow_sync;
mod stop;
mod supervise;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use args::{Arguments, Command, ConfigCommand, DatabaseCommand, RecipeCommand, Role, RunArguments};
use clap::Parser;
use dayfly_host::privileges::forbid_core_files;
use dayfly_installation::output::{EXIT_FAILED, failed, print, start_log};
use dayfly_installation::runtime::block_on;
use rustix::process::{
    Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
};

/// `doctor` found something that keeps this host from working.
const EXIT_UNFIT: u8 = 1;

fn main() -> ExitCode {
    let given = bench::with_its_help(std::env::args_os().collect());
    let arguments = Arguments::parse_from(&given);
    start_log();
    let outcome = match &arguments.command {
        None => run_role(&given, &arguments.run).map(|()| ExitCode::SUCCESS),
        Some(command) => run_command(command),
    };
    outcome.unwrap_or_else(|error| failed(&error))
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

fn run_command(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Doctor(arguments) => block_on(async {
            let report = doctor::run(arguments).await?;
            print(arguments.json, &report, doctor::text::render)?;
            Ok(code_of(report.fit, EXIT_UNFIT))
        }),
        Command::Bench(arguments) => match bench::become_it(&arguments.given)? {},
        Command::Stop(arguments) => block_on(async {
            let stopped = stop::run(arguments).await?;
            print(arguments.json, &stopped, stop::render)?;
            Ok(code_of(stopped.failed.is_empty(), EXIT_FAILED))
        }),
        Command::Database(DatabaseCommand::Accept(arguments)) => block_on(async {
            let decided = operator::accept_database(arguments).await?;
            print(arguments.json, &decided, operator::render)?;
            Ok(ExitCode::SUCCESS)
        }),
        Command::Forget(arguments) => block_on(async {
            let decided = operator::forget(arguments).await?;
            print(arguments.json, &decided, operator::render)?;
            Ok(ExitCode::SUCCESS)
        }),
        Command::Config(ConfigCommand::Check(arguments)) => {
            let mut given = vec![OsString::from(env!("CARGO_PKG_NAME"))];
            if let Some(file) = &arguments.config {
                given.extend(["--config".into(), file.into()]);
            }
            print(
                arguments.json,
                &settings::resolve(&given)?.report,
                settings::render,
            )?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Recipe(RecipeCommand::Check(arguments)) => {
            let report = recipe_check::run(&arguments.files);
            print(arguments.json, &report, recipe_check::render)?;
            Ok(code_of(report.is_well(), EXIT_UNFIT))
        }
        Command::GuardPause(arguments) => {
            pause_guard::run(arguments)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn code_of(is_well: bool, otherwise: u8) -> ExitCode {
    ExitCode::from(if is_well { 0 } else { otherwise })
}
