//! Network namespaces kept alive by a file, as `ip netns` does it.
//!
//! A fresh one has a loopback interface that is down and nothing else. It must not know what a
//! namespace is for.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::files::open_without_links;
use crate::mounts::own_mounts;
use crate::sys::{Namespace, unshare};

/// A file that holds, or was made to hold, a network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetnsEntry {
    pub path: PathBuf,
    /// False for what a crash left between making the file and mounting on it.
    pub is_mounted: bool,
}

/// Makes a network namespace and keeps it at `path`, which must not exist.
///
/// # Errors
/// See [`NetnsError`]. Nothing is left on any error.
pub fn create(path: &Path) -> Result<(), NetnsError> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).map_err(|error| NetnsError::File {
        path: path.to_owned(),
        source: error.into(),
    })?;
    let kept = open_without_links(path)
        .and_then(|file| in_fresh_namespace(move || keep_current(&file)).flatten());
    kept.map_err(|source| {
        // The failure itself is what the caller needs to hear of.
        let _ = fs::remove_file(path);
        NetnsError::Create {
            path: path.to_owned(),
            source,
        }
    })
}

/// Lets go of the namespace at `path` and removes the file. What is absent is no error. The
/// namespace ends when the last process in it has.
///
/// # Errors
/// [`NetnsError::Remove`] when the kernel refused.
pub fn remove(path: &Path) -> Result<(), NetnsError> {
    let failed = |source| NetnsError::Remove {
        path: path.to_owned(),
        source,
    };
    loop {
        match unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            // Mounts can be stacked; go on until the plain file shows.
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => break,
            Err(error) => return Err(failed(error.into())),
        }
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}

/// The namespaces kept in a directory. A directory that does not exist has none.
///
/// # Errors
/// When the directory or the mount table cannot be read.
pub fn list(directory: &Path) -> Result<Vec<NetnsEntry>, NetnsError> {
    let failed = |source| NetnsError::List {
        path: directory.to_owned(),
        source,
    };
    let names = match fs::read_dir(directory) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<Result<Vec<OsString>, _>>()
            .map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mounts = own_mounts().map_err(|error| failed(io::Error::other(error)))?;
    let mut entries: Vec<_> = names
        .into_iter()
        .map(|name| directory.join(name))
        .map(|path| {
            let is_mounted = mounts
                .iter()
                .any(|mount| mount.file_system == "nsfs" && mount.mount_point == path);
            NetnsEntry { path, is_mounted }
        })
        .collect();
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

/// Runs `work` on a thread of its own inside a network namespace that nobody else is in.
///
/// # Errors
/// When the thread or the namespace cannot be made, or `work` panicked.
pub fn in_fresh_namespace<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    on_own_thread(move || {
        unshare(&[Namespace::Network])?;
        Ok(work())
    })
}

/// Runs `work` on a thread of its own inside the network namespace kept at `path`.
///
/// # Errors
/// When the thread cannot be made or the namespace cannot be entered, or `work` panicked.
pub fn in_namespace<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let namespace = open_namespace(path)?;
    on_own_thread(move || {
        enter(&namespace)?;
        Ok(work())
    })
}

/// Opens a kept namespace for [`enter`].
///
/// # Errors
/// `ELOOP` for a link in the path, else what the kernel said.
pub fn open_namespace(path: &Path) -> io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat2(
        CWD,
        path,
        flags,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )?)
}

/// Moves the calling thread into a network namespace, for good.
///
/// # Errors
/// `EINVAL` when it is none, else what the kernel said.
pub fn enter(namespace: &OwnedFd) -> io::Result<()> {
    use std::os::fd::AsFd;
    Ok(move_into_link_name_space(
        namespace.as_fd(),
        Some(LinkNameSpaceType::Network),
    )?)
}

/// Why a network namespace could not be made, listed or removed.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    #[error("cannot make file {path} for a network namespace")]
    File { path: PathBuf, source: io::Error },
    #[error("cannot make a network namespace at {path}")]
    Create { path: PathBuf, source: io::Error },
    #[error("cannot remove the network namespace at {path}")]
    Remove { path: PathBuf, source: io::Error },
    #[error("cannot list the network namespaces in {path}")]
    List { path: PathBuf, source: io::Error },
}

/// A thread that changed its namespace must not return to a pool, so it ends with the work.
fn on_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let thread = thread::Builder::new()
        .name("netns".to_owned())
        .spawn(work)?;
    thread
        .join()
        .map_err(|_| io::Error::other("the thread in the namespace panicked"))?
}

/// Mounts the calling thread's network namespace on an open file, so that no path can change
/// between the check and the use.
fn keep_current(file: &OwnedFd) -> io::Result<()> {
    let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let namespace = open_tree(CWD, "/proc/thread-self/ns/net", clone)?;
    let by_descriptor =
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(&namespace, "", file, "", by_descriptor)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn a_namespace_is_made_listed_and_removed() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: network namespaces need root");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let path = root.join("one");
        create(&path).unwrap();
        let entry = NetnsEntry {
            path: path.clone(),
            is_mounted: true,
        };
        assert_eq!(list(&root).unwrap(), [entry]);
        let own = fs::metadata("/proc/self/ns/net").unwrap().ino();
        assert_ne!(fs::metadata(&path).unwrap().ino(), own);
        let interfaces = in_namespace(&path, || {
            fs::read_to_string("/proc/thread-self/net/dev")
                .unwrap()
                .lines()
                .count()
                - 2
        });
        assert_eq!(interfaces.unwrap(), 1, "only the loopback interface");
        assert_eq!(fs::metadata("/proc/self/ns/net").unwrap().ino(), own);
        assert!(matches!(create(&path), Err(NetnsError::File { .. })));
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(list(&root).unwrap(), []);
        assert_eq!(list(&root.join("absent")).unwrap(), []);
    }

    #[test]
    fn a_planted_link_is_neither_mounted_on_nor_entered() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: network namespaces need root");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::write(root.join("target"), "").unwrap();
        symlink("target", root.join("link")).unwrap();
        assert!(matches!(
            create(&root.join("link")),
            Err(NetnsError::File { .. })
        ));
        assert!(open_namespace(&root.join("link")).is_err());
        let error = in_namespace(&root.join("target"), || ()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
