//! How fast this host takes bytes for a file: what no capture can be faster than.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use tokio::task::spawn_blocking;

use crate::figures::mebibytes;

const STEP_BYTES: usize = 1 << 20;

/// Writes so many bytes to a fresh file in the file system of `directory`, in steps of 1 MiB from
/// one warm buffer and without a sync, and answers how many MiB a second that was. The file has no
/// name and is gone afterwards.
pub(crate) async fn write_mib_per_second(directory: PathBuf, bytes: u64) -> Result<f64> {
    let work = move || write(&directory, bytes);
    spawn_blocking(work).await.context("the write broke off")?
}

fn write(directory: &std::path::Path, bytes: u64) -> Result<f64> {
    // Not zeros, which a file system might not store.
    let buffer = vec![0xA5_u8; STEP_BYTES];
    let mut file = tempfile::tempfile_in(directory).context("cannot make a file")?;
    let mut left = usize::try_from(bytes)?;
    let start = Instant::now();
    while left > 0 {
        let step = left.min(STEP_BYTES);
        file.write_all(&buffer[..step]).context("cannot write")?;
        left -= step;
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(mebibytes(bytes) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_of_a_measured_write() {
        let directory = tempfile::tempdir().unwrap();
        let speed = write(directory.path(), (3 << 20) + 5).unwrap();
        assert!(speed.is_finite() && speed > 0.0);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
