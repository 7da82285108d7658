//! Copies of large files that keep their holes, and shared extents where the file system can.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, SeekFrom, copy_file_range, fallocate, ioctl_ficlone, seek};
use rustix::io::Errno;

/// The most that one step of a copy moves.
const STEP_BYTES: u64 = 8 << 20;
const BUFFER_BYTES: usize = 256 << 10;

/// How a copy came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyMethod {
    /// The two files share their blocks until one of them is written.
    Reflink,
    Copy {
        data_bytes: u64,
    },
}

/// Makes `destination` a copy of `source`, by reflink where the file system can. The destination
/// must not exist; it is not synced.
///
/// # Errors
/// See [`CopyError`]. A destination that was begun is removed.
pub fn reflink_or_copy(
    source: &Path,
    destination: &Path,
    mode: u32,
) -> Result<CopyMethod, CopyError> {
    let from = File::open(source).map_err(|error| CopyError::Open {
        path: source.to_owned(),
        source: error,
    })?;
    let to = File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(destination)
        .map_err(|error| CopyError::Create {
            path: destination.to_owned(),
            source: error,
        })?;
    let copied = match ioctl_ficlone(&to, &from) {
        Ok(()) => Ok(CopyMethod::Reflink),
        Err(_) => copy_sparse(&from, &to).map(|data_bytes| CopyMethod::Copy { data_bytes }),
    };
    copied.map_err(|error| {
        // The failure itself is what the caller needs to hear of.
        let _ = std::fs::remove_file(destination);
        CopyError::Transfer {
            path: destination.to_owned(),
            source: error,
        }
    })
}

/// Copies the data of `source` into the empty file `destination` at the same offsets and leaves
/// holes where it has holes. Answers how many bytes were data.
///
/// # Errors
/// What the kernel said; the destination is then incomplete.
pub fn copy_sparse(source: &File, destination: &File) -> io::Result<u64> {
    let length = source.metadata()?.len();
    destination.set_len(length)?;
    let mut position = 0;
    let mut copied = 0;
    while position < length {
        let start = match seek(source, SeekFrom::Data(position)) {
            // There is only a hole from here to the end.
            Err(Errno::NXIO) => break,
            other => other?,
        };
        let end = seek(source, SeekFrom::Hole(start))?.min(length);
        copied += copy_range(source, destination, start, end)?;
        position = end.max(start + 1);
    }
    Ok(copied)
}

/// Gives back the blocks of a range; it reads as zeroes afterwards.
///
/// # Errors
/// What the kernel said; `EOPNOTSUPP` when the file system cannot.
pub fn punch_hole(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(fallocate(file, flags, offset, length)?)
}

/// The bytes on disk that a file takes, holes not counted. A link is not followed.
///
/// # Errors
/// What the kernel said.
pub fn allocated_bytes(path: &Path) -> io::Result<u64> {
    // The unit of `st_blocks` is 512 bytes whatever the block size is.
    Ok(std::fs::symlink_metadata(path)?
        .blocks()
        .saturating_mul(512))
}

/// Whether files in this directory can share blocks, found out by trying.
///
/// # Errors
/// When the files for the trial cannot be made.
pub fn reflink_supported(directory: &Path) -> io::Result<bool> {
    let first = unnamed_file(directory)?;
    let second = unnamed_file(directory)?;
    first.write_all_at(&[1; 4096], 0)?;
    Ok(ioctl_ficlone(&second, &first).is_ok())
}

/// Why a file could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("cannot open {path}")]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot create {path}")]
    Create { path: PathBuf, source: io::Error },
    #[error("cannot fill {path}")]
    Transfer { path: PathBuf, source: io::Error },
}

/// A file that is gone when it is closed, whatever happens before.
fn unnamed_file(directory: &Path) -> io::Result<File> {
    let flags = i32::try_from(rustix::fs::OFlags::TMPFILE.bits()).map_err(io::Error::other)?;
    File::options()
        .write(true)
        .read(true)
        .custom_flags(flags)
        .mode(0o600)
        .open(directory)
}

fn copy_range(source: &File, destination: &File, start: u64, end: u64) -> io::Result<u64> {
    let (mut read_at, mut write_at) = (start, start);
    while read_at < end {
        let step = usize::try_from((end - read_at).min(STEP_BYTES)).map_err(io::Error::other)?;
        let before = read_at;
        match copy_file_range(
            source,
            Some(&mut read_at),
            destination,
            Some(&mut write_at),
            step,
        ) {
            // The source became shorter under us.
            Ok(0) => break,
            Ok(moved) => {
                // Some file systems advance only the count.
                read_at = before + moved as u64;
                write_at = read_at;
            }
            // Not between these two file systems.
            Err(Errno::XDEV | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
                read_at = copy_by_hand(source, destination, before, end)?;
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(read_at - start)
}

fn copy_by_hand(source: &File, destination: &File, start: u64, end: u64) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut position = start;
    while position < end {
        let wanted = usize::try_from(end - position)
            .unwrap_or(BUFFER_BYTES)
            .min(BUFFER_BYTES);
        let read = source.read_at(&mut buffer[..wanted], position)?;
        if read == 0 {
            break;
        }
        destination.write_all_at(&buffer[..read], position)?;
        position += read as u64;
    }
    Ok(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn sparse_file(path: &Path) -> File {
        let file = File::options()
            .create_new(true)
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        file.set_len(64 * MIB).unwrap();
        file.write_all_at(&[7; 8192], 0).unwrap();
        file.write_all_at(&[9; 8192], 40 * MIB).unwrap();
        file
    }

    #[test]
    fn a_copy_has_the_same_bytes_and_the_same_holes() {
        let directory = tempfile::tempdir().unwrap();
        let (source, copy) = (
            directory.path().join("source"),
            directory.path().join("copy"),
        );
        sparse_file(&source);
        let method = reflink_or_copy(&source, &copy, 0o600).unwrap();
        assert!(matches!(
            method,
            CopyMethod::Reflink | CopyMethod::Copy { data_bytes: 16384 }
        ));
        assert_eq!(
            std::fs::read(&source).unwrap(),
            std::fs::read(&copy).unwrap()
        );
        assert!(allocated_bytes(&copy).unwrap() < MIB);
        assert!(matches!(
            reflink_or_copy(&source, &copy, 0o600),
            Err(CopyError::Create { .. })
        ));
    }

    #[test]
    fn copying_by_hand_gives_the_same_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let source = sparse_file(&directory.path().join("source"));
        let copy = File::options()
            .create_new(true)
            .write(true)
            .open(directory.path().join("copy"))
            .unwrap();
        assert_eq!(copy_by_hand(&source, &copy, 0, 64 * MIB).unwrap(), 64 * MIB);
        let read = |name| std::fs::read(directory.path().join(name)).unwrap();
        assert_eq!(read("source"), read("copy"));
    }

    #[test]
    fn a_punched_hole_gives_blocks_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = File::options()
            .create_new(true)
            .write(true)
            .open(&path)
            .unwrap();
        file.write_all_at(&vec![1; 1 << 20], 0).unwrap();
        file.sync_all().unwrap();
        let before = allocated_bytes(&path).unwrap();
        punch_hole(&file, 0, MIB / 2).unwrap();
        assert!(allocated_bytes(&path).unwrap() < before);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), MIB);
    }

    #[test]
    fn a_trial_reflink_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        reflink_supported(directory.path()).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
