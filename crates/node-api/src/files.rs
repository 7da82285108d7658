//! Files of a guest: what can be asked of a node about them. The node passes paths on as they are;
//! only the guest resolves one.

use dayfly_types::SnapshotId;
use dayfly_types::file::ChangedPath;
use dayfly_types::limits::DIRECTORY_ENTRIES_MAX;
use serde::{Deserialize, Serialize};

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
pub struct EnsureDirectory {
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
pub struct MoveEntry {
    pub from: String,
    pub to: String,
    #[serde(default)]
    pub user: Option<String>,
    /// Whether something that is at the new place may be replaced.
    #[serde(default)]
    pub replace: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetMode {
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
