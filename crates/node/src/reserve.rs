//! Room that is really held for the journal and the database.
//!
//! A file with blocks of its own lies in the node's directory. When the disk is full a slice of it
//! is given up, so that what the node and the control plane must write down still finds room, and
//! taken back when there is room again. Guests do not get it: one whose write finds no room stands
//! still until there is far more than a slice.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dayfly_types::limits::{DISK_RESUME_MIB, RESERVE_FILE_MIB, RESERVE_SLICE_MIB};
use rustix::fs::{FallocateFlags, fallocate};

/// The file, and how much of it is held.
#[derive(Debug)]
pub struct ReserveFile {
    file: File,
    held_mib: Mutex<u64>,
    /// When free space alone was the reason to give something up.
    given_at: Mutex<Option<Instant>>,
}

/// How often a slice is given up for want of free space alone. A guest that writes takes the one
/// before it, stands still, and leaves the next to the journal and the database.
const GIVE_UP_PAUSE: Duration = Duration::from_secs(10);

impl ReserveFile {
    /// Opens the file, or makes it. Nothing more is taken yet than an earlier run held.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        let held = (file.metadata()?.len() >> 20).min(RESERVE_FILE_MIB);
        Ok(Self {
            file,
            held_mib: Mutex::new(held),
            given_at: Mutex::new(None),
        })
    }

    fn held(&self) -> MutexGuard<'_, u64> {
        self.held_mib.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much is held, in MiB.
    #[must_use]
    pub fn held_mib(&self) -> u64 {
        *self.held()
    }

    /// Gives a slice up. Answers whether there was one.
    pub fn give_up(&self) -> bool {
        let mut held = self.held();
        if *held == 0 {
            return false;
        }
        let left = held.saturating_sub(RESERVE_SLICE_MIB);
        if let Err(error) = self.file.set_len(left << 20) {
            tracing::warn!(%error, "cannot give up a part of the reserve");
            return false;
        }
        *held = left;
        tracing::warn!(
            held_mib = left,
            "the disk is full; a part of the reserve was given up"
        );
        true
    }

    fn is_due(&self) -> bool {
        let mut given_at = self.given_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = given_at.is_none_or(|at| at.elapsed() >= GIVE_UP_PAUSE);
        if is_due {
            *given_at = Some(Instant::now());
        }
        is_due
    }

    /// Does what the free space asks for: gives a slice up when there is next to none, and takes
    /// back what can be had without getting in the way of guests that wait. Answers what is free
    /// afterwards.
    pub(crate) fn keep(&self, available_mib: u64) -> u64 {
        if available_mib < RESERVE_SLICE_MIB {
            let given = self.is_due() && self.give_up();
            return available_mib + if given { RESERVE_SLICE_MIB } else { 0 };
        }
        let mut held = self.held();
        let mut left = available_mib;
        while *held < RESERVE_FILE_MIB && left >= RESERVE_SLICE_MIB + DISK_RESUME_MIB {
            let (from, length) = (*held << 20, RESERVE_SLICE_MIB << 20);
            // A file system that cannot do this holds no reserve; that is no reason to stop.
            if let Err(error) = fallocate(&self.file, FallocateFlags::empty(), from, length) {
                tracing::debug!(%error, "cannot take a part of the reserve");
                break;
            }
            *held += RESERVE_SLICE_MIB;
            left -= RESERVE_SLICE_MIB;
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_reserve_is_taken_given_up_and_taken_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("reserve");
        let reserve = ReserveFile::open(&path).unwrap();
        let left = reserve.keep(1000);
        assert_eq!(
            (reserve.held_mib(), left),
            (RESERVE_FILE_MIB, 1000 - RESERVE_FILE_MIB)
        );
        let blocks = || (std::fs::metadata(&path).unwrap().blocks() * 512) >> 20;
        assert_eq!(blocks(), RESERVE_FILE_MIB, "it is not really held");
        assert_eq!(reserve.keep(0), RESERVE_SLICE_MIB);
        assert_eq!(reserve.keep(0), 0, "guests that write would take it all");
        assert_eq!(blocks(), RESERVE_FILE_MIB - RESERVE_SLICE_MIB);
        // Little room is left to those that wait for it.
        assert_eq!(reserve.keep(DISK_RESUME_MIB), DISK_RESUME_MIB);
        while reserve.give_up() {}
        assert_eq!((reserve.held_mib(), blocks()), (0, 0));
        assert_eq!(ReserveFile::open(&path).unwrap().held_mib(), 0);
        reserve.keep(1000);
        assert_eq!(
            ReserveFile::open(&path).unwrap().held_mib(),
            RESERVE_FILE_MIB
        );
    }
}
