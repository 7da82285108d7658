//! Which directories a watch looks at, and what it takes to keep up with a tree that changes.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use dayfly_guest_proto::{GuestError, GuestErrorCode};
use dayfly_types::limits::WATCH_DIRECTORIES_MAX;
use rustix::fs::inotify::{self, WatchFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::operate::failed;
use super::walk::is_kernel_view;

/// What is worth a line. Opening and reading is not.
const FLAGS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The watched directories by the kernel's number.
#[derive(Debug)]
pub(super) struct WatchTree {
    inotify: OwnedFd,
    paths: HashMap<i32, PathBuf>,
    top: i32,
    top_path: PathBuf,
    is_recursive: bool,
}

/// What became of a directory that should be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    Watched,
    /// It is gone, or nothing that this user can see.
    Nothing,
    /// There is no place for another watch.
    Full,
}

impl WatchTree {
    pub(super) fn open(path: &Path, is_recursive: bool) -> Result<Self, GuestError> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let failed = failed(&path);
        let inotify = inotify::init(flags).map_err(&failed)?;
        // Through a link at the top, as in a listing, and through none below.
        let top = inotify::add_watch(&inotify, &path, FLAGS).map_err(watch_failed(&failed))?;
        let mut tree = Self {
            inotify,
            paths: HashMap::from([(top, path.clone())]),
            top,
            top_path: path.clone(),
            is_recursive,
        };
        if tree.add_all() == Added::Full {
            let text = "the directory holds too many directories to watch";
            return Err(GuestError::new(GuestErrorCode::TooMany, text));
        }
        Ok(tree)
    }

    pub(super) const fn inotify(&self) -> &OwnedFd {
        &self.inotify
    }

    pub(super) fn is_top(&self, watch: i32) -> bool {
        watch == self.top
    }

    pub(super) fn top_path(&self) -> &Path {
        &self.top_path
    }

    pub(super) fn path(&self, watch: i32) -> Option<&Path> {
        self.paths.get(&watch).map(PathBuf::as_path)
    }

    /// The kernel has dropped this watch.
    pub(super) fn forget(&mut self, watch: i32) {
        self.paths.remove(&watch);
    }

    /// Watches everything below the top; also again, after events were lost.
    pub(super) fn add_all(&mut self) -> Added {
        let mut outcome = Added::Watched;
        let mut waiting = vec![self.top_path.clone()];
        while let Some(directory) = waiting.pop().filter(|_| self.is_recursive) {
            for (path, is_dir) in entries(&directory) {
                match is_dir.then(|| self.add(&path)) {
                    Some(Added::Watched) => waiting.push(path),
                    Some(Added::Full) => outcome = Added::Full,
                    Some(Added::Nothing) | None => {}
                }
            }
        }
        outcome
    }

    /// Watches one directory of the tree.
    pub(super) fn add(&mut self, path: &Path) -> Added {
        if !self.is_recursive {
            return Added::Nothing;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        if opened.is_ok_and(|directory| is_kernel_view(&directory)) {
            return Added::Nothing;
        }
        if self.paths.len() >= WATCH_DIRECTORIES_MAX {
            return Added::Full;
        }
        match inotify::add_watch(&self.inotify, path, FLAGS | WatchFlags::DONT_FOLLOW) {
            Ok(watch) => {
                self.paths.insert(watch, path.to_owned());
                Added::Watched
            }
            Err(Errno::NOSPC | Errno::NOMEM | Errno::NAMETOOLONG) => Added::Full,
            // Gone, something else by now, or not this user's to see.
            Err(_) => Added::Nothing,
        }
    }

    /// A directory has another path now, and so has everything in it.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        for path in self.paths.values_mut() {
            if let Ok(rest) = path.strip_prefix(from) {
                *path = if rest.as_os_str().is_empty() {
                    to.to_owned()
                } else {
                    to.join(rest)
                };
            }
        }
    }

    /// A directory has left the tree with everything in it.
    pub(super) fn remove(&mut self, gone: &Path) {
        let inotify = &self.inotify;
        self.paths.retain(|watch, path| {
            let stays = !path.starts_with(gone);
            if !stays {
                let _ = inotify::remove_watch(inotify, *watch);
            }
            stays
        });
    }
}

/// What is in a directory, and whether it is a directory itself. What cannot be read, the user
/// does not see change either.
pub(super) fn entries(directory: &Path) -> impl Iterator<Item = (PathBuf, bool)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        (entry.path(), is_dir)
    })
}

/// A lack of watches is no lack of disk.
fn watch_failed(failed: &impl Fn(Errno) -> GuestError) -> impl Fn(Errno) -> GuestError {
    move |error| {
        if error == Errno::NOSPC {
            let text = "the guest has no watch left for this user";
            return GuestError::new(GuestErrorCode::TooMany, text);
        }
        failed(error)
    }
}

/// The path of an entry that an event names.
pub(super) fn below(directory: &Path, name: &[u8]) -> PathBuf {
    directory.join(OsStr::from_bytes(name))
}
