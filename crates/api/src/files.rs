//! Files in a guest.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One directory entry, as `lstat` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileEntry {
    pub name: String,
    pub path: String,
    /// False for a link to a directory.
    pub is_dir: bool,
    pub is_symlink: bool,
    pub size: u64,
    /// Octal text, such as `0644`.
    pub mode: String,
    /// Unix seconds.
    pub mtime: i64,
    pub uid: u32,
    pub gid: u32,
}

/// Answer of `GET /v1/sandboxes/{id}/fs/dir`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DirectoryListing {
    pub entries: Vec<FileEntry>,
    /// There were more entries than one listing holds.
    pub truncated: bool,
}

/// Answer of `PUT /v1/sandboxes/{id}/fs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileWritten {
    pub path: String,
    pub bytes: u64,
}
