//! A file that holds the newest bytes of a stream: the byte at an offset has its place at the
//! remainder of the offset by the capacity.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use dayfly_types::limits::EXEC_LOG_BYTES_MIN;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::directory::LogDirectory;

/// How much of the disk is reserved at once for a log that may not drop anything; the lesser when
/// there is no place for the greater.
const RESERVE_BYTES: [u64; 2] = [1 << 20, EXEC_LOG_BYTES_MIN];

#[derive(Debug)]
pub(super) struct Ring {
    file: OwnedFd,
    capacity: u64,
    /// Up to where the file system has promised space.
    reserved: u64,
    directory: Rc<LogDirectory>,
    name: String,
}

impl Ring {
    pub(super) fn create(
        directory: &Rc<LogDirectory>,
        name: &str,
        capacity: u64,
    ) -> io::Result<Self> {
        Ok(Self {
            file: directory.create(name)?,
            capacity,
            reserved: 0,
            directory: Rc::clone(directory),
            name: name.to_owned(),
        })
    }

    pub(super) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Stores bytes from an offset on; at most a whole ring of them. Gives how many the disk took
    /// before it refused one.
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> usize {
        let mut stored = 0;
        while stored < bytes.len() {
            let position = (offset + stored as u64) % self.capacity;
            let rest = &bytes[stored..];
            let rest = &rest[..clamp(self.capacity - position, rest.len())];
            match rustix::io::pwrite(&self.file, rest, position) {
                Ok(0) => break,
                Ok(count) => stored += count,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        stored
    }

    /// Reads bytes from an offset on. Gives fewer than asked for only when the file cannot be
    /// read.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < into.len() {
            let position = (offset + filled as u64) % self.capacity;
            let rest = &mut into[filled..];
            let wanted = clamp(self.capacity - position, rest.len());
            match rustix::io::pread(&self.file, &mut rest[..wanted], position) {
                // Shorter than it was: root in the guest has cut it.
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        filled
    }

    /// Makes a ring of the bytes up to `end`, none of which may have been overwritten yet. Gives
    /// whether that is enough to be of use.
    pub(super) fn shrink_to(&mut self, end: u64) -> bool {
        let is_useful = (EXEC_LOG_BYTES_MIN..self.capacity).contains(&end);
        if is_useful {
            self.capacity = end;
            self.reserved = end;
        }
        is_useful
    }

    /// How many bytes from `end` on can be stored for certain. Only for a first lap. Zero when the
    /// disk has no more space.
    pub(super) fn reserve(&mut self, end: u64) -> u64 {
        for bytes in RESERVE_BYTES {
            let more = bytes.min(self.capacity - self.reserved);
            if end < self.reserved || more == 0 {
                break;
            }
            let flags = FallocateFlags::KEEP_SIZE;
            match rustix::fs::fallocate(&self.file, flags, self.reserved, more) {
                Ok(()) => self.reserved += more,
                // A file system without promises: it refuses when it is written to.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.reserved = self.capacity,
                Err(_) => {}
            }
        }
        self.reserved.saturating_sub(end)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.directory.remove(&self.name);
    }
}

/// The smaller of both, as a length in memory.
pub(super) fn clamp(bytes: u64, most: usize) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX).min(most)
}
