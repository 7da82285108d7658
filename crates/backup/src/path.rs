//! A path that leads nowhere but down.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const PATH_BYTES_MAX: usize = 1024;

/// Where something lies below the top of a backup: names with a slash between, none of which goes
/// up or stays.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BackupPath(String);

/// Why a text is no such path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is no path inside a backup")]
pub struct InvalidBackupPath {
    pub path: String,
}

impl BackupPath {
    /// Parses a text that came from outside.
    ///
    /// # Errors
    /// [`InvalidBackupPath`].
    pub fn parse(text: &str) -> Result<Self, InvalidBackupPath> {
        let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
        if text.len() > PATH_BYTES_MAX || !text.split('/').all(is_plain) {
            return Err(InvalidBackupPath {
                path: text.chars().take(PATH_BYTES_MAX).collect(),
            });
        }
        Ok(Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What it lies in; `None` at the top.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (parent, _) = self.0.rsplit_once('/')?;
        Some(Self(parent.to_owned()))
    }

    /// The same below a directory.
    #[must_use]
    pub fn below(&self, directory: &Path) -> PathBuf {
        directory.join(&self.0)
    }
}

impl fmt::Display for BackupPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for BackupPath {
    type Error = InvalidBackupPath;

    fn try_from(text: String) -> Result<Self, InvalidBackupPath> {
        Self::parse(&text)
    }
}

impl From<BackupPath> for String {
    fn from(path: BackupPath) -> Self {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_leads_down_is_a_path() {
        for text in ["a", "a/b.c/d", "node/.x", "..."] {
            assert_eq!(BackupPath::parse(text).unwrap().as_str(), text);
        }
        let long = "x".repeat(PATH_BYTES_MAX + 1);
        for text in [
            "", "/", "/a", "a/", "a//b", "..", "../a", "a/..", "a/../b", ".", "a/./b", "a\0b",
            &long,
        ] {
            assert!(BackupPath::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_parent_is_one_step_up() {
        let path = BackupPath::parse("a/b/c").unwrap();
        let parent = path.parent().unwrap();
        assert_eq!(parent.as_str(), "a/b");
        assert_eq!(parent.parent().unwrap().parent(), None);
    }
}
