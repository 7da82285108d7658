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
mod completion;
mod dispatch;
mod durations;
mod env_vars;
mod error_text;
mod exec;
mod exit_status;
mod export;
mod failure;
mod files;
mod help_groups;
mod hint_words;
mod mcp;
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

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches as _;

use crate::args::{Args, GlobalArgs};
use crate::completion::values;
use crate::env_vars::Environment;
use crate::failure::CommandError;
use crate::printer::Printer;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let environment = Environment::read();
    if let Some(words) = values::words_in(&arguments) {
        let printer = Printer::new(&GlobalArgs::default(), &environment);
        return end(
            run(values::complete(&words, &environment, &printer)),
            &printer,
        );
    }
    let color = colours::chosen_in(arguments.into_iter());
    let matches = help_groups::command().color(color).get_matches();
    // Both come from the same definition.
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let printer = Printer::new(&args.global, &environment);
    end(
        run(dispatch::dispatch(args, &environment, &printer)),
        &printer,
    )
}

fn end(outcome: Result<u8, CommandError>, printer: &Printer) -> ExitCode {
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            printer.failure(&error);
            ExitCode::from(error.exit_status())
        }
    }
}

fn run(work: impl Future<Output = Result<u8, CommandError>>) -> Result<u8, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| CommandError::local("cannot start", source))?;
    let outcome = runtime.block_on(work);
    // A read of standard input, or a write to a pipe that nobody reads, may hold a thread for
    // ever; leaving must not wait for it.
    runtime.shutdown_background();
    outcome
}
