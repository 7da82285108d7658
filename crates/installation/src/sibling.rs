//! The programs that are installed together.

use std::io;
use std::path::PathBuf;

/// Why a program of this installation cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum SiblingError {
    #[error("cannot find this program")]
    Here { source: io::Error },
    #[error(
        "{name} is not in {directory}, beside this program; install all programs of a release there"
    )]
    Missing { name: String, directory: PathBuf },
}

/// A program that is installed beside this one.
///
/// # Errors
/// [`SiblingError::Missing`] when it is not there.
pub fn sibling_program(name: &str) -> Result<PathBuf, SiblingError> {
    let here = std::env::current_exe().map_err(|source| SiblingError::Here { source })?;
    let path = here.with_file_name(name);
    if path.exists() {
        return Ok(path);
    }
    Err(SiblingError::Missing {
        name: name.to_owned(),
        directory: here.parent().unwrap_or(&here).to_owned(),
    })
}
