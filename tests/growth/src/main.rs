//! What a node and a control process cost as the number of their sandboxes grows.
//!
//! The real node over simulated machines, with its journal, captures and ledger on a real disk, and
//! the real control plane with its database, its HTTP and the real protocol between the two. Each
//! number of sandboxes is measured in a process of its own, so that its memory is its own.
//!
//! As many machines run as `--running` says, and the rest sleep, as on a host: slots are few, and
//! sleeping sandboxes are only records and captures on its disk. Start reading at [`round::measure`].
#![forbid(unsafe_code)]

mod api;
mod background;
mod control;
mod home;
mod hot;
mod process;
mod report;
mod round;
mod seed;
mod times;

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Parser;

use report::Measured;

/// Measures what grows with the number of sandboxes.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many sandboxes there are, in turn. The first is what the others are compared with.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1000, 50_000])]
    counts: Vec<u32>,
    /// How many of them run at most.
    #[arg(long, default_value_t = 1000)]
    running: u32,
    /// How often each call is made.
    #[arg(long, default_value_t = 300)]
    samples: u32,
    /// What a hot path may cost at most, in times of what it costs with the fewest sandboxes.
    #[arg(long, default_value_t = 1.3)]
    at_most: f64,
    /// Measures nothing but what callers wait for.
    #[arg(long)]
    hot_only: bool,
    /// Measures one number in this process and prints what came of it as JSON.
    #[arg(long, hide = true)]
    one: Option<u32>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(count) = arguments.one {
        let plan = round::Plan {
            count,
            running: arguments.running.min(count),
            samples: arguments.samples,
            hot_only: arguments.hot_only,
        };
        let measured = round::measure(plan)?;
        report::print(&serde_json::to_string(&measured)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut all = Vec::new();
    for count in &arguments.counts {
        all.push(in_a_process(*count, &arguments)?);
    }
    report::print(&report::table(&all)?)?;
    let grown = report::grown(&all, arguments.at_most);
    for line in &grown {
        report::print(&format!("Grows too much: {line}\n"))?;
    }
    Ok(ExitCode::from(u8::from(!grown.is_empty())))
}

fn in_a_process(count: u32, arguments: &Arguments) -> Result<Measured> {
    let done = Command::new(std::env::current_exe()?)
        .args(["--one", &count.to_string()])
        .args(["--running", &arguments.running.to_string()])
        .args(["--samples", &arguments.samples.to_string()])
        .args(arguments.hot_only.then_some("--hot-only"))
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(done.status.success(), "{count} sandboxes: {}", done.status);
    serde_json::from_slice(&done.stdout).with_context(|| format!("what {count} sandboxes cost"))
}
