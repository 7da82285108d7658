//! `dayflyd bench`, which is a program of its own: a daemon that is root carries nothing that only
//! measures.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};
use dayfly_installation::sibling_program;

/// The command that asks for it.
pub(crate) const COMMAND: &str = "bench";
const PROGRAM: &str = "dayfly-bench";

/// Becomes the bench: whoever waits for this process, or signals it, deals with the bench itself.
pub(crate) fn become_it(arguments: &[OsString]) -> Result<Infallible> {
    let program = sibling_program(PROGRAM).context("cannot run the bench")?;
    let error = Command::new(&program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}

/// Turns `help bench WHAT` into `bench help WHAT`: only the bench knows what there is.
pub(crate) fn with_its_help(mut given: Vec<OsString>) -> Vec<OsString> {
    if let [_, help, bench, ..] = given.as_mut_slice()
        && help == "help"
        && bench == COMMAND
    {
        std::mem::swap(help, bench);
    }
    given
}
