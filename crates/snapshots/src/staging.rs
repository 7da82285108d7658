//! Directories in which something is made before it gets its name.
//!
//! A directory is held by a lock for as long as its maker lives, so that what a crash left behind
//! can be told from work in progress, also that of another process.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dayfly_host::files::remove_tree;
use dayfly_types::TemplateName;
use dayfly_vmm::BasePart;
use rustix::fs::{FlockOperation, flock};

use crate::base_disk::{BaseFiles, lower_part, write_maps};
use crate::template::file_names;
use crate::{files, sparse};

/// The name of the directory that holds all staging directories. No template or image key starts
/// with a dot.
const PARENT: &str = ".staging";

/// Why a staging directory could not be made, filled or removed.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    #[error("cannot make a staging directory in {path}")]
    Make {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot put {name} into the staging directory")]
    Put {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot sweep stale staging directories in {path}")]
    Sweep {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// A new, empty, locked directory that is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct StagingDirectory {
    path: PathBuf,
    /// Held open for its lock.
    _lock: File,
    kept: bool,
}

impl StagingDirectory {
    /// Makes one under `root`, on the same file system as what it will become.
    pub(crate) fn make(root: &Path) -> Result<Self, StagingError> {
        let wrap = |source| StagingError::Make {
            path: root.to_owned(),
            source,
        };
        let parent = root.join(PARENT);
        std::fs::create_dir_all(&parent).map_err(wrap)?;
        // Removal follows no link, so the path must not lead through one.
        let parent = parent.canonicalize().map_err(wrap)?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| wrap(io::Error::other(error.to_string())))?;
        let path = parent.join(&blake3::hash(&random).to_hex()[..26]);
        // A sweep that looks between these two steps removes an empty directory; then the lock
        // fails to open and the caller sees an error, not a half-made template.
        std::fs::create_dir(&path).map_err(wrap)?;
        let lock = File::open(&path).map_err(wrap)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|e| wrap(e.into()))?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(wrap)?;
        Ok(Self {
            path,
            _lock: lock,
            kept: false,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Ends as a crash would: nothing is removed.
    #[cfg(test)]
    pub(crate) fn leave_behind(mut self) {
        self.kept = true;
    }

    /// Gives the directory its name. It is not removed any more.
    pub(crate) fn rename(mut self, to: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, to)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for StagingDirectory {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = remove_tree(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove a staging directory");
        }
    }
}

/// A template that is being made. Removed when it is dropped.
#[derive(Debug)]
pub struct Staging {
    name: TemplateName,
    directory: StagingDirectory,
}

impl Staging {
    pub(crate) fn make(root: &Path, name: &TemplateName) -> Result<Self, StagingError> {
        let directory = StagingDirectory::make(root)?;
        Ok(Self {
            name: name.clone(),
            directory,
        })
    }

    #[must_use]
    pub fn name(&self) -> &TemplateName {
        &self.name
    }

    #[cfg(test)]
    pub(crate) fn leave_behind(self) {
        self.directory.leave_behind();
    }

    pub(crate) fn rename(self, to: &Path) -> io::Result<()> {
        self.directory.rename(to)
    }

    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Where a file of this name is or will be.
    #[must_use]
    pub fn path(&self, file_name: &str) -> PathBuf {
        self.directory.path().join(file_name)
    }

    /// Moves a file in from a directory that an engine could write: links are refused.
    ///
    /// # Errors
    /// [`StagingError::Put`]; the source may then be gone.
    pub fn take(&self, from: &Path, file_name: &str) -> Result<(), StagingError> {
        let to = self.path(file_name);
        self.put(
            file_name,
            files::move_regular(from, &to).and_then(|()| files::seal(&to)),
        )
    }

    /// Moves guest memory in and gives its zero blocks back to the file system.
    ///
    /// # Errors
    /// As [`Staging::take`].
    pub fn take_memory(&self, from: &Path) -> Result<(), StagingError> {
        let name = file_names::MEMORY_IMAGE;
        let to = self.path(name);
        let dig = || {
            files::move_regular(from, &to)?;
            sparse::dig_holes(&File::options().read(true).write(true).open(&to)?)?;
            files::seal(&to)
        };
        self.put(name, dig())
    }

    /// Puts a sealed file in that also exists elsewhere, without a copy where that is possible.
    ///
    /// # Errors
    /// [`StagingError::Put`].
    pub fn link(&self, from: &Path, file_name: &str) -> Result<(), StagingError> {
        self.put(file_name, files::link_or_copy(from, &self.path(file_name)))
    }

    /// Puts the base disk of an image in, and maps beside its parts if it has several. Gives what an
    /// engine is told of them.
    ///
    /// # Errors
    /// [`StagingError::Put`].
    pub fn link_base(&self, base: &BaseFiles) -> Result<Vec<BasePart>, StagingError> {
        let name = file_names::BASE_IMAGE;
        self.link(&base.last, name)?;
        for (index, file) in base.lower.iter().enumerate() {
            self.link(file, &lower_part(index))?;
        }
        let written = write_maps(self.directory(), base.count());
        written.map_err(|source| StagingError::Put {
            name: name.to_owned(),
            source,
        })
    }

    fn put(&self, name: &str, result: io::Result<()>) -> Result<(), StagingError> {
        result.map_err(|source| StagingError::Put {
            name: name.to_owned(),
            source,
        })
    }
}

/// Moves a directory out of sight and removes it, so that a crash in between leaves nothing that
/// looks whole.
pub(crate) fn discard(root: &Path, directory: &Path) -> io::Result<()> {
    let staging = StagingDirectory::make(root).map_err(io::Error::other)?;
    // Renaming onto an empty directory replaces it.
    std::fs::rename(directory, staging.path())
}

/// Removes the staging directories that nobody holds.
pub(crate) fn sweep(root: &Path) -> Result<usize, StagingError> {
    let parent = root.join(PARENT);
    let wrap = |source| StagingError::Sweep {
        path: parent.clone(),
        source,
    };
    let entries = match std::fs::read_dir(&parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(wrap(error)),
    };
    let mut removed = 0;
    for entry in entries {
        let path = entry.map_err(wrap)?.path();
        if remove_if_stale(&path).map_err(wrap)? {
            removed += 1;
        }
    }
    Ok(removed)
}

fn remove_if_stale(path: &Path) -> io::Result<bool> {
    let is_directory = std::fs::symlink_metadata(path)?.is_dir();
    if !is_directory {
        std::fs::remove_file(path)?;
        return Ok(true);
    }
    let lock = File::open(path)?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(false);
    }
    remove_tree(path).map_err(io::Error::other)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweep_takes_what_a_crash_left_and_spares_work_in_progress() {
        let root = tempfile::tempdir().unwrap();
        let held = StagingDirectory::make(root.path()).unwrap();
        let left = root.path().join(PARENT).join("left-by-a-crash");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("memory.img"), b"x").unwrap();
        assert_eq!(sweep(root.path()).unwrap(), 1);
        assert!(!left.exists() && held.path().exists());
        let path = held.path().to_owned();
        drop(held);
        assert!(!path.exists());
    }

    #[test]
    fn sweep_of_nothing_is_fine() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(sweep(root.path()).unwrap(), 0);
    }
}
