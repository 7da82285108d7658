//! The programs that are installed together.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// A program that is installed beside this one.
pub(crate) fn sibling_program(name: &str) -> Result<PathBuf> {
    let here = std::env::current_exe().context("cannot find this program")?;
    let path = here.with_file_name(name);
    if path.exists() {
        return Ok(path);
    }
    anyhow::bail!(
        "{name} is not beside dayflyd in {}",
        here.parent().unwrap_or(&here).display()
    )
}
