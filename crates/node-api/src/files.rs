//! Files of a guest: what can be asked of a node about them. The node passes paths on as they are;
//! only the guest resolves one.

use async_trait::async_trait;
use dayfly_types::file::{ChangedPath, DirectoryPage, FileStat, OpenedFile, WatchEvent};
use dayfly_types::limits::DIRECTORY_ENTRIES_MAX;
use dayfly_types::{SandboxId, SnapshotId};
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::api::FileBytes;
use crate::error::NodeError;

/// Changes of a watched directory. Dropping it ends the watch.
pub type FileChanges = BoxStream<'static, Result<WatchEvent, NodeError>>;

/// The part of a node that is about files. Every call acts as a user of the guest, and wakes a
/// sandbox that sleeps.
#[async_trait]
pub trait NodeFiles: Send + Sync {
    async fn read_file(
        &self,
        id: &SandboxId,
        request: FileRead,
    ) -> Result<(OpenedFile, FileBytes), NodeError>;

    /// Replaces or makes a file in one step: readers see the old content or the new, never a part.
    /// Or writes into it in place. Parent directories are made. Answers how many bytes were
    /// written.
    async fn write_file(
        &self,
        id: &SandboxId,
        request: FileWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError>;

    async fn list_directory(
        &self,
        id: &SandboxId,
        request: ListDirectory,
    ) -> Result<DirectoryPage, NodeError>;

    async fn stat(&self, id: &SandboxId, request: GuestPath) -> Result<FileStat, NodeError>;

    async fn make_directory(&self, id: &SandboxId, request: MakeDirectory)
    -> Result<(), NodeError>;

    async fn move_file(&self, id: &SandboxId, request: MoveFile) -> Result<(), NodeError>;

    async fn change_mode(&self, id: &SandboxId, request: ChangeMode) -> Result<(), NodeError>;

    async fn remove_file(&self, id: &SandboxId, request: RemoveFile) -> Result<(), NodeError>;

    /// Reports changes from the answer on.
    async fn watch_files(
        &self,
        id: &SandboxId,
        request: WatchFiles,
    ) -> Result<FileChanges, NodeError>;

    /// A directory, or one file, as a tar archive.
    async fn pack_tree(&self, id: &SandboxId, request: GuestPath) -> Result<FileBytes, NodeError>;

    /// Unpacks a tar archive below a directory. Answers how many bytes it had.
    async fn unpack_tree(
        &self,
        id: &SandboxId,
        request: GuestPath,
        content: FileBytes,
    ) -> Result<u64, NodeError>;

    /// What differs on the sandbox's disk.
    async fn list_changes(
        &self,
        id: &SandboxId,
        request: ListChanges,
    ) -> Result<Changes, NodeError>;
}

/// A path of a guest, and the user who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestPath {
    pub path: String,
    #[serde(default)]
    pub user: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRead {
    pub path: String,
    pub user: Option<String>,
    #[serde(default)]
    pub offset: u64,
    /// All of the rest when absent.
    #[serde(default)]
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileWrite {
    pub path: String,
    pub user: Option<String>,
    /// Permission bits. An existing file keeps its own when absent.
    pub mode: Option<u32>,
    #[serde(default)]
    pub place: WritePlace,
}

/// Where in a file the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WritePlace {
    /// They are all of it.
    #[default]
    Whole,
    End,
    At(u64),
}

/// Answer to a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileWritten {
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListDirectory {
    pub path: String,
    #[serde(default)]
    pub user: Option<String>,
    /// Only what comes behind this relative name.
    #[serde(default)]
    pub after: Option<String>,
    #[serde(default = "whole_listing")]
    pub limit: usize,
    /// 1 is the directory alone.
    #[serde(default = "one_level")]
    pub depth: u32,
}

const fn whole_listing() -> usize {
    DIRECTORY_ENTRIES_MAX
}

const fn one_level() -> u32 {
    1
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MakeDirectory {
    pub path: String,
    #[serde(default)]
    pub user: Option<String>,
    #[serde(default)]
    pub mode: Option<u32>,
    /// Also those above it; one that is there already is fine.
    #[serde(default)]
    pub parents: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveFile {
    pub from: String,
    pub to: String,
    #[serde(default)]
    pub user: Option<String>,
    /// Whether something that is at the new place may be replaced.
    #[serde(default)]
    pub replace: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeMode {
    pub path: String,
    pub mode: u32,
    #[serde(default)]
    pub user: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveFile {
    pub path: String,
    #[serde(default)]
    pub user: Option<String>,
    #[serde(default)]
    pub recursive: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchFiles {
    pub path: String,
    #[serde(default)]
    pub user: Option<String>,
    #[serde(default)]
    pub recursive: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListChanges {
    /// Only what is below this directory.
    pub path: String,
    #[serde(default)]
    pub since: ChangesSince,
    /// At most this many.
    pub limit: usize,
}

/// From when on changes count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangesSince {
    /// Since the sandbox began.
    #[default]
    Create,
    /// Since this snapshot of the sandbox was taken.
    Snapshot(SnapshotId),
    /// Since this moment of the guest's clock, which follows the node's.
    UnixNanos(u64),
}

/// What changed, in no order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    pub entries: Vec<ChangedPath>,
    /// There are more.
    pub truncated: bool,
}
