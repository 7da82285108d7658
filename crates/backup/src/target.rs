//! A directory that is being filled, and nothing outside of it.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use dayfly_host::files::{open_directory, sync};
use rustix::fs::{Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, symlinkat};

use crate::path::BackupPath;

/// Everything is made for its owner alone until it is finished.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// A fresh directory. Every step goes from it to a name below, and no link on the way is followed.
#[derive(Debug)]
pub struct BackupTarget {
    path: PathBuf,
    top: OwnedFd,
}

impl BackupTarget {
    /// Makes the directory, which must not exist. Its parent's path is taken with the links that
    /// are in it.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn make(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        let parent = parent.unwrap_or_else(|| Path::new(".")).canonicalize()?;
        let path = parent.join(name);
        DirBuilder::new().mode(DIRECTORY_MODE).create(&path)?;
        let top = open_directory(&path)?;
        Ok(Self { path, top })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, path: &str, flags: OFlags, mode: u32) -> io::Result<OwnedFd> {
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let mode = Mode::from_raw_mode(mode);
        Ok(openat2(
            &self.top,
            path,
            flags | OFlags::CLOEXEC,
            mode,
            resolve,
        )?)
    }

    fn parent<'a>(&self, path: &'a BackupPath) -> io::Result<(OwnedFd, &'a str)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        match path.as_str().rsplit_once('/') {
            Some((parent, name)) => Ok((self.open(parent, flags, 0)?, name)),
            None => Ok((self.open(".", flags, 0)?, path.as_str())),
        }
    }

    /// Makes a directory in one that is there.
    ///
    /// # Errors
    /// What the kernel said, also when something of that name is there.
    pub fn make_directory(&self, path: &BackupPath) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(mkdirat(&parent, name, Mode::from_raw_mode(DIRECTORY_MODE))?)
    }

    /// Makes a file in a directory that is there.
    ///
    /// # Errors
    /// What the kernel said, also when something of that name is there.
    pub fn make_file(&self, path: &BackupPath) -> io::Result<File> {
        let (parent, name) = self.parent(path)?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&parent, name, flags, Mode::from_raw_mode(FILE_MODE))?.into())
    }

    /// Opens a file that was made.
    pub(crate) fn open_file(&self, path: &BackupPath) -> io::Result<File> {
        Ok(self.open(path.as_str(), OFlags::RDONLY, 0)?.into())
    }

    /// Makes a symbolic link. Nothing should be made after it: this is the last step.
    ///
    /// # Errors
    /// What the kernel said, also when something of that name is there.
    pub fn make_link(&self, path: &BackupPath, target: &BackupPath) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(symlinkat(target.as_str(), &parent, name)?)
    }

    /// Gives a directory its mode and makes what it lists durable.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn finish_directory(&self, path: &BackupPath, mode: u32) -> io::Result<()> {
        let directory = self.open(path.as_str(), OFlags::RDONLY | OFlags::DIRECTORY, 0)?;
        finish(&File::from(directory), mode)
    }

    /// Makes what the top lists durable.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn sync(&self) -> io::Result<()> {
        sync(&self.top)
    }
}

/// Gives something that was made its mode, and makes it durable.
pub(crate) fn finish(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))?;
    sync(file)
}
