//! Files that survive a crash, copies that keep holes, and trees that are removed safely.
//!
//! It must not know what a file is for. [`remove_tree`] and [`open_without_links`] treat what lies
//! below as hostile: a link planted there leads nowhere.

mod checksummed;
mod copy;
mod durable;
mod open;
mod remove;
mod sync;

pub use checksummed::{checked_object, with_checksum};
pub use copy::{
    CopyError, CopyMethod, allocated_bytes, copy_sparse, punch_hole, reflink_or_copy,
    reflink_supported,
};
pub use durable::{WriteAtomicError, make_directory_durable, write_atomic};
pub use open::{link_regular, open_directory, open_without_links};
pub use remove::{RemoveTreeError, remove_tree};
pub use sync::{delay_syncs, sync, sync_directory, sync_file};

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Space of the file system that a path is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSpace {
    pub total_bytes: u64,
    /// What an unprivileged process could still use.
    pub available_bytes: u64,
}

/// Reads the space of the file system that `path` is on.
///
/// # Errors
/// What the kernel said.
pub fn disk_space(path: &Path) -> io::Result<DiskSpace> {
    let space = rustix::fs::statvfs(path)?;
    Ok(DiskSpace {
        total_bytes: space.f_blocks.saturating_mul(space.f_frsize),
        available_bytes: space.f_bavail.saturating_mul(space.f_frsize),
    })
}
