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
mod operator;
mod pause_guard;
mod pulse;
mod role_control;
mod role_node;
mod slow_sync;
mod stop;
mod supervise;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use args::{Arguments, BenchCommand, Command, DatabaseCommand, Role, RunArguments};
use clap::Parser;
use dayfly_host::privileges::forbid_core_files;
use dayfly_installation::output::{EXIT_FAILED, failed, print, start_log};
use dayfly_installation::runtime;
use rustix::process::{
    Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
};

/// `doctor` found something that keeps this host from working.
const EXIT_UNFIT: u8 = 1;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    start_log();
    let outcome = match &arguments.command {
        None => run_role(&arguments.run).map(|()| ExitCode::SUCCESS),
        Some(command) => run_command(command),
    };
    outcome.unwrap_or_else(|error| failed(&error))
}

fn run_role(arguments: &RunArguments) -> Result<()> {
    // Memory of these processes holds keys, and what users send and receive.
    forbid_core_files().context("cannot switch core files off")?;
    raise_open_files();
    match arguments.role {
        Role::All => runtime::block_on(supervise::run(arguments.clone())),
        Role::Control => role_control::run(arguments),
        Role::Node => {
            end_with_parent(arguments)?;
            role_node::run(arguments)
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
    if let Command::GuardPause(arguments) = command {
        return pause_guard::run(arguments).map(|()| ExitCode::SUCCESS);
    }
    let mut code = ExitCode::SUCCESS;
    runtime::block_on(async {
        let printed = match command {
            Command::Doctor(arguments) => {
                let report = doctor::run(arguments).await?;
                if !report.fit {
                    code = ExitCode::from(EXIT_UNFIT);
                }
                print(arguments.json, &report, doctor::text::render)
            }
            Command::Bench(BenchCommand::Create(arguments)) => {
                let report = bench::create::run(arguments).await?;
                print(arguments.json, &report, bench::create::render)
            }
            Command::Bench(BenchCommand::Wake(arguments)) => {
                let report = bench::wake::run(arguments).await?;
                print(arguments.json, &report, bench::wake::render)
            }
            Command::Bench(BenchCommand::Exec(arguments)) => {
                let report = bench::exec::run(arguments).await?;
                print(arguments.json, &report, bench::exec::render)
            }
            Command::Bench(BenchCommand::Fork(arguments)) => {
                let report = bench::fork::run(arguments).await?;
                print(arguments.json, &report, bench::fork_report::render)
            }
            Command::Stop(arguments) => {
                let stopped = stop::run(arguments).await?;
                if !stopped.failed.is_empty() {
                    code = ExitCode::from(EXIT_FAILED);
                }
                print(arguments.json, &stopped, stop::render)
            }
            Command::Database(DatabaseCommand::Accept(arguments)) => {
                let decided = operator::accept_database(arguments).await?;
                print(arguments.json, &decided, operator::render)
            }
            Command::Forget(arguments) => {
                let decided = operator::forget(arguments).await?;
                print(arguments.json, &decided, operator::render)
            }
            Command::GuardPause(_) => Ok(()),
        };
        Ok::<_, anyhow::Error>(printed?)
    })?;
    Ok(code)
}
