//! Where the logs of execs that said much are kept.

use std::cell::OnceCell;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

const SUFFIX: &str = ".log";

/// A directory that only root can look into. It is found by its path once and held from then on:
/// whatever user code puts in its place later does not matter.
#[derive(Debug)]
pub(super) struct LogDirectory {
    path: PathBuf,
    held: OnceCell<OwnedFd>,
    /// How large a file can become before its disk is full.
    #[cfg(test)]
    pub(super) disk_bytes: Option<u64>,
}

impl LogDirectory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            held: OnceCell::new(),
            #[cfg(test)]
            disk_bytes: None,
        }
    }

    /// Makes the directory if it is not there and takes hold of it.
    pub(super) fn open(&self) -> io::Result<&OwnedFd> {
        if let Some(held) = self.held.get() {
            return Ok(held);
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)?;
        remove_stale(&self.path);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&self.path, flags, Mode::empty())?;
        Ok(self.held.get_or_init(|| directory))
    }

    /// Makes an empty file that only the agent can write to.
    pub(super) fn create(&self, name: &str) -> io::Result<OwnedFd> {
        #[cfg(test)]
        if let Some(bytes) = self.disk_bytes {
            return file_of_a_full_disk(bytes);
        }
        let directory = self.open()?;
        self.remove(name);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(rustix::fs::openat(directory, name, flags, mode)?)
    }

    pub(super) fn remove(&self, name: &str) {
        if let Some(directory) = self.held.get() {
            let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        }
    }
}

/// Removes what an agent of an earlier boot has left: its execs are gone, and nobody asks for
/// their logs.
fn remove_stale(path: &Path) {
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().ends_with(SUFFIX) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The name of the file for one stream of one exec.
pub(super) fn file_name(number: u64, stream: &str) -> String {
    format!("{number}-{stream}{SUFFIX}")
}

/// A file that takes bytes up to a size and then refuses more, as one on a full disk does.
#[cfg(test)]
fn file_of_a_full_disk(bytes: u64) -> io::Result<OwnedFd> {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    let file = memfd_create("disk", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes)?;
    fcntl_add_seals(&file, SealFlags::GROW)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn directory_is_made_for_root_alone_and_cleared_of_old_logs() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/execs");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("7-stdout.log"), "old").unwrap();
        fs::write(path.join("other"), "stays").unwrap();
        let directory = LogDirectory::new(path.clone());
        directory.create("1-stdout.log").unwrap();
        assert!(!path.join("7-stdout.log").exists());
        assert!(path.join("other").exists() && path.join("1-stdout.log").exists());
        directory.remove("1-stdout.log");
        assert!(!path.join("1-stdout.log").exists());

        let fresh = LogDirectory::new(parent.path().join("b/execs"));
        fresh.open().unwrap();
        let mode = fs::metadata(parent.path().join("b/execs")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn link_in_the_place_of_a_log_is_replaced_and_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("target");
        fs::write(&target, "precious").unwrap();
        let directory = LogDirectory::new(parent.path().join("execs"));
        directory.open().unwrap();
        let link = parent.path().join("execs/1-stdout.log");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let file = directory.create("1-stdout.log").unwrap();
        rustix::io::write(&file, b"log").unwrap();
        assert_eq!(fs::read_to_string(target).unwrap(), "precious");
    }
}
