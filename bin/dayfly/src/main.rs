//! `dayfly`, the command line: a client of the public API and nothing else.
//!
//! Data goes to standard output and words to standard error. `args.rs` says what can be asked,
//! `settings.rs` where the server is, `dispatch.rs` what carries a command out, `exit_status.rs`
//! how it ends. Each part of the product has its commands and their arguments in a directory.
#![forbid(unsafe_code)]

mod ages;
mod args;
mod args_help;
mod colours;
mod dispatch;
mod durations;
mod env_vars;
mod error_text;
mod exec;
mod exit_status;
mod failure;
mod files;
mod help_groups;
mod hint_words;
mod moments;
mod network;
mod pairs;
mod ports;
mod printer;
mod sandbox;
mod server;
mod settings;
mod signals;
mod sizes;
mod snapshot;
mod table;
mod template;
mod tenancy;
mod text;
mod volume;

use std::process::ExitCode;

use clap::FromArgMatches as _;

use crate::args::Args;
use crate::env_vars::Environment;
use crate::failure::CommandError;
use crate::printer::Printer;

fn main() -> ExitCode {
    let environment = Environment::read();
    let color = colours::chosen_in(std::env::args_os().skip(1));
    let matches = help_groups::command().color(color).get_matches();
    // Both come from the same definition.
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
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
    let outcome = runtime.block_on(dispatch::dispatch(args, environment, printer));
    // A read of standard input, or a write to a pipe that nobody reads, may hold a thread for
    // ever; leaving must not wait for it.
    runtime.shutdown_background();
    outcome
}
