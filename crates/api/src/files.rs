//! Files in a guest.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::number::whole_number;

/// One directory entry, as `lstat` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileEntry {
    /// Relative to the listed directory.
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

/// Response of `GET /v1/sandboxes/{id}/fs/dir`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DirectoryListing {
    /// In the order of names; with a depth, a directory stands right before what is in it.
    pub entries: Vec<FileEntry>,
    /// The same as `has_more`.
    pub truncated: bool,
    /// There is more behind the last entry.
    #[serde(default)]
    pub has_more: bool,
    /// The `after` that gives the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

/// Response of `PUT /v1/sandboxes/{id}/fs` and `fs/tar`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileWritten {
    pub path: String,
    /// How many bytes were sent.
    pub bytes: u64,
}

/// Body of `POST /v1/sandboxes/{id}/fs/mkdir`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeDirectory {
    #[schema(min_length = 1, max_length = 4096, pattern = "^[^\\u0000]+$")]
    pub path: String,
    /// Permission bits in octal. Default: `0755`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-7]{3,4}$")]
    pub mode: Option<String>,
    /// Also make those above it; one that is there already is then a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parents: Option<bool>,
    /// Whose permissions count. Default: `agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$")]
    pub user: Option<String>,
}

/// Body of `POST /v1/sandboxes/{id}/fs/move`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveFile {
    #[schema(min_length = 1, max_length = 4096, pattern = "^[^\\u0000]+$")]
    pub from: String,
    #[schema(min_length = 1, max_length = 4096, pattern = "^[^\\u0000]+$")]
    pub to: String,
    /// Whether something that is at the new place may be replaced. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace: Option<bool>,
    /// Whose permissions count. Default: `agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$")]
    pub user: Option<String>,
}

/// Body of `POST /v1/sandboxes/{id}/fs/chmod`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeMode {
    #[schema(min_length = 1, max_length = 4096, pattern = "^[^\\u0000]+$")]
    pub path: String,
    /// Permission bits in octal, such as `0644`.
    #[schema(pattern = "^[0-7]{3,4}$")]
    pub mode: String,
    /// Whose permissions count. Default: `agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$")]
    pub user: Option<String>,
}

/// Data of a `change` event of `GET /v1/sandboxes/{id}/fs/watch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileChange {
    /// created, modified, removed or moved.
    pub kind: String,
    pub path: String,
    pub is_dir: bool,
    /// Where a moved entry was before, if that is watched too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// Response of `GET /v1/sandboxes/{id}/fs/changes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeList {
    /// In the order of paths.
    pub entries: Vec<ChangedFile>,
    /// There were more than one response holds: ask for a directory below.
    pub truncated: bool,
}

/// One file or directory that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangedFile {
    pub path: String,
    /// added, modified or removed.
    pub kind: String,
    pub is_dir: bool,
    /// 0 for what is removed.
    pub size: u64,
    /// Unix seconds.
    pub mtime: i64,
}

/// Body of `POST /v1/sandboxes/{id}/fs/links`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateFileLink {
    /// The file. A relative path is below `/workspace`.
    #[schema(pattern = "^[^\\u0000]+$", max_length = 4096)]
    pub path: String,
    /// Default `download`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<FileLinkOperation>,
    /// Seconds until the link expires. Default 3600, and never longer than the key that makes it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 1, maximum = 604_800)]
    pub ttl_seconds: Option<u64>,
}

/// What a link to a file is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileLinkOperation {
    #[default]
    Download,
    Upload,
}

/// A way to one file for those who have no key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileLink {
    /// The prefix of its key, by which it is listed and revoked among tokens.
    pub id: String,
    /// `GET` for a download. `PUT` for an upload, with the content as the body.
    pub method: String,
    /// Path and query, behind the address of this API. Shown this once.
    pub address: String,
    /// RFC 3339, UTC.
    pub expires_at: String,
}
