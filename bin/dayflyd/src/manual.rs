//! `dayflyd manual`: manual pages and completions, made from the arguments themselves. For packages.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Arguments;

/// Commands of administrators.
const SECTION: &str = "8";
const PROGRAM: &str = "dayflyd";

/// Writes one page for each command, and a script for each shell.
pub(crate) fn write(directory: &Path) -> Result<()> {
    let failed = || format!("cannot write into {}", directory.display());
    fs::create_dir_all(directory).with_context(failed)?;
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    pages(&command, directory).with_context(failed)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Arguments::command(), PROGRAM, directory)
            .with_context(failed)?;
    }
    Ok(())
}

fn pages(command: &clap::Command, directory: &Path) -> std::io::Result<()> {
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        pages(below, directory)?;
    }
    Man::new(command.clone())
        .section(SECTION)
        .generate_to(directory)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_shown_has_a_page_of_administrators() {
        let scratch = tempfile::tempdir().unwrap();
        write(scratch.path()).unwrap();
        for name in ["dayflyd.8", "dayflyd-doctor.8", "dayflyd-config-check.8"] {
            let text = fs::read_to_string(scratch.path().join(name)).unwrap();
            assert!(text.contains(".TH"), "{name}");
        }
        assert!(scratch.path().join("dayflyd.bash").exists());
        assert!(!scratch.path().join("dayflyd-guard-pause.8").exists());
    }
}
