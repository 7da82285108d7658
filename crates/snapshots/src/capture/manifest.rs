//! The one document that makes a directory of files a capture.

use std::time::SystemTime;

use dayfly_types::capture::CaptureCost;
use dayfly_types::{ProjectId, SandboxId, SnapshotId, TemplateName};
use dayfly_vmm::{MachineSpec, PageRange};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::file_names;
use crate::manifest::{EngineIdentity, SealedFile};

/// The newest format that this program reads and writes. A capture has the oldest in which it can
/// be told, so that programs of before read all others.
pub const CAPTURE_FORMAT: u32 = 2;
/// What every reader takes to lie on its template's memory.
const FORMAT_ON_TEMPLATE: u32 = 1;

/// What lies below the lowest layer of a capture's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryBase {
    /// The memory that the template was baked with.
    #[default]
    Template,
    /// Nothing: its machine was booted on the disk of another capture.
    Zeros,
}

impl MemoryBase {
    /// The format of a capture with this. A reader that took zeros for the template's memory would
    /// run a guest in a mixture of two.
    pub(super) const fn format(self) -> u32 {
        match self {
            Self::Template => FORMAT_ON_TEMPLATE,
            Self::Zeros => CAPTURE_FORMAT,
        }
    }

    fn is_template(&self) -> bool {
        *self == Self::Template
    }
}

/// Why a capture was made, which decides who keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapturePurpose {
    /// Kept until somebody deletes it.
    Snapshot,
    /// Kept for as long as a child runs on it.
    Fork,
    /// Kept for as long as the sandbox sleeps, and then runs on it.
    Hibernation,
    /// Only a disk layer that a running machine needs: the capture was cut short behind its seal.
    Layer,
}

/// What a published capture is and what it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureManifest {
    pub format: u32,
    pub id: SnapshotId,
    pub purpose: CapturePurpose,
    /// Nobody can see it any more; its bytes stay while something lies on them.
    #[serde(default)]
    pub deleted: bool,
    pub project: ProjectId,
    pub sandbox: SandboxId,
    pub template: TemplateName,
    pub template_version: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When the guest's processes stood still for it, by the node's clock. What changed later is
    /// not in it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "time::serde::rfc3339::option"
    )]
    pub frozen_at: Option<OffsetDateTime>,
    /// When it is deleted by itself.
    #[serde(default, with = "time::serde::rfc3339::option")]
    pub expires_at: Option<OffsetDateTime>,
    pub machine: MachineSpec,
    /// Of the guest's writable disk, which may have grown.
    pub disk_mib: u64,
    pub engine: EngineIdentity,
    /// What lies below all of `memory_below`.
    #[serde(default, skip_serializing_if = "MemoryBase::is_template")]
    pub memory_base: MemoryBase,
    /// The captures whose memory lies below this one's, lowest first.
    pub memory_below: Vec<SnapshotId>,
    /// The captures whose disks lie below this one's, lowest first.
    pub disk_below: Vec<SnapshotId>,
    /// The pages in this capture's own memory layer.
    pub extents: Vec<PageRange>,
    pub cost: CaptureCost,
    /// Which of the files is the memory layer.
    #[serde(default = "first_memory_file")]
    pub memory_file: String,
    /// Which of the files is the disk layer.
    #[serde(default = "first_disk_file")]
    pub disk_file: String,
    /// What lay below was merged into its own files, so it stands for all that lies below it in
    /// the lists of others, too.
    #[serde(default)]
    pub flattened: bool,
    pub files: Vec<SealedFile>,
}

fn first_memory_file() -> String {
    file_names::MEMORY_LAYER.to_owned()
}

fn first_disk_file() -> String {
    file_names::DISK_LAYER.to_owned()
}

/// What is known about a capture before its files are digested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureDraft {
    pub id: SnapshotId,
    pub purpose: CapturePurpose,
    pub project: ProjectId,
    pub sandbox: SandboxId,
    pub template: TemplateName,
    pub template_version: String,
    pub name: Option<String>,
    pub created_at: SystemTime,
    pub frozen_at: Option<SystemTime>,
    pub expires_at: Option<SystemTime>,
    pub machine: MachineSpec,
    pub disk_mib: u64,
    pub engine: EngineIdentity,
    pub memory_base: MemoryBase,
    pub memory_below: Vec<SnapshotId>,
    pub disk_below: Vec<SnapshotId>,
    pub extents: Vec<PageRange>,
    pub cost: CaptureCost,
}

impl CaptureDraft {
    pub(crate) fn finish(self, files: Vec<SealedFile>) -> CaptureManifest {
        CaptureManifest {
            format: self.memory_base.format(),
            id: self.id,
            purpose: self.purpose,
            deleted: false,
            project: self.project,
            sandbox: self.sandbox,
            template: self.template,
            template_version: self.template_version,
            name: self.name,
            created_at: OffsetDateTime::from(self.created_at),
            frozen_at: self.frozen_at.map(OffsetDateTime::from),
            expires_at: self.expires_at.map(OffsetDateTime::from),
            machine: self.machine,
            disk_mib: self.disk_mib,
            engine: self.engine,
            memory_base: self.memory_base,
            memory_below: self.memory_below,
            disk_below: self.disk_below,
            extents: self.extents,
            cost: self.cost,
            memory_file: first_memory_file(),
            disk_file: first_disk_file(),
            flattened: false,
            files,
        }
    }
}

impl CaptureManifest {
    /// Bytes of guest memory in its own layer.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.extents.iter().map(|extent| extent.bytes()).sum()
    }

    /// Everything that must stay for this capture to be restored.
    pub fn below(&self) -> impl Iterator<Item = &SnapshotId> {
        self.memory_below.iter().chain(&self.disk_below)
    }

    /// Nanoseconds since 1970 before which everything is in this capture, by the node's clock.
    #[must_use]
    pub fn frozen_unix_nanos(&self) -> u64 {
        // Older manifests do not say; the call for the capture came before the freeze.
        let taking = time::Duration::microseconds(i64::try_from(self.cost.total_us).unwrap_or(0));
        let moment = self
            .frozen_at
            .unwrap_or_else(|| self.created_at.saturating_sub(taking));
        u64::try_from(moment.unix_timestamp_nanos()).unwrap_or(0)
    }

    /// Whether callers may see it and restore it.
    #[must_use]
    pub fn is_snapshot(&self) -> bool {
        self.purpose == CapturePurpose::Snapshot && !self.deleted
    }

    /// Whether it lies on no other capture.
    #[must_use]
    pub fn is_lowest(&self) -> bool {
        self.memory_below.is_empty() && self.disk_below.is_empty()
    }

    /// A file of this capture by its entry.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&SealedFile> {
        self.files.iter().find(|entry| entry.name == name)
    }
}
