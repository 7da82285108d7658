//! Plain data that crosses between control and node. JSON, additive only.

use std::collections::BTreeMap;

use dayfly_types::{
    CpuMillis, DiskMib, ExecId, Generation, Isolation, Lifecycle, MemoryMib, NodeId, ProjectId,
    SandboxId, SandboxState, SnapshotId, TemplateName, Vcpus,
};
use serde::{Deserialize, Serialize};

use crate::state::VolumeMount;

/// What should exist. Repeating it with the same id answers with the same sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnsureSandbox {
    pub id: SandboxId,
    pub project: ProjectId,
    pub template: TemplateName,
    /// Restored instead of the template. It must be of the same project.
    #[serde(default)]
    pub from_snapshot: Option<SnapshotId>,
    #[serde(default)]
    pub lifecycle: Lifecycle,
    /// At most the template's processors.
    #[serde(default)]
    pub cpu: Option<CpuMillis>,
    /// At least the template's disk, or the snapshot's.
    #[serde(default)]
    pub disk: Option<DiskMib>,
    #[serde(default)]
    pub volumes: Vec<VolumeMount>,
    /// Also give new seeds to generators in user space: the guest's reseed hooks are run with
    /// `DAYFLY_RESEED` set.
    #[serde(default)]
    pub reseed_user_space: bool,
}

/// What a node says of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReport {
    pub id: SandboxId,
    pub project: ProjectId,
    pub template: TemplateName,
    pub state: SandboxState,
    pub generation: Generation,
    /// Why it failed, for a person.
    pub reason: Option<String>,
    pub memory: MemoryMib,
    pub vcpus: Vcpus,
    /// How long the node took from the call to a guest that runs user code.
    pub ready_ms: Option<u64>,
    /// Each part of that, in order.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// Seconds until the node deletes it.
    pub expires_in_seconds: Option<u64>,
    #[serde(default)]
    pub lifecycle: Lifecycle,
    #[serde(default)]
    pub cpu: Option<CpuMillis>,
    #[serde(default)]
    pub disk_mib: u64,
    #[serde(default)]
    pub from_snapshot: Option<SnapshotId>,
    #[serde(default)]
    pub volumes: Vec<VolumeMount>,
}

/// One timed part of a create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    pub name: String,
    pub micros: u64,
}

/// A process to run in a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRequest {
    pub id: ExecId,
    pub command: ExecCommand,
    #[serde(default)]
    pub cwd: Option<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub user: Option<String>,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Given to the process at once, then its standard input ends. Base 64 on the wire, because
    /// a JSON list of numbers is four times as long as its bytes.
    #[serde(default, with = "base64_bytes")]
    pub stdin: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecCommand {
    /// One program and its arguments.
    Argv(Vec<String>),
    /// A text for the guest's shell.
    Shell(String),
}

/// What comes out of an exec, in order. Exactly one `Exited` ends it, unless the guest is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecEvent {
    Stdout(bytes::Bytes),
    Stderr(bytes::Bytes),
    Exited(ExecExit),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecExit {
    /// 0 to 255; 128 + n for signal n.
    pub exit_code: i32,
    pub signal: Option<i32>,
    pub reason: ExitReason,
    pub duration_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    Exited,
    Signaled,
    TimedOut,
    OutOfMemory,
    Killed,
}

impl ExitReason {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Signaled => "signaled",
            Self::TimedOut => "timed_out",
            Self::OutOfMemory => "out_of_memory",
            Self::Killed => "killed",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRead {
    pub path: String,
    pub user: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileWrite {
    pub path: String,
    pub user: Option<String>,
    /// Permission bits of a new file.
    pub mode: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    pub size: u64,
    pub mode: u32,
    /// Unix seconds.
    pub mtime: i64,
}

/// Answer to a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileWritten {
    pub(crate) bytes: u64,
}

/// A question about one path of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PathQuestion {
    pub(crate) path: String,
}

/// One line of a watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WatchLine {
    Report(Box<SandboxReport>),
    Error(crate::error::NodeError),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    pub entries: Vec<DirectoryEntry>,
    /// There were more than a listing holds.
    pub truncated: bool,
}

/// As `lstat` says: a link to a directory is not a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    pub name: String,
    pub path: String,
    pub is_dir: bool,
    pub is_symlink: bool,
    pub size: u64,
    pub mode: u32,
    pub mtime: i64,
    pub uid: u32,
    pub gid: u32,
}

/// A template on this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateReport {
    pub name: TemplateName,
    pub description: String,
    pub memory: MemoryMib,
    pub vcpus: Vcpus,
    pub disk_mib: u64,
    pub state: BakeState,
    /// Bytes on disk of a ready template.
    pub size_bytes: u64,
    /// When it was baked, Unix seconds.
    pub baked_at: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum BakeState {
    Waiting,
    Baking { percent: u8, step: String },
    Ready,
    Failed { reason: String },
}

/// A node's own account of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    pub node: NodeId,
    pub isolation: Isolation,
    pub engine: String,
    pub engine_version: String,
    pub accelerator: String,
    pub sandboxes: u64,
    pub memory_total_mib: u64,
    /// Promised to sandboxes and parked engines.
    pub memory_committed_mib: u64,
    /// Kept for the host.
    pub memory_reserve_mib: u64,
    pub disk_available_mib: u64,
    pub disk_committed_mib: u64,
    pub disk_reserve_mib: u64,
    pub pools: Vec<PoolStatus>,
    pub parked_slots: u64,
    pub parked_slots_target: u64,
    /// Slots that the pool holds, with or without an engine.
    #[serde(default)]
    pub held_slots: Vec<u32>,
}

/// Parked engines of one template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStatus {
    pub template: TemplateName,
    pub parked: u64,
    pub target: u64,
}

mod base64_bytes {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        bytes
            .as_ref()
            .map(|bytes| STANDARD.encode(bytes))
            .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| STANDARD.decode(text).map_err(serde::de::Error::custom))
            .transpose()
    }
}
