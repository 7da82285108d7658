//! `dayfly completions` and `dayfly manual`: what is made from the arguments themselves.

use std::fs;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Args;
use crate::completion::scripts;
use crate::exit_status;
use crate::failure::CommandError;
use crate::printer::Printer;

/// Prints the script that completes commands in a shell.
pub(crate) fn completions(shell: Shell, printer: &Printer) -> Result<u8, CommandError> {
    printer.data(&scripts::script(shell))?;
    Ok(exit_status::OK)
}

/// Writes one manual page for each command.
pub(crate) fn manual(directory: &Path) -> Result<u8, CommandError> {
    let what = format!("cannot write manual pages into {}", directory.display());
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Args::command(), directory))
        .map_err(|source| CommandError::local(what, source))?;
    Ok(exit_status::OK)
}
