//! A walk over a tree that follows no link and holds one descriptor for each level.

use std::ffi::CString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstatfs, openat, statat};
use rustix::io::Errno;

/// Deeper trees are not walked: each level holds a descriptor.
const LEVELS_MAX: usize = 512;

/// File systems that show the kernel and hold no files: `/proc`, `/sys` and what is in them.
const KERNEL_VIEWS: [i64; 10] = [
    0x9FA0,      // proc
    0x6265_6572, // sysfs
    0x6367_7270, // cgroup2
    0x0027_E0EB, // cgroup
    0x1CD1,      // devpts
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xCAFE_4A11, // bpf
    0x1980_0202, // mqueue
];

/// A tree, entry by entry, a directory before what is in it.
#[derive(Debug)]
pub(super) struct Walk {
    levels: Vec<Level>,
    /// Relative to the top, without a slash at either end.
    path: Vec<u8>,
}

#[derive(Debug)]
struct Level {
    directory: Dir,
    /// How much of the path names this directory.
    path_bytes: usize,
}

/// What was found, as `lstat` says. The walk knows its path.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: CString,
    pub(super) stat: Stat,
}

impl Found {
    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }
}

impl Walk {
    pub(super) fn new(top: OwnedFd) -> io::Result<Self> {
        let level = Level {
            directory: Dir::new(top)?,
            path_bytes: 0,
        };
        Ok(Self {
            levels: vec![level],
            path: Vec::new(),
        })
    }

    /// The path of what was found last.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    /// The directory that holds what was found last.
    pub(super) fn parent(&self) -> io::Result<BorrowedFd<'_>> {
        let level = self.levels.last();
        let level = level.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(level.directory.fd()?)
    }

    /// The next entry. What vanishes before it can be looked at is left out.
    pub(super) fn next(&mut self) -> io::Result<Option<Found>> {
        while let Some(level) = self.levels.last_mut() {
            self.path.truncate(level.path_bytes);
            let Some(entry) = level.directory.read() else {
                self.levels.pop();
                continue;
            };
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let directory = level.directory.fd()?;
            let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            if !self.path.is_empty() {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(name.to_bytes());
            let name = name.to_owned();
            return Ok(Some(Found { name, stat }));
        }
        Ok(None)
    }

    /// Goes on with what is in the directory that was found last.
    pub(super) fn enter(&mut self, found: &Found) -> io::Result<()> {
        if self.levels.len() >= LEVELS_MAX {
            let text = "the tree has too many levels";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = found.name.as_c_str();
        let directory = match openat(self.parent()?, name, flags, Mode::empty()) {
            Ok(directory) => directory,
            // It is gone, or something else by now.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if is_kernel_view(&directory) {
            return Ok(());
        }
        self.levels.push(Level {
            directory: Dir::new(directory)?,
            path_bytes: self.path.len(),
        });
        Ok(())
    }
}

/// Whether files here are only a view of the kernel, which may be endless.
pub(super) fn is_kernel_view(directory: &OwnedFd) -> bool {
    fstatfs(directory).is_ok_and(|about| KERNEL_VIEWS.contains(&about.f_type))
}
