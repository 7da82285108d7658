//! What exists on this host, one directory and one small file for each sandbox.
//!
//! The file is replaced by rename, so a reader sees one whole record or the one before. It is not
//! synced to the disk while a machine runs: such a record must outlive this process, whose memory
//! the page cache is not part of, and it has no use after the host lost power, because the vm is
//! gone then too. The record of a sleeping sandbox is synced.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dayfly_core::lifecycle::{IllegalTransition, LifecycleEvent, Phase, next};
use dayfly_host::files::{sync_directory, sync_file};
use dayfly_snapshots::EngineIdentity;
use dayfly_types::capture::MachineOrigin;
use dayfly_types::egress::EgressPolicy;
use dayfly_types::volume::MountedVolume;
use dayfly_types::{
    CpuMillis, DiskMib, Generation, LifetimeRules, Moment, ProjectId, SandboxClass, SandboxId,
    SandboxState, SleepReason, SnapshotId, TemplateName,
};
use dayfly_vmm::MachineSpec;
use serde::{Deserialize, Serialize};

use crate::effects::{Effect, Effects};
use crate::glimpse::Glimpse;
use crate::reserve::ReserveFile;

/// What this program writes of most sandboxes. Bumped when an old reader would misread a record.
pub const JOURNAL_FORMAT: u32 = 3;
/// The newest that it reads, and writes of a machine that was booted on the disk of a capture. An
/// old reader would take its memory for that of the capture.
pub const JOURNAL_FORMAT_NEWEST: u32 = 4;
/// The oldest format that is still read: what it lacks has a default.
const JOURNAL_FORMAT_OLDEST: u32 = 1;

const RECORD_FILE: &str = "record.json";
/// A record that has no name yet.
const NEW_RECORD_FILE: &str = "record.json.new";
/// What a directory that is being removed is called, which is no id.
const REMOVED_SUFFIX: &str = ".removed";
/// A record is small; more than this is damage.
const RECORD_BYTES_MAX: u64 = 256 << 10;

/// Everything that a fresh process must know to take a sandbox over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxRecord {
    pub format: u32,
    pub id: SandboxId,
    pub project: ProjectId,
    pub template: TemplateName,
    /// Which bake of the template; its files must stay while this record does.
    pub template_version: String,
    pub machine: MachineSpec,
    /// Where it is in its life, and what it has there.
    #[serde(flatten)]
    pub phase: Phase,
    pub generation: Generation,
    /// The host's boot that `expires` counts from.
    pub boot_id: String,
    pub expires: Option<Moment>,
    /// For a deadline that has to be found again after a reboot. Unix milliseconds.
    pub expires_wall_ms: Option<u64>,
    /// Shared with the guest at its birth; never leaves the node.
    pub agent_token: String,
    pub ready_ms: Option<u64>,
    #[serde(default)]
    pub lifecycle: LifetimeRules,
    /// Less processor time than the machine's processors could use.
    #[serde(default)]
    pub cpu: Option<CpuMillis>,
    /// The size of the writable disk, when it was made larger than the template's.
    #[serde(default)]
    pub disk: Option<DiskMib>,
    /// The snapshot that the caller asked for, to show.
    #[serde(default)]
    pub from_snapshot: Option<SnapshotId>,
    #[serde(default)]
    pub volumes: Vec<AttachedVolume>,
    #[serde(default)]
    pub reseed_user_space: bool,
    /// What it may reach; the truth is control's, and this is its last word.
    #[serde(default)]
    pub egress: EgressPolicy,
    #[serde(default)]
    pub egress_epoch: u64,
    /// `expires` was found again by the wall clock after a reboot, which may have been wrong.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expires_bridged: bool,
    /// What control needs to write a row that it lost. Nothing here depends on it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at_ms: Option<i64>,
    /// A write to its disk failed, and its guest was told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disk_damaged: bool,
    /// How much of its size it is promised. A record of before has all of it.
    #[serde(default, skip_serializing_if = "SandboxClass::is_reserved")]
    pub class: SandboxClass,
    /// Why it sleeps, or is about to, if nobody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep_reason: Option<SleepReason>,
    /// It sleeps for others with a command under way, and goes on as soon as there is room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_restless: bool,
    /// What its machine runs in. An older program did not note it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineIdentity>,
}

impl SandboxRecord {
    /// The oldest format in which it can be told.
    fn format_needed(&self) -> u32 {
        match self.phase.origin() {
            Some(MachineOrigin::DiskOf(_)) => JOURNAL_FORMAT_NEWEST,
            Some(MachineOrigin::Template | MachineOrigin::Capture(_)) | None => JOURNAL_FORMAT,
        }
    }

