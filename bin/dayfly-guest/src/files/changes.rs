//! What changed on the writable disk, from the layers of the root file system.
//!
//! The upper layer holds everything that was ever written, also while the template was made; the
//! kernel's times tell what is new. A file is added when the template's disk does not have it and
//! it was made since. A device of number zero is the overlay's mark for something removed. Kernels
//! share one such mark among many names, so its time counts only together with its directory's.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use dayfly_guest_proto::{ChannelId, GuestError, Response};
use dayfly_types::file::{ChangeKind, ChangedPath};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, StatxTimestamp, fgetxattr,
    openat2, statx,
};
use rustix::io::Errno;

use super::line::Line;
use super::stream::{ToHost, fail};
use super::walk::{Found, Walk};
use super::{guest_error, names};

/// Where the upper layer is on the writable disk.
const UPPER: &str = "upper";
/// Says that a directory hides the one below it.
const OPAQUE: &str = "trusted.overlay.opaque";
/// What the agent writes by itself, and where other file systems are mounted.
const NOT_THE_USERS: [&str; 8] = [
    "dev",
    "etc/hostname",
    "etc/hosts",
    "etc/machine-id",
    "proc",
    "run",
    "sys",
    "var/lib/dayfly",
];

/// What to look for, and the layers to look into.
#[derive(Debug)]
pub(crate) struct ChangedSince {
    /// The disk that holds the upper layer.
    pub(crate) writable: OwnedFd,
    /// The template's disk.
    pub(crate) base: OwnedFd,
    pub(crate) path: PathBuf,
    pub(crate) since_unix_nanos: u64,
}

impl ChangedSince {
    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.writable.as_fd(), self.base.as_fd()]
    }
}

/// Streams one line for each change to the agent.
pub(super) fn list(line: &Line<'_>, channel: ChannelId, wanted: &ChangedSince) -> io::Result<()> {
    let opened = match Changes::open(line, wanted) {
        Ok(opened) => opened,
        Err(error) => return line.answer(Err(error)),
    };
    line.answer(Ok(Response::Done))?;
    let outcome = match opened {
        None => ToHost::new(line).end(),
        Some((mut changes, top)) => changes.walk(top).and_then(|()| changes.out.end()),
    };
    match outcome {
        Ok(()) => Ok(()),
        Err(error) => fail(line, channel, guest_error("cannot list changes", &error)),
    }
}

struct Changes<'a> {
    out: ToHost<'a>,
    base: BorrowedFd<'a>,
    /// The wanted directory, relative to the root.
    inside: Vec<u8>,
    since: i128,
}

impl<'a> Changes<'a> {
    /// Finds the wanted directory in the upper layer; `None` when nothing was written there.
    fn open(
        line: &'a Line<'a>,
        wanted: &'a ChangedSince,
    ) -> Result<Option<(Self, OwnedFd)>, GuestError> {
        // Links on the way are the guest's own, and are followed as the guest sees them.
        let path = fs::canonicalize(&wanted.path).unwrap_or_else(|_| wanted.path.clone());
        let inside = relative(&path);
        let mut upper = PathBuf::from(UPPER);
        upper.push(std::ffi::OsStr::from_bytes(&inside));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = match openat2(&wanted.writable, &upper, flags, Mode::empty(), BENEATH) {
            Ok(top) => top,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(error) => {
                return Err(guest_error(&names::path_text(&wanted.path), &error.into()));
            }
        };
        let changes = Self {
            out: ToHost::new(line),
            base: wanted.base.as_fd(),
            inside,
            since: i128::from(wanted.since_unix_nanos),
        };
        Ok(Some((changes, top)))
    }

