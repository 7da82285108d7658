//! A place beside the data in which second names hold what is to be copied.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use dayfly_host::files::remove_tree;
use dayfly_installation::DataDirectory;
use rustix::fs::{FlockOperation, flock};

const STAGE: &str = "backup-stage";
const LOCK: &str = "backup.lock";

/// The place. One backup of a directory has it at a time; it is gone when that ends, and what a
/// backup that was killed has left is removed by the next.
#[derive(Debug)]
pub(super) struct Stage {
    path: PathBuf,
    _lock: File,
}

impl Stage {
    pub(super) fn begin(directory: &DataDirectory) -> Result<Self> {
        let node = directory.node();
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(node.join(LOCK))
            .context("cannot open the lock of backups; run this as root")?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!(
                "another backup of {} is being made",
                directory.root().display()
            );
        }
        let stage = Self {
            path: node.join(STAGE),
            _lock: lock,
        };
        remove_tree(&stage.path).context("cannot remove what an earlier backup left")?;
        fs::create_dir(&stage.path).context("cannot make a place for the backup")?;
        Ok(stage)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn make(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        fs::create_dir_all(&path).context("cannot make a place for the backup")?;
        Ok(path)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.path) {
            let error = dayfly_types::error_chain(&error);
            tracing::warn!(
                error,
                "something of the backup stays; the next one removes it"
            );
        }
    }
}

/// Gives every file below a directory a second name. Says whether all of it was there to the end;
/// where it was not, what was made is removed again.
pub(super) fn hold_tree(from: &Path, to: &Path) -> Result<bool> {
    match hold(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            remove_tree(to).context("cannot remove what was held in part")?;
            Ok(false)
        }
        Err(error) => Err(error).with_context(|| format!("cannot hold {}", from.display())),
    }
}

fn hold(from: &Path, to: &Path) -> io::Result<()> {
    let mode = fs::metadata(from)?.permissions();
    fs::create_dir_all(to)?;
    for item in fs::read_dir(from)? {
        let item = item?;
        let (there, here) = (item.path(), to.join(item.file_name()));
        let kind = item.file_type()?;
        if kind.is_dir() {
            hold(&there, &here)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&there)?, &here)?;
        } else {
            fs::hard_link(&there, &here)?;
        }
    }
    fs::set_permissions(to, mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_outlives_its_first_name() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("usr/lib")).unwrap();
        fs::write(from.join("usr/lib/file"), "kept").unwrap();
        std::os::unix::fs::symlink("usr/lib", from.join("lib")).unwrap();
        assert!(hold_tree(&from, &to).unwrap());
        fs::remove_dir_all(&from).unwrap();
        assert_eq!(fs::read_to_string(to.join("lib/file")).unwrap(), "kept");
        assert!(!hold_tree(&from, &place.path().join("none")).unwrap());
        assert!(!place.path().join("none").exists());
    }

    #[test]
    fn one_backup_is_made_at_a_time_and_nothing_of_it_stays() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("node/backup-stage/left")).unwrap();
        let directory = DataDirectory::open(place.path()).unwrap();
        let stage = Stage::begin(&directory).unwrap();
        assert_eq!(fs::read_dir(&stage.path).unwrap().count(), 0);
        assert!(Stage::begin(&directory).is_err());
        let path = stage.make("scratch").unwrap();
        drop(stage);
        assert!(!path.exists() && !place.path().join("node/backup-stage").exists());
        Stage::begin(&directory).unwrap();
    }
}
