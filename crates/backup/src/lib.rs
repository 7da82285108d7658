//! What a backup is: files and a list of them with the digest of each, in a directory or in one
//! stream, and read back with every byte looked at.
//!
//! ```text
//! DIR/data/...        the files, where they lie below a data directory
//! DIR/manifest.json   written last: without it there is no backup
//! ```
//! A stream is a tar archive of the same, in the same order. It must not know what the files are
//! for. What is read is hostile: a path leads nowhere but below the place that was named, and
//! nothing is written through a link. Start reading at [`manifest`], then [`writer`] and [`reader`].
#![forbid(unsafe_code)]

mod content;
pub mod manifest;
mod path;
pub mod reader;
mod stream_reader;
mod target;
pub mod writer;

pub use manifest::{BACKUP_FORMAT, BackupEntry, BackupManifest, ManifestRefusal};
pub use path::{BackupPath, InvalidBackupPath};
pub use reader::{BackupSource, ReadBackupError, read};
pub use target::BackupTarget;
pub use writer::{BackupDestination, BackupWriter, WriteBackupError};

/// Where the files are.
const DATA: &str = "data";
/// The list of them.
const MANIFEST: &str = "manifest.json";

/// Told of the bytes that were worked through; `false` ends the work.
pub type BytesWatch<'a> = dyn FnMut(u64) -> bool + 'a;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
