//! Where a volume goes: a directory that no link leads to.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use dayfly_guest_proto::{GuestError, GuestErrorCode};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

/// What the kernel and the agent keep there must stay visible.
const FORBIDDEN: [&str; 4] = ["dev", "proc", "run", "sys"];
const PATH_BYTES_MAX: usize = 4096;

/// An absolute path without a detour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    path: String,
}

impl Place {
    pub(super) fn parse(path: &str) -> Result<Self, GuestError> {
        let invalid = |text: &str| GuestError::new(GuestErrorCode::Invalid, text);
        if !path.starts_with('/') || path.len() > PATH_BYTES_MAX || path.contains('\0') {
            return Err(invalid("the path of a volume is not an absolute path"));
        }
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        if parts.is_empty() || parts.iter().any(|part| matches!(*part, "." | "..")) {
            return Err(invalid(
                "the path of a volume is the root or has dots in it",
            ));
        }
        if FORBIDDEN.contains(&parts[0]) {
            return Err(invalid("the path of a volume belongs to the system"));
        }
        Ok(Self {
            path: format!("/{}", parts.join("/")),
        })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.path
    }

    pub(super) fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// Makes the directory and those above it, where they are missing.
    pub(super) fn make(&self) -> io::Result<OwnedFd> {
        self.walk(Path::new("/"), true)
    }

    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        self.walk(Path::new("/"), false)
    }

    fn walk(&self, from: &Path, is_made: bool) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut directory = rustix::fs::openat(CWD, from, flags, Mode::empty())?;
        for part in self.path.split('/').filter(|part| !part.is_empty()) {
            let open = || rustix::fs::openat(&directory, part, flags, Mode::empty());
            let opened = match open() {
                Err(Errno::NOENT) if is_made => {
                    match rustix::fs::mkdirat(&directory, part, Mode::from_raw_mode(0o755)) {
                        Ok(()) | Err(Errno::EXIST) => open(),
                        Err(error) => Err(error),
                    }
                }
                opened => opened,
            };
            // A link is no directory, to whatever directory it leads.
            directory = opened?;
        }
        Ok(directory)
    }
}

/// A path that leads to an open directory and nowhere else.
pub(super) fn descriptor_path(directory: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn path_is_absolute_and_goes_straight_to_a_place_of_the_users() {
        assert_eq!(Place::parse("/volumes//a/").unwrap().as_str(), "/volumes/a");
        for bad in [
            "", "/", "//", "a", "a/b", "/a/../b", "/a/./b", "/proc/a", "/run", "/dev/shm", "/a\0b",
        ] {
            assert!(Place::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn directories_are_made_and_links_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let walk = |path: &str, is_made| Place::parse(path).unwrap().walk(root, is_made);
        assert!(walk("/a/b", false).is_err(), "nothing is made by looking");
        walk("/a/b", true).unwrap();
        walk("/a/b", true).unwrap();
        walk("/a/b", false).unwrap();
        assert!(root.join("a/b").is_dir());
        symlink(root.join("a"), root.join("link")).unwrap();
        for path in ["/link", "/link/b", "/link/new"] {
            let refused = walk(path, true).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::NotADirectory, "{path}");
        }
        assert!(!root.join("a/new").exists());
        fs::write(root.join("file"), "").unwrap();
        assert!(walk("/file", true).is_err());
    }
}
