//! The volumes of this node: disks that outlive sandboxes, and who may write to them.
//!
//! ```text
//! volumes/PROJECT/NAME/disk.img      an ext4 file system
//! volumes/PROJECT/NAME/volume.json   size, writer, readers, fence
//! ```
//! One writer or many readers. A writer holds a lease with a number (the fence) that grows with
//! each writer; the lease names a sandbox, and it ends only when that sandbox has let go of it or
//! is gone from the journal, which it leaves after its engine is dead. So a lease can never be
//! taken over beside a machine that still writes.
//!
//! Everything here blocks, and nothing of it holds the map of volumes while it does: who works on
//! a volume has a turn at it ([`Turns`]), and the map says afterwards what has become of it.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dayfly_core::admission::Refusal;
use dayfly_host::files::{
    make_directory_durable, remove_tree, sync_directory, sync_file, write_atomic,
};
use dayfly_node_api::{EnsureVolume, NodeError, VolumeReport};
use dayfly_types::{DiskMib, ErrorCode, ProjectId, SandboxId, VolumeName};
use serde::{Deserialize, Serialize};

use crate::effects::{Effect, Effects};
use crate::volume_tools::{needs_recovery, run, set_owner};
use crate::volume_turns::{Turn, Turns};

const DISK_FILE: &str = "disk.img";
const RECORD_FILE: &str = "volume.json";
const VOLUME_FORMAT: u32 = 1;

pub(crate) type Key = (ProjectId, VolumeName);

/// Why a volume operation failed.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    #[error("there is no volume {0}")]
    Absent(VolumeName),
    #[error("volume {name} is in use by {by}")]
    Busy { name: VolumeName, by: SandboxId },
    #[error("volume {0} is being made, grown or removed; ask again")]
    Maintained(VolumeName),
    #[error("volume {0} has a record that this program cannot read; it was left alone")]
    Unreadable(VolumeName),
    #[error(
        "volume {0} was not unmounted by its last writer; attach it once for writing, which repairs it"
    )]
    Dirty(VolumeName),
    #[error("volume {name} was written by another sandbox since")]
    Fenced { name: VolumeName },
    #[error("volume {name} is {size} MiB already; a volume cannot shrink")]
    Larger { name: VolumeName, size: u64 },
    #[error("this node has {limit} volumes, which is its limit")]
    TooMany { limit: usize },
    #[error("the project has {limit} volumes on this node, which is its share; delete some")]
    ShareTaken { limit: usize },
    #[error(
        "the node's disk has no room for the volume: {0}; delete snapshots, volumes or sandboxes"
    )]
    NoRoom(Refusal),
    #[error("cannot read or write {path}")]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{program} failed: {message}")]
    Program {
        program: &'static str,
        message: String,
    },
}

