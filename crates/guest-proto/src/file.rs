//! Files as the guest describes them.

use serde::{Deserialize, Serialize};

/// One directory entry, without following a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    pub name: String,
    pub path: String,
    pub is_dir: bool,
    pub is_symlink: bool,
    pub size: u64,
    /// Permission bits as four octal digits, such as `0644`.
    pub mode: String,
    /// Seconds since 1970.
    pub mtime: i64,
    pub uid: u32,
    pub gid: u32,
}

/// A piece of a directory in the order of its names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryPage {
    pub entries: Vec<FileEntry>,
    /// More names follow the last one: ask again with it as `after`.
    pub has_more: bool,
}

/// One line of a watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchEvent {
    pub kind: WatchKind,
    /// Absolute. Empty for an overflow.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(default)]
    pub is_dir: bool,
    /// Where a moved entry was before, if that is watched too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WatchKind {
    /// The watch stands: everything after this line is reported.
    Ready,
    Created,
    /// Written and closed, or its attributes changed.
    Modified,
    Removed,
    Moved,
    /// Events were lost: look for yourself.
    Overflow,
    /// A word that this side does not know yet.
    #[serde(other)]
    Unknown,
}

/// One line of the changes of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Absolute.
    pub path: String,
    pub kind: ChangeKind,
    #[serde(default)]
    pub is_dir: bool,
    #[serde(default)]
    pub size: u64,
    /// Seconds since 1970.
    #[serde(default)]
    pub mtime: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// Not in the template.
    Added,
    Modified,
    Removed,
    /// A word that this side does not know yet.
    #[serde(other)]
    Unknown,
}
