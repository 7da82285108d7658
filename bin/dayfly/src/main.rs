//! `dayfly`, the command line: a client of the public API and nothing else.
//!
//! Data goes to standard output and words to standard error. `args.rs` says what can be asked,
//! `settings.rs` where the server is, `commands/` what is done, `exit_status.rs` how it ends.
#![forbid(unsafe_code)]

mod ages;
mod args;
mod args_files;
mod args_help;
mod args_network;
mod args_ports;
mod args_state;
mod args_tenancy;
mod commands;
mod context_file;
mod copy_progress;
mod durations;
mod env_vars;
mod error_text;
mod exit_status;
mod failure;
mod guest_output;
mod limit_changes;
mod local_input;
mod local_tree;
mod log_output;
mod mounts;
mod pairs;
mod places;
mod prefixes;
mod printer;
mod progress;
mod settings;
mod signals;
mod sizes;
mod table;
mod terminal;
mod text;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Args;
use crate::env_vars::Environment;
use crate::failure::CommandError;
use crate::printer::Printer;

fn main() -> ExitCode {
    let args = Args::parse();
    let environment = Environment::read();
    let printer = Printer::new(&args.global, &environment);
    match run(args, &environment, &printer) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            printer.failure(&error);
            ExitCode::from(error.exit_status())
        }
    }
}

fn run(args: Args, environment: &Environment, printer: &Printer) -> Result<u8, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| CommandError::local("cannot start", source))?;
    let outcome = runtime.block_on(commands::dispatch(args, environment, printer));
    // A read of standard input, or a write to a pipe that nobody reads, may hold a thread for
    // ever; leaving must not wait for it.
    runtime.shutdown_background();
    outcome
}
