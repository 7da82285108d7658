//! The list that makes a directory of files a backup.
//!
//! Its text is one JSON object whose last key is `checksum`, the BLAKE3 of the same object without
//! that key, so that a flipped bit in the list is found as well.

use std::collections::BTreeMap;

use dayfly_host::files::{checked_object, with_checksum};
use dayfly_types::limits::{BACKUP_ENTRIES_MAX, BACKUP_FILE_BYTES_MAX};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::path::BackupPath;

/// The format that this program writes, and the newest that it reads.
pub const BACKUP_FORMAT: u32 = 1;

/// Of the mode of a file or directory. Nothing in a backup acts with the rights of its owner.
const MODE_BITS: u32 = 0o777;

/// What is in a backup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupManifest {
    pub format: u32,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// The version of the program that made it.
    pub program: String,
    /// What the files are, in the words of whoever made it.
    pub contents: serde_json::Value,
    /// Directories before what is in them.
    pub entries: Vec<BackupEntry>,
}

/// One thing in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum BackupEntry {
    Directory {
        path: BackupPath,
        mode: u32,
    },
    File {
        path: BackupPath,
        mode: u32,
        bytes: u64,
        blake3: String,
    },
    /// A symbolic link to something beside or below it.
    Link {
        path: BackupPath,
        target: BackupPath,
    },
}

impl BackupEntry {
    #[must_use]
    pub const fn path(&self) -> &BackupPath {
        match self {
            Self::Directory { path, .. } | Self::File { path, .. } | Self::Link { path, .. } => {
                path
            }
        }
    }

    const fn mode(&self) -> u32 {
        match self {
            Self::Directory { mode, .. } | Self::File { mode, .. } => *mode,
            Self::Link { .. } => 0,
        }
    }
}

/// Why a text is no list of a backup that this program can read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestRefusal {
    #[error("it does not fit its checksum: it is damaged or was changed")]
    Checksum,
    #[error("it is not valid")]
    Syntax(#[source] serde_json::Error),
    #[error(
        "it has format {found}, and this program reads up to {BACKUP_FORMAT}; use the release that \
         made it, or a later one"
    )]
    Newer { found: u32 },
    #[error("it has more than {BACKUP_ENTRIES_MAX} entries")]
    TooMany,
    #[error("{path} is there twice")]
    Twice { path: BackupPath },
    #[error("{path} lies in no directory of the backup")]
    Nowhere { path: BackupPath },
    #[error("{path} has a mode or a size that nothing in a backup has")]
    Odd { path: BackupPath },
}

impl BackupManifest {
    /// The text that is stored.
    ///
    /// # Errors
    /// [`ManifestRefusal`], also when what it says could not be read again.
    pub fn encode(&self) -> Result<Vec<u8>, ManifestRefusal> {
        self.check()?;
        let text = serde_json::to_vec(self).map_err(ManifestRefusal::Syntax)?;
        Ok(with_checksum(text))
    }

    /// Reads a text that was stored.
    ///
    /// # Errors
    /// [`ManifestRefusal`].
    pub fn decode(text: &[u8]) -> Result<Self, ManifestRefusal> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let body = checked_object(text).ok_or(ManifestRefusal::Checksum)?;
        // What a later format says beyond this is not this program's to judge.
        let head: Head = serde_json::from_slice(&body).map_err(ManifestRefusal::Syntax)?;
        if head.format > BACKUP_FORMAT {
            return Err(ManifestRefusal::Newer { found: head.format });
        }
        let manifest: Self = serde_json::from_slice(&body).map_err(ManifestRefusal::Syntax)?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), ManifestRefusal> {
        if self.entries.len() > BACKUP_ENTRIES_MAX {
            return Err(ManifestRefusal::TooMany);
        }
        let mut known: BTreeMap<&BackupPath, bool> = BTreeMap::new();
        for entry in &self.entries {
            let path = entry.path();
            let parent = path.parent();
            if parent.is_some_and(|parent| known.get(&parent) != Some(&true)) {
                return Err(ManifestRefusal::Nowhere { path: path.clone() });
            }
            if entry.mode() & !MODE_BITS != 0 || entry.is_too_large() {
                return Err(ManifestRefusal::Odd { path: path.clone() });
            }
            let is_directory = matches!(entry, BackupEntry::Directory { .. });
            if known.insert(path, is_directory).is_some() {
                return Err(ManifestRefusal::Twice { path: path.clone() });
            }
        }
        Ok(())
    }

    /// The bytes of all files together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(BackupEntry::bytes).sum()
    }

    /// How many files there are.
    #[must_use]
    pub fn files(&self) -> usize {
        let is_file = |entry: &&BackupEntry| matches!(entry, BackupEntry::File { .. });
        self.entries.iter().filter(is_file).count()
    }
}

impl BackupEntry {
    const fn bytes(&self) -> u64 {
        match self {
            Self::File { bytes, .. } => *bytes,
            Self::Directory { .. } | Self::Link { .. } => 0,
        }
    }

    const fn is_too_large(&self) -> bool {
        self.bytes() > BACKUP_FILE_BYTES_MAX
    }
}
