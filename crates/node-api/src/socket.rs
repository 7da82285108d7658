//! Unix sockets at paths of any length.
//!
//! The kernel takes at most 107 bytes of path. A longer one is reached through a handle on its
//! directory, so that the process never has to change its working directory.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use tokio::net::{UnixListener, UnixStream};

/// The room in `sockaddr_un`, less the closing zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// A path that the kernel takes, and what must stay open while it does.
struct ShortPath {
    path: PathBuf,
    _directory: Option<OwnedFd>,
}

fn shorten(path: &Path) -> io::Result<ShortPath> {
    if path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
        return Ok(ShortPath {
            path: path.to_owned(),
            _directory: None,
        });
    }
    let parent = path.parent().unwrap_or_else(|| Path::new("/"));
    let name = path.file_name().unwrap_or_else(|| OsStr::new(""));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(parent, flags, Mode::empty())?;
    let short = Path::new("/proc/self/fd")
        .join(directory.as_raw_fd().to_string())
        .join(name);
    Ok(ShortPath {
        path: short,
        _directory: Some(directory),
    })
}

/// Listens at `path`, which must not exist.
///
/// # Errors
/// The kernel's, when the directory cannot be opened or the path is taken.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    UnixListener::bind(shorten(path)?.path.as_path())
}

/// Connects to the listener at `path`.
///
/// # Errors
/// The kernel's, when nobody listens there.
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    let short = shorten(path)?;
    UnixStream::connect(short.path.as_path()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_path_of_three_hundred_bytes_works_on_both_sides() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("d".repeat(150)).join("e".repeat(150));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("node.sock");
        let listener = listen(&path).unwrap();
        let (connected, accepted) = tokio::join!(connect(&path), listener.accept());
        assert!(connected.is_ok() && accepted.is_ok());
    }
}
