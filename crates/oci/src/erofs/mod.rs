//! Writes a tree as an EROFS file system, which the guest mounts as its read-only base.
//!
//! ```text
//! block 0        superblock, at byte 1024
//! blocks         contents of files, where the tree says that they are
//! from `first`   inodes, each with its attributes and the end of what it holds
//! behind them    whole blocks of directories and of long links
//! ```
//! Nothing is compressed: its pages are shared by all sandboxes of the host. There is no program in
//! between that takes names or a directory of this host, so nothing that an image says can lead
//! anywhere but into this file. Start reading at [`write`].

mod directory;
mod inode;
mod plan;
mod sink;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::data::BLOCK_BYTES;
use crate::tree::Tree;

use plan::Plan;

const SUPERBLOCK_PLACE: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 128;
const MAGIC: u32 = 0xe0f5_e1e2;
const BLOCK_BITS: u8 = 12;
const _: () = assert!(1 << BLOCK_BITS == BLOCK_BYTES);
/// Times of files are those of their last change.
const FEATURE_MTIME: u32 = 2;

/// Why no file system was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("cannot write the file system")]
    Write(#[source] io::Error),
    #[error("the image is larger than a file system can be")]
    TooLarge,
}

/// A file system that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Of the file that holds it.
    pub bytes: u64,
    pub inodes: u64,
}

/// Writes everything but the contents of files, which are in `file` already, below block `first`.
/// The superblock comes last: until then the file is no file system.
///
/// # Errors
/// [`WriteError`]
pub fn write(
    tree: &Tree,
    file: &File,
    first: u32,
    identity: [u8; 16],
) -> Result<Written, WriteError> {
    let plan = Plan::new(tree, first).ok_or(WriteError::TooLarge)?;
    plan.write(file).map_err(WriteError::Write)?;
    let bytes = u64::from(plan.end()) * BLOCK_BYTES;
    let finish = || {
        file.set_len(bytes)?;
        file.write_all_at(&superblock(&plan, identity), SUPERBLOCK_PLACE)
    };
    finish().map_err(WriteError::Write)?;
    Ok(Written {
        bytes,
        inodes: plan.inodes(),
    })
}

fn superblock(plan: &Plan<'_>, identity: [u8; 16]) -> [u8; SUPERBLOCK_BYTES] {
    let mut bytes = [0; SUPERBLOCK_BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &MAGIC.to_le_bytes());
    put(8, &FEATURE_MTIME.to_le_bytes());
    put(12, &[BLOCK_BITS]);
    put(14, &plan.root().to_le_bytes());
    put(16, &plan.inodes().to_le_bytes());
    put(36, &plan.end().to_le_bytes());
    put(40, &plan.first().to_le_bytes());
    put(48, &identity);
    bytes
}

#[cfg(test)]
mod tests;
