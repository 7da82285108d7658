//! What is lost with a data directory.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};
use dayfly_installation::DataDirectory;
use dayfly_node::journal::{Entry, Journal};
use dayfly_snapshots::capture::survey;
use dayfly_types::SandboxState;
use serde::Serialize;

/// Counted on the disk, because no daemon runs.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Loss {
    pub(crate) awake: usize,
    pub(crate) asleep: usize,
    /// Sandboxes and captures that cannot be read, and may be anything.
    pub(crate) unreadable: usize,
    pub(crate) snapshots: usize,
    pub(crate) volumes: usize,
    /// On the disk, of all files.
    pub(crate) bytes: u64,
}

impl Loss {
    pub(super) fn of(directory: &DataDirectory) -> Result<Self> {
        let mut loss = Self::default();
        let node = directory.node();
        loss.count_sandboxes(&node.join("sandboxes"))?;
        loss.count_captures(&node.join("captures"))?;
        for project in directories(&node.join("volumes"))? {
            loss.volumes += directories(Path::new(&project))?.len();
        }
        let used = used_bytes(directory.root(), &mut BTreeSet::new());
        loss.bytes = used.context("cannot look through the data directory")?;
        Ok(loss)
    }

    fn count_sandboxes(&mut self, path: &Path) -> Result<()> {
        if !path.exists() {
            return Ok(());
        }
        let entries = Journal::open(path)?.entries();
        for entry in entries.context("cannot read the journal")? {
            match entry {
                Entry::Record(record) if record.state() == SandboxState::Hibernated => {
                    self.asleep += 1;
                }
                Entry::Record(_) => self.awake += 1,
                Entry::Unreadable { .. } => self.unreadable += 1,
                Entry::Empty { .. } => {}
            }
        }
        Ok(())
    }

    fn count_captures(&mut self, path: &Path) -> Result<()> {
        let (manifests, damaged) = survey(path).context("cannot look through the captures")?;
        let snapshots = manifests.iter().filter(|manifest| manifest.is_snapshot());
        self.snapshots += snapshots.count();
        self.unreadable += damaged.len();
        Ok(())
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            awake,
            asleep,
            unreadable,
            snapshots,
            volumes,
            bytes,
        } = self;
        let sandboxes = awake + asleep;
        write!(
            formatter,
            "{sandboxes} sandboxes ({asleep} of them asleep), {snapshots} snapshots, {volumes} \
             volumes, all projects and keys, your recipes; {} MiB",
            bytes >> 20
        )?;
        if *unreadable > 0 {
            write!(formatter, "; {unreadable} things that cannot be read")?;
        }
        Ok(())
    }
}

/// The directories in a directory. One that is absent has none.
fn directories(path: &Path) -> Result<Vec<std::path::PathBuf>> {
    let items = match fs::read_dir(path) {
        Ok(items) => items,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context("cannot look through the data directory"),
    };
    let paths = items.map(|item| item.map(|item| item.path()));
    let mut paths: Vec<_> = paths.collect::<io::Result<_>>()?;
    paths.retain(|path| path.is_dir());
    Ok(paths)
}

/// Bytes on the disk below a directory. What has several names counts once.
fn used_bytes(path: &Path, seen: &mut BTreeSet<u64>) -> io::Result<u64> {
    let found = fs::symlink_metadata(path)?;
    let is_again = found.nlink() > 1 && !found.is_dir() && !seen.insert(found.ino());
    let mut bytes = if is_again { 0 } else { found.blocks() * 512 };
    if found.is_dir() {
        for item in fs::read_dir(path)? {
            bytes += match used_bytes(&item?.path(), seen) {
                // Sandboxes still run, and their engines remove what they do not need.
                Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                other => other?,
            };
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use dayfly_types::SnapshotId;

    use super::*;

    #[test]
    fn what_is_there_is_counted_and_nothing_is_changed() {
        let place = tempfile::tempdir().unwrap();
        let directory = DataDirectory::open(place.path()).unwrap();
        let none = Loss::of(&directory).unwrap();
        assert_eq!((none.snapshots, none.volumes, none.unreadable), (0, 0, 0));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        let node = directory.node();
        fs::create_dir_all(node.join("volumes/default/data")).unwrap();
        fs::write(node.join("volumes/default/data/disk.img"), vec![1; 1 << 20]).unwrap();
        let image = node.join("volumes/default/data/disk.img");
        fs::hard_link(&image, node.join("again")).unwrap();
        let random = [7; dayfly_types::ids::ID_RANDOM_BYTES];
        let id = SnapshotId::from_random(&dayfly_types::CellName::local(), random);
        fs::create_dir_all(node.join("captures").join(id.as_str())).unwrap();
        let loss = Loss::of(&directory).unwrap();
        assert_eq!((loss.volumes, loss.unreadable), (1, 1));
        assert!((1 << 20..2 << 20).contains(&loss.bytes), "{loss:?}");
        assert!(loss.to_string().contains("1 volumes"));
    }
}
