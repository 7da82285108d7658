//! The empty writable disk that every bake begins with.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dayfly_types::DiskMib;

use crate::program::{Program, ProgramError};

/// The file system's label, for people who look into a guest.
const LABEL: &str = "dayfly";
const LIMIT: Duration = Duration::from_secs(120);

/// Why the disk was not made.
#[derive(Debug, thiserror::Error)]
pub enum WritableDiskError {
    #[error("cannot make the file {path}")]
    Make {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot make a file system")]
    Format(#[source] ProgramError),
}

/// Makes a new sparse file with an empty ext4 file system of the given size.
///
/// # Errors
/// [`WritableDiskError`].
pub async fn make_writable_disk(path: &Path, size: DiskMib) -> Result<(), WritableDiskError> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path);
    file.and_then(|file| file.set_len(size.bytes()))
        .map_err(|source| WritableDiskError::Make {
            path: path.to_owned(),
            source,
        })?;
    Program::new("mkfs.ext4", LIMIT)
        // No blocks are reserved for root: the guest's disk has one user.
        .arguments(["-q", "-F", "-m", "0", "-L", LABEL])
        // The file is all zeros, and discarding it first tells mkfs so. It then neither writes
        // inode tables nor leaves them for the guest's kernel to clear in every sandbox.
        .arguments(["-E", "lazy_itable_init=1,lazy_journal_init=1,discard"])
        .argument(path)
        .run_quietly()
        .await
        .map_err(WritableDiskError::Format)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[tokio::test]
    async fn disk_is_sparse_and_has_its_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk");
        make_writable_disk(&path, DiskMib::new(4096).unwrap())
            .await
            .unwrap();
        let metadata = path.metadata().unwrap();
        assert_eq!(metadata.len(), 4096 << 20);
        assert!(
            metadata.blocks() * 512 < 64 << 20,
            "{} blocks",
            metadata.blocks()
        );
    }
}