    fn walk(&mut self, top: OwnedFd) -> io::Result<()> {
        let mut walk = Walk::new(top)?;
        while let Some(found) = walk.next()? {
            let path = join(&self.inside, walk.path());
            if is_not_the_users(&path) {
                continue;
            }
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
            let times = match statx(walk.parent()?, found.name.as_c_str(), flags, mask) {
                Ok(times) => times,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            if found.kind() == FileType::Directory {
                self.directory(&walk, &found, &path, &times)?;
                walk.enter(&found)?;
            } else {
                self.entry(&walk, &found, &path, &times)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, walk: &Walk, found: &Found, path: &[u8], times: &Statx) -> io::Result<()> {
        if nanos(times.stx_ctime) < self.since {
            return Ok(());
        }
        let is_removal = found.kind() == FileType::CharacterDevice && found.stat.st_rdev == 0;
        if !is_removal {
            let kind = self.kind(path, times);
            return self.tell(path, kind, found);
        }
        let directory = rustix::fs::fstat(walk.parent()?)?;
        let changed =
            i128::from(directory.st_ctime) * 1_000_000_000 + i128::from(directory.st_ctime_nsec);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(removed) = openat2(self.base, path, flags, Mode::empty(), BENEATH) else {
            return Ok(());
        };
        if changed < self.since {
            return Ok(());
        }
        let found = Found {
            name: found.name.clone(),
            stat: rustix::fs::fstat(&removed)?,
        };
        self.tell(path, ChangeKind::Removed, &found)
    }

    /// A directory is in the upper layer when something below it changed; it counts itself only
    /// when it is new, or when it took the place of another.
    fn directory(
        &mut self,
        walk: &Walk,
        found: &Found,
        path: &[u8],
        times: &Statx,
    ) -> io::Result<()> {
        if self.is_older(times) {
            return Ok(());
        }
        if !self.base_has(path) {
            return self.tell(path, ChangeKind::Added, found);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let name = found.name.as_c_str();
        let Ok(upper) = openat2(walk.parent()?, name, flags, Mode::empty(), BENEATH) else {
            return Ok(());
        };
        let mut value = [0; 1];
        let is_opaque = fgetxattr(&upper, OPAQUE, &mut value).is_ok() && value == *b"y";
        if !is_opaque {
            return Ok(());
        }
        self.tell(path, ChangeKind::Modified, found)?;
        let Ok(below) = openat2(self.base, path, flags, Mode::empty(), BENEATH) else {
            return Ok(());
        };
        self.hidden(path, &upper, below)
    }

    /// What the template has in a directory that hides it.
    fn hidden(&mut self, path: &[u8], upper: &OwnedFd, below: OwnedFd) -> io::Result<()> {
        let mut walk = Walk::new(below)?;
        while let Some(found) = walk.next()? {
            if !is_there(upper.as_fd(), found.name.as_bytes()) {
                self.tell(&join(path, walk.path()), ChangeKind::Removed, &found)?;
            }
        }
        Ok(())
    }

    fn kind(&self, path: &[u8], times: &Statx) -> ChangeKind {
        if self.is_older(times) || self.base_has(path) {
            ChangeKind::Modified
        } else {
            ChangeKind::Added
        }
    }

    /// Whether it was made before. A file system that does not say when makes everything new.
    fn is_older(&self, times: &Statx) -> bool {
        let has_birth = StatxFlags::from_bits_retain(times.stx_mask).contains(StatxFlags::BTIME);
        has_birth && nanos(times.stx_btime) < self.since
    }

    fn base_has(&self, path: &[u8]) -> bool {
        is_there(self.base, path)
    }

    fn tell(&mut self, path: &[u8], kind: ChangeKind, found: &Found) -> io::Result<()> {
        let is_removed = kind == ChangeKind::Removed;
        let size = u64::try_from(found.stat.st_size).unwrap_or(0);
        let changed = ChangedPath {
            path: format!("/{}", names::text(path)),
            kind,
            is_dir: found.kind() == FileType::Directory,
            size: if is_removed { 0 } else { size },
            mtime: found.stat.st_mtime,
        };
        serde_json::to_writer(&mut self.out, &changed)?;
        self.out.write_all(b"\n")
    }
}

/// Never out of a layer and never through its links, which are those of another root.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

fn is_there(layer: BorrowedFd<'_>, path: &[u8]) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(layer, path, flags, Mode::empty(), BENEATH).is_ok()
}

fn nanos(time: StatxTimestamp) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

/// The path below the root, without `.` and `..`.
fn relative(path: &Path) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => parts.push(name.as_bytes()),
            Component::ParentDir => {
                parts.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    parts.join(&b'/')
}

fn join(above: &[u8], below: &[u8]) -> Vec<u8> {
    if above.is_empty() {
        return below.to_vec();
    }
    [above, below].join(&b'/')
}

fn is_not_the_users(path: &[u8]) -> bool {
    NOT_THE_USERS.iter().any(|place| {
        let rest = path.strip_prefix(place.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_the_root() {
        assert_eq!(relative(Path::new("/a/./b/../c")), b"a/c");
        assert_eq!(relative(Path::new("/")), b"");
        assert_eq!(join(b"", b"a"), b"a");
        assert_eq!(join(b"a", b"b/c"), b"a/b/c");
    }

    #[test]
    fn the_agents_own_files_do_not_count() {
        for path in ["etc/hosts", "run", "var/lib/dayfly/x"] {
            assert!(is_not_the_users(path.as_bytes()), "{path}");
        }
        for path in ["etc/hosts2", "etc", "runs", "var/lib"] {
            assert!(!is_not_the_users(path.as_bytes()), "{path}");
        }
    }
}