impl From<VolumeError> for NodeError {
    fn from(error: VolumeError) -> Self {
        let text = error.to_string();
        match error {
            VolumeError::Absent(_) => Self::not_found(text),
            VolumeError::Busy { .. }
            | VolumeError::Fenced { .. }
            | VolumeError::Maintained(_)
            | VolumeError::Dirty(_) => Self::new(ErrorCode::VolumeBusy, text),
            VolumeError::Unreadable(_) => Self::internal(text),
            VolumeError::Larger { .. } => Self::new(ErrorCode::AlreadyExists, text),
            VolumeError::TooMany { .. } | VolumeError::ShareTaken { .. } => {
                Self::new(ErrorCode::TooMany, text)
            }
            VolumeError::NoRoom(_) => Self::new(ErrorCode::StorageFull, text),
            VolumeError::File { .. } | VolumeError::Program { .. } => {
                crate::failure::node_error("the volume could not be changed", &error)
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VolumeRecord {
    format: u32,
    project: ProjectId,
    name: VolumeName,
    pub(crate) size: DiskMib,
    created_at: i64,
    fence: u64,
    writer: Option<SandboxId>,
    #[serde(default)]
    readers: Vec<SandboxId>,
}

/// What a sandbox gets with a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeLease {
    pub file: PathBuf,
    pub bytes: u64,
    pub fence: u64,
}

/// All volumes of one node.
#[derive(Debug)]
pub struct VolumeStore {
    effects: Effects,
    turns: Turns<Key>,
    directory: PathBuf,
    records: Mutex<BTreeMap<Key, VolumeRecord>>,
}

impl VolumeStore {
    /// Reads every volume. One that cannot be read is left alone, with a line in the log.
    ///
    /// # Errors
    /// When the directory cannot be made or listed.
    pub fn open(directory: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&directory)?;
        fs::set_permissions(&directory, Permissions::from_mode(0o700))?;
        let directory = directory.canonicalize()?;
        let mut records = BTreeMap::new();
        for project in fs::read_dir(&directory)? {
            let project = project?.path();
            if !project.is_dir() {
                continue;
            }
            for volume in fs::read_dir(project)? {
                let path = volume?.path();
                match read_record(&path) {
                    Ok(record) => {
                        let key = (record.project.clone(), record.name.clone());
                        records.insert(key, record);
                    }
                    Err(error) => {
                        tracing::error!(path = %path.display(), %error, "a volume cannot be read");
                    }
                }
            }
        }
        Ok(Self {
            effects: Effects::default(),
            turns: Turns::default(),
            directory,
            records: Mutex::new(records),
        })
    }

    /// The same volumes with a point around each effect.
    #[must_use]
    pub fn observed(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, VolumeRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, project: &ProjectId, name: &VolumeName) -> PathBuf {
        self.directory.join(project.as_str()).join(name.as_str())
    }

    fn write(&self, record: &VolumeRecord) -> Result<(), VolumeError> {
        let path = self.path(&record.project, &record.name).join(RECORD_FILE);
        // Plain data always has a JSON form.
        let text = serde_json::to_vec_pretty(record).unwrap_or_default();
        write_atomic(&path, &text, 0o600).map_err(|error| file(&path, error.source))
    }

    /// Makes a volume, or grows one that is not in use. May be repeated. Blocks.
    ///
    /// # Errors
    /// [`VolumeError`]; the volume is then as it was.
    pub fn ensure(
        &self,
        wanted: &EnsureVolume,
        created_at: i64,
    ) -> Result<VolumeReport, VolumeError> {
        self.effects.around(Effect::VolumeEnsure, || {
            self.ensure_here(wanted, created_at)
        })
    }

    fn ensure_here(
        &self,
        wanted: &EnsureVolume,
        created_at: i64,
    ) -> Result<VolumeReport, VolumeError> {
        let key = (wanted.project.clone(), wanted.name.clone());
        // Programs that take their time run below. Whoever wants this volume meanwhile is refused;
        // nobody waits for it.
        let _alone = self.maintain(&key)?;
        let known = self.lock().get(&key).cloned();
        let record = match known {
            Some(record) if record.size > wanted.size => {
                return Err(VolumeError::Larger {
                    name: wanted.name.clone(),
                    size: record.size.into(),
                });
            }
            Some(record) if record.size == wanted.size => record,
            Some(record) => self.grow(record, wanted.size)?,
            None => {
                self.check_count(&wanted.project)?;
                self.create(wanted, created_at)?
            }
        };
        self.lock().insert(key, record.clone());
        Ok(self.report(&record))
    }

    /// Keeps everybody else from a volume until the answer is dropped.
    fn maintain(&self, key: &Key) -> Result<Turn<'_, Key>, VolumeError> {
        let turn = self.turns.maintenance(key);
        turn.map_err(|_| VolumeError::Maintained(key.1.clone()))
    }

    fn create(&self, wanted: &EnsureVolume, created_at: i64) -> Result<VolumeRecord, VolumeError> {
        let path = self.path(&wanted.project, &wanted.name);
        if may_exist(&path.join(RECORD_FILE)) {
            // Somebody's data under a record that this program cannot read.
            return Err(VolumeError::Unreadable(wanted.name.clone()));
        }
        // Left by an attempt that was cut short: a volume without a record was never told of.
        remove_tree(&path).map_err(|error| file(&path, io::Error::other(error)))?;
        make_directory_durable(&path, 0o700).map_err(|source| file(&path, source))?;
        let disk = path.join(DISK_FILE);
        let made = fs::File::create_new(&disk).and_then(|image| {
            image.set_permissions(Permissions::from_mode(0o600))?;
            image.set_len(wanted.size.bytes())
        });
        made.map_err(|source| file(&disk, source))?;
        // Blocks of a fresh volume are promised, not taken: a lazy format writes little.
        run("mkfs.ext4", &["-q", "-F", "-m", "0"], &disk)?;
        sync(&disk)?;
        let record = VolumeRecord {
            format: VOLUME_FORMAT,
            project: wanted.project.clone(),
            name: wanted.name.clone(),
            size: wanted.size,
            created_at,
            fence: 0,
            writer: None,
            readers: Vec::new(),
        };
        self.write(&record)?;
        Ok(record)
    }

    fn grow(&self, mut record: VolumeRecord, size: DiskMib) -> Result<VolumeRecord, VolumeError> {
        if let Some(by) = record.users().next() {
            return Err(VolumeError::Busy {
                name: record.name.clone(),
                by: by.clone(),
            });
        }
        let disk = self.path(&record.project, &record.name).join(DISK_FILE);
        let grown = fs::File::options()
            .write(true)
            .open(&disk)
            .and_then(|image| image.set_len(size.bytes()));
        grown.map_err(|source| file(&disk, source))?;
        run("e2fsck", &["-f", "-p"], &disk)?;
        run("resize2fs", &[], &disk)?;
        sync(&disk)?;
        record.size = size;
        self.write(&record)?;
        Ok(record)
    }

    /// Whether there is nothing at all, readable or not.
    pub(crate) fn is_empty(&self) -> bool {
        let is_empty = |path: &Path| fs::read_dir(path).is_ok_and(|mut it| it.next().is_none());
        let projects = fs::read_dir(&self.directory);
        projects.is_ok_and(|mut projects| {
            projects.all(|project| project.is_ok_and(|project| is_empty(&project.path())))
        })
    }

    /// Every volume, or those of one project.
    #[must_use]
    pub fn reports(&self, project: Option<&ProjectId>) -> Vec<VolumeReport> {
        let is_wanted = |record: &&VolumeRecord| project.is_none_or(|one| record.project == *one);
        let found: Vec<_> = self.lock().values().filter(is_wanted).cloned().collect();
        found.iter().map(|record| self.report(record)).collect()
    }

    /// One volume.
    ///
    /// # Errors
    /// [`VolumeError::Absent`].
    pub fn find(
        &self,
        project: &ProjectId,
        name: &VolumeName,
    ) -> Result<VolumeReport, VolumeError> {
        let record = self.record(&(project.clone(), name.clone()))?;
        Ok(self.report(&record))
    }

    fn record(&self, key: &Key) -> Result<VolumeRecord, VolumeError> {
        let record = self.lock().get(key).cloned();
        record.ok_or_else(|| VolumeError::Absent(key.1.clone()))
    }

    fn report(&self, record: &VolumeRecord) -> VolumeReport {
        let disk = self.path(&record.project, &record.name).join(DISK_FILE);
        VolumeReport {
            project: record.project.clone(),
            name: record.name.clone(),
            size: record.size,
            used_bytes: fs::metadata(disk).map_or(0, |metadata| metadata.blocks() * 512),
            created_at: record.created_at,
            fence: record.fence,
            writer: record.writer.clone(),
            readers: record.readers.clone(),
        }
    }

    /// Removes a volume and its bytes. An absent one is a success.
    ///
    /// # Errors
    /// [`VolumeError::Busy`] while a sandbox has it.
    pub fn delete(&self, project: &ProjectId, name: &VolumeName) -> Result<(), VolumeError> {
        self.effects
            .around(Effect::VolumeDelete, || self.delete_here(project, name))
    }

    fn delete_here(&self, project: &ProjectId, name: &VolumeName) -> Result<(), VolumeError> {
        let key = (project.clone(), name.clone());
        // A whole disk is removed below. The volume is found until it is gone, by whoever asks.
        let _alone = self.maintain(&key)?;
        let known = self.lock().get(&key).cloned();
        if let Some(by) = known.as_ref().and_then(|record| record.users().next()) {
            return Err(VolumeError::Busy {
                name: name.clone(),
                by: by.clone(),
            });
        }
        let path = self.path(project, name);
        if known.is_none() && may_exist(&path.join(RECORD_FILE)) {
            return Err(VolumeError::Unreadable(name.clone()));
        }
        remove_tree(&path).map_err(|error| file(&path, io::Error::other(error)))?;
        if let Some(parent) = path.parent().filter(|parent| parent.exists()) {
            sync_directory(parent).map_err(|source| file(parent, source))?;
        }
        self.lock().remove(&key);
        Ok(())
    }

    /// Lets a sandbox have a volume. Repeating it for the same sandbox gives the same lease.
    ///
    /// # Errors
    /// [`VolumeError::Busy`] names who has it.
    pub fn attach(
        &self,
        project: &ProjectId,
        name: &VolumeName,
        sandbox: &SandboxId,
        read_only: bool,
    ) -> Result<VolumeLease, VolumeError> {
        self.effects.around(Effect::VolumeAttach, || {
            self.attach_here(project, name, sandbox, read_only)
        })
    }

    fn attach_here(
        &self,
        project: &ProjectId,
        name: &VolumeName,
        sandbox: &SandboxId,
        read_only: bool,
    ) -> Result<VolumeLease, VolumeError> {
        let key = (project.clone(), name.clone());
        let turn = self.turns.change(&key);
        let _turn = turn.map_err(|_| VolumeError::Maintained(name.clone()))?;
        let record = self.record(&key)?;
        let mut changed = record.clone();
        changed.let_in(sandbox, read_only)?;
        let disk = self.path(project, name).join(DISK_FILE);
        // A reader cannot replay a journal. Its last writer was killed before it unmounted.
        if read_only && needs_recovery(&disk).map_err(|source| file(&disk, source))? {
            return Err(VolumeError::Dirty(name.clone()));
        }
        let fence = changed.fence;
        if changed != record {
            self.write(&changed)?;
            if read_only {
                // Readers are several users; nobody may write.
                set_owner(&disk, 0, 0o444).map_err(|source| file(&disk, source))?;
            }
            self.lock().insert(key, changed);
        }
        Ok(VolumeLease {
            bytes: length(&disk)?,
            file: disk,
            fence,
        })
    }

    /// The lease that a sleeping sandbox still has.
    ///
    /// # Errors
    /// [`VolumeError::Fenced`] when another sandbox has written since.
    pub fn resume(
        &self,
        project: &ProjectId,
        name: &VolumeName,
        sandbox: &SandboxId,
        fence: u64,
    ) -> Result<VolumeLease, VolumeError> {
        let record = self.record(&(project.clone(), name.clone()))?;
        let has_it = record.users().any(|user| user == sandbox);
        if !has_it || record.fence != fence {
            return Err(VolumeError::Fenced { name: name.clone() });
        }
        let disk = self.path(project, name).join(DISK_FILE);
        Ok(VolumeLease {
            bytes: length(&disk)?,
            file: disk,
            fence,
        })
    }

    /// Takes a sandbox's lease back. Its engine is dead. May be repeated.
    ///
    /// # Errors
    /// [`VolumeError::File`]; the lease then stands.
    pub fn detach(
        &self,
        project: &ProjectId,
        name: &VolumeName,
        sandbox: &SandboxId,
    ) -> Result<(), VolumeError> {
        self.effects.around(Effect::VolumeDetach, || {
            self.detach_here(project, name, sandbox)
        })
    }

    fn detach_here(
        &self,
        project: &ProjectId,
        name: &VolumeName,
        sandbox: &SandboxId,
    ) -> Result<(), VolumeError> {
        let key = (project.clone(), name.clone());
        let _turn = self.turns.certain_change(&key);
        let Ok(record) = self.record(&key) else {
            return Ok(());
        };
        let mut changed = record.clone();
        changed.readers.retain(|reader| reader != sandbox);
        if changed.writer.as_ref() == Some(sandbox) {
            changed.writer = None;
        }
        if changed == record {
            return Ok(());
        }
        let disk = self.path(project, name).join(DISK_FILE);
        if changed.users().next().is_none() {
            set_owner(&disk, 0, 0o600).map_err(|source| file(&disk, source))?;
        }
        self.write(&changed)?;
        self.lock().insert(key, changed);
        Ok(())
    }

    /// Takes back the leases of sandboxes that are not there any more.
    pub fn release_absent(&self, exists: impl Fn(&SandboxId) -> bool) {
        let gone: Vec<(Key, SandboxId)> = {
            let records = self.lock();
            records
                .iter()
                .flat_map(|(key, record)| record.users().map(|user| (key.clone(), user.clone())))
                .filter(|(_, user)| !exists(user))
                .collect()
        };
        for ((project, name), sandbox) in gone {
            if let Err(error) = self.detach(&project, &name, &sandbox) {
                let error = crate::error_chain(&error);
                tracing::error!(volume = %name, sandbox_id = %sandbox, error, "cannot take a lease back");
            }
        }
    }
}

impl VolumeRecord {
    fn users(&self) -> impl Iterator<Item = &SandboxId> {
        self.writer.iter().chain(&self.readers)
    }

