//! Files of a guest, as the guest describes them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Permission bits. Text of four octal digits wherever it is written, such as `0644`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(u32);

impl FileMode {
    const MASK: u32 = 0o7777;

    /// The permission bits of what a kernel calls a mode.
    #[must_use]
    pub const fn of(mode: u32) -> Self {
        Self(mode & Self::MASK)
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:04o}", self.0)
    }
}

impl Serialize for FileMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FileMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bits = u32::from_str_radix(&text, 8).map_err(serde::de::Error::custom)?;
        Ok(Self::of(bits))
    }
}

/// One entry of a directory. A link is not followed: one to a directory is no directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStat {
    /// Relative to the directory that was listed.
    pub name: String,
    pub path: String,
    pub is_dir: bool,
    pub is_symlink: bool,
    pub size: u64,
    pub mode: FileMode,
    /// Seconds since 1970.
    pub mtime: i64,
    pub uid: u32,
    pub gid: u32,
}

/// A piece of a directory in the order of its names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryPage {
    pub entries: Vec<FileStat>,
    /// More names follow the last one: ask again with it as `after`.
    pub has_more: bool,
}

/// What is known of a file that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedFile {
    /// The size when it was opened. The content may be longer or shorter.
    pub size: u64,
    pub mode: FileMode,
    /// Seconds since 1970.
    pub mtime: i64,
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

/// Something on a disk that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedPath {
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
pub enum ChangeKind {
    /// Not in the template.
    Added,
    Modified,
    Removed,
    /// A word that this side does not know yet.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_four_octal_digits() {
        let mode = FileMode::of(0o100_644);
        assert_eq!(serde_json::to_string(&mode).unwrap(), "\"0644\"");
        assert_eq!(serde_json::from_str::<FileMode>("\"0644\"").unwrap(), mode);
        assert!(serde_json::from_str::<FileMode>("\"rw-\"").is_err());
    }
}