    /// What its engine gets of the processors.
    #[must_use]
    pub(crate) fn cpu_limit(&self) -> CpuMillis {
        self.cpu.unwrap_or(self.machine.vcpus.into())
    }

    #[must_use]
    pub const fn state(&self) -> SandboxState {
        self.phase.state()
    }

    /// Goes on to the phase after an event, which others tell by the generation. Nothing is written.
    ///
    /// # Errors
    /// [`IllegalTransition`]; nothing has changed then.
    pub fn advance(&mut self, event: LifecycleEvent) -> Result<(), IllegalTransition> {
        self.phase = next(&self.phase, event)?;
        self.generation = self.generation.next();
        Ok(())
    }
}

/// A volume of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedVolume {
    pub mount: MountedVolume,
    /// Which spare disk it takes the place of.
    pub spare: u8,
    /// The number under which the sandbox may write.
    pub fence: u64,
}

/// Why the journal could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot write {path}")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} is not a record")]
    Malformed {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("{path} has format {found}; this program reads up to {JOURNAL_FORMAT_NEWEST}")]
    Format { path: PathBuf, found: u32 },
}

impl JournalError {
    /// What is wrong, for whoever must not learn where this host keeps what.
    pub(crate) fn without_path(&self) -> String {
        match self {
            Self::Format { found, .. } => {
                let newest = JOURNAL_FORMAT_NEWEST;
                format!("it has format {found}, and this program reads up to {newest}")
            }
            Self::Malformed { .. } => "it is damaged".to_owned(),
            Self::Read { .. } | Self::Write { .. } => "the disk does not give it".to_owned(),
        }
    }