    fn let_in(&mut self, sandbox: &SandboxId, read_only: bool) -> Result<(), VolumeError> {
        let others = |user: &&SandboxId| *user != sandbox;
        let in_the_way = if read_only {
            self.writer.iter().find(others)
        } else {
            self.users().find(others)
        };
        if let Some(by) = in_the_way {
            return Err(VolumeError::Busy {
                name: self.name.clone(),
                by: by.clone(),
            });
        }
        if read_only {
            if !self.readers.contains(sandbox) {
                self.readers.push(sandbox.clone());
            }
        } else if self.writer.is_none() {
            self.writer = Some(sandbox.clone());
            self.fence += 1;
        }
        Ok(())
    }
}

/// Whether a file is there, or nobody can tell.
fn may_exist(path: &Path) -> bool {
    path.try_exists().unwrap_or(true)
}

fn read_record(directory: &Path) -> io::Result<VolumeRecord> {
    let record: VolumeRecord = serde_json::from_slice(&fs::read(directory.join(RECORD_FILE))?)?;
    if record.format != VOLUME_FORMAT {
        return Err(io::Error::other("a format that this program does not know"));
    }
    Ok(record)
}

pub(crate) fn file(path: &Path, source: io::Error) -> VolumeError {
    VolumeError::File {
        path: path.to_owned(),
        source,
    }
}

/// What the file has, which after a growth that was cut short is more than its record says.
fn length(path: &Path) -> Result<u64, VolumeError> {
    let metadata = fs::metadata(path).map_err(|source| file(path, source))?;
    Ok(metadata.len())
}

fn sync(path: &Path) -> Result<(), VolumeError> {
    sync_file(path).map_err(|source| file(path, source))
}

#[cfg(test)]
#[path = "volumes_tests.rs"]
mod tests;
