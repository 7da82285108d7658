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
