//! `dayflyd bench`: the product beside the bare engine, or beside what the host can do at best,
//! interleaved in one run.
//!
//! A program of its own, which `dayflyd` becomes when asked for a bench: what only measures is no
//! part of a daemon that is root. Start reading at [`run`], the frame of every bench.
#![forbid(unsafe_code)]

mod args;
mod arrivals;
mod bare;
mod burst;
mod burst_report;
mod create;
mod daemon;
mod engine_memory;
mod environment;
mod exec;
mod figures;
mod fork;
mod fork_report;
mod goal;
mod mark;
mod product;
mod run;
mod session;
mod wake;
mod write_speed;

use std::process::ExitCode;

use anyhow::Result;
use args::{Arguments, BenchCommand};
use clap::Parser;
use dayfly_installation::output::{failed, print, start_log};
use dayfly_installation::runtime;
use dayfly_types::LogFormat;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    start_log(LogFormat::Text);
    let outcome = runtime::block_on(measure(&arguments.command));
    outcome.map_or_else(
        |error| failed(LogFormat::Text, &error),
        |()| ExitCode::SUCCESS,
    )
}

async fn measure(command: &BenchCommand) -> Result<()> {
    match command {
        BenchCommand::Create(arguments) => {
            let report = create::run(arguments).await?;
            print(arguments.json, &report, create::render)?;
        }
        BenchCommand::Wake(arguments) => {
            let report = wake::run(arguments).await?;
            print(arguments.json, &report, wake::render)?;
        }
        BenchCommand::Exec(arguments) => {
            let report = exec::run(arguments).await?;
            print(arguments.json, &report, exec::render)?;
        }
        BenchCommand::Fork(arguments) => {
            let report = fork::run(arguments).await?;
            print(arguments.json, &report, fork_report::render)?;
        }
        BenchCommand::Burst(arguments) => {
            let report = burst::run(arguments).await?;
            print(arguments.json, &report, burst_report::render)?;
        }
    }
    Ok(())
}
