//! Files of the operator's that are read whole, and so must not be long.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Reads a file of at most so many bytes.
///
/// # Errors
/// Which file, and why.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let named = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(named)?;
    let mut bytes = Vec::new();
    let mut limited = file.take(bytes_max.saturating_add(1));
    let count = limited.read_to_end(&mut bytes).with_context(named)?;
    let is_short = u64::try_from(count).is_ok_and(|count| count <= bytes_max);
    ensure!(
        is_short,
        "{} has more than {bytes_max} bytes",
        path.display()
    );
    Ok(bytes)
}