    fn is_absence(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// One entry found at start.
#[derive(Debug)]
pub enum Entry {
    Record(Box<SandboxRecord>),
    /// A record that this program cannot read, now or at all. Whatever it may name stays.
    Unreadable {
        id: SandboxId,
        error: JournalError,
        glimpse: Glimpse,
    },
    /// A directory that never had a record. The first one is written before anything else is made,
    /// and a removal takes the name away first, so nothing belongs to it.
    Empty {
        id: SandboxId,
    },
}

/// The journal's directory.
#[derive(Debug, Clone)]
pub struct Journal {
    directory: PathBuf,
    effects: Effects,
    reserve: Option<Arc<ReserveFile>>,
}

impl Journal {
    /// Opens the journal, making its directory when it is not there.
    ///
    /// # Errors
    /// [`JournalError::Write`] when the directory cannot be made.
    pub fn open(directory: &Path) -> Result<Self, JournalError> {
        fs::create_dir_all(directory).map_err(|source| JournalError::Write {
            path: directory.to_owned(),
            source,
        })?;
        Ok(Self {
            directory: directory.to_owned(),
            effects: Effects::default(),
            reserve: None,
        })
    }

    /// The same journal, which on a full disk gives up a part of what is held for it.
    #[must_use]
    pub fn with_reserve(mut self, reserve: Option<Arc<ReserveFile>>) -> Self {
        self.reserve = reserve;
        self
    }

    /// The same journal with a point around each effect.
    #[must_use]
    pub fn observed(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    fn sandbox_directory(&self, id: &SandboxId) -> PathBuf {
        self.directory.join(id.as_str())
    }

    /// Replaces the record of one sandbox.
    ///
    /// # Errors
    /// [`JournalError::Write`]; the former record is then still in place.
    pub fn write(&self, record: &SandboxRecord) -> Result<(), JournalError> {
        self.effects.around(Effect::JournalWrite, || {
            let written = self.write_here(record);
            let is_full = matches!(&written, Err(JournalError::Write { source, .. })
                if source.kind() == io::ErrorKind::StorageFull);
            if is_full && self.reserve.as_ref().is_some_and(|held| held.give_up()) {
                return self.write_here(record);
            }
            written
        })
    }

    fn write_here(&self, record: &SandboxRecord) -> Result<(), JournalError> {
        let directory = self.sandbox_directory(&record.id);
        let path = directory.join(RECORD_FILE);
        let fail = |source| JournalError::Write {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(&directory).map_err(fail)?;
        let mut told = record.clone();
        told.format = record.format_needed();
        let text = serde_json::to_vec_pretty(&told).map_err(|e| fail(io::Error::other(e)))?;
        let temporary = directory.join(NEW_RECORD_FILE);
        fs::write(&temporary, text).map_err(fail)?;
        if record.state() == SandboxState::Hibernated {
            // This one has a use after the host lost power.
            sync_file(&temporary).map_err(fail)?;
        }
        fs::rename(&temporary, &path).map_err(fail)?;
        if record.state() == SandboxState::Hibernated {
            let synced = sync_directory(&directory).and_then(|()| sync_directory(&self.directory));
            synced.map_err(fail)?;
        }
        Ok(())
    }

    /// Forgets a sandbox. An absent one is a success.
    ///
    /// # Errors
    /// [`JournalError::Write`] when something of it is still there.
    pub fn remove(&self, id: &SandboxId) -> Result<(), JournalError> {
        self.effects
            .around(Effect::JournalRemove, || self.remove_here(id))
    }

    fn remove_here(&self, id: &SandboxId) -> Result<(), JournalError> {
        let directory = self.sandbox_directory(id);
        let doomed = self.directory.join(format!("{id}{REMOVED_SUFFIX}"));
        // In one step: half of a removal must not look like a record that was lost.
        let removed = remove_if_there(&doomed)
            .and_then(|()| match fs::rename(&directory, &doomed) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                renamed => renamed,
            })
            .and_then(|()| remove_if_there(&doomed));
        removed.map_err(|source| JournalError::Write {
            path: directory,
            source,
        })
    }

    /// Removes what a removal that was cut short has left.
    ///
    /// # Errors
    /// [`JournalError`] when the directory cannot be listed or something stays.
    pub fn sweep(&self) -> Result<(), JournalError> {
        let fail = |source| JournalError::Read {
            path: self.directory.clone(),
            source,
        };
        for item in fs::read_dir(&self.directory).map_err(fail)? {
            let path = item.map_err(fail)?.path();
            if path.to_string_lossy().ends_with(REMOVED_SUFFIX) {
                self.effects
                    .around(Effect::JournalRemove, || remove_if_there(&path))
                    .map_err(|source| JournalError::Write { path, source })?;
            }
        }
        Ok(())
    }

    /// Everything in the journal, readable or not.
    ///
    /// # Errors
    /// [`JournalError::Read`] when the directory itself cannot be listed.
    pub fn entries(&self) -> Result<Vec<Entry>, JournalError> {
        let fail = |source| JournalError::Read {
            path: self.directory.clone(),
            source,
        };
        let mut entries = Vec::new();
        for item in fs::read_dir(&self.directory).map_err(fail)? {
            let item = item.map_err(fail)?;
            // A name that is not an id was not made by us; doctor lists it.
            let Some(id) = item
                .file_name()
                .to_str()
                .and_then(|name| SandboxId::parse(name).ok())
            else {
                continue;
            };
            entries.push(self.look(id));
        }
        Ok(entries)
    }

    /// One sandbox of the journal, as it is on the disk now.
    #[must_use]
    pub fn look(&self, id: SandboxId) -> Entry {
        let error = match self.read(&id) {
            Ok(record) => return Entry::Record(Box::new(record)),
            Err(error) => error,
        };
        if error.is_absence() && self.never_had_a_record(&id) {
            return Entry::Empty { id };
        }
        let path = self.sandbox_directory(&id).join(RECORD_FILE);
        let glimpse = Glimpse::of(&path, RECORD_BYTES_MAX);
        Entry::Unreadable { id, error, glimpse }
    }

    fn never_had_a_record(&self, id: &SandboxId) -> bool {
        // A directory that cannot be listed says nothing.
        fs::read_dir(self.sandbox_directory(id)).is_ok_and(|mut items| {
            items.all(|item| item.is_ok_and(|item| item.file_name() == NEW_RECORD_FILE))
        })
    }

    fn read(&self, id: &SandboxId) -> Result<SandboxRecord, JournalError> {
        let path = self.sandbox_directory(id).join(RECORD_FILE);
        let fail = |source| JournalError::Read {
            path: path.clone(),
            source,
        };
        let length = fs::metadata(&path).map_err(fail)?.len();
        if length > RECORD_BYTES_MAX {
            return Err(fail(io::Error::other("the file is too long for a record")));
        }
        let text = fs::read(&path).map_err(fail)?;
        let malformed = |source| JournalError::Malformed {
            path: path.clone(),
            source,
        };
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(malformed)?;
        let found = value
            .get("format")
            .and_then(serde_json::Value::as_u64)
            .unwrap_or(0);
        let readable = u64::from(JOURNAL_FORMAT_OLDEST)..=u64::from(JOURNAL_FORMAT_NEWEST);
        if !readable.contains(&found) {
            let found = u32::try_from(found).unwrap_or(u32::MAX);
            return Err(JournalError::Format { path, found });
        }
        let mut record: SandboxRecord = serde_json::from_value(value).map_err(malformed)?;
        record.format = JOURNAL_FORMAT;
        Ok(record)
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
pub(crate) mod tests;
