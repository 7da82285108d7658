//! What a process writes to guest memory from some moment on.
//!
//! The engine's library opens a userfaultfd at the start and does nothing with it; here it is
//! borrowed, and guest memory registered with it. From then on the kernel notes the first write to
//! each page by itself, and nobody waits for anybody: a write to a page that counts as unwritten
//! costs the guest one short fault. What was noted is read and taken back in one walk over the page
//! table, in which no write is lost.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::{GuestMemory, GuestMemoryError, PAGE_BYTES, Pages, join};
use crate::sys::{self, AddressRange, Written};

/// What the kernel calls the descriptor.
const FAULT_DESCRIPTOR: &str = "anon_inode:[userfaultfd]";
/// Ranges that one walk answers before it is asked to go on.
const RANGES_AT_ONCE: usize = 16_384;

/// Notes which pages a process writes. Dropping it leaves the noting on: it costs the process
/// next to nothing, and the next one starts where this ended.
#[derive(Debug)]
pub struct WriteTracker {
    memory: GuestMemory,
    table: File,
    ranges: Vec<AddressRange>,
    /// Held so that the noting goes on though the process may close its own.
    _faults: OwnedFd,
}

impl GuestMemory {
    /// Notes from now on what is written. `None` when the process has opened nothing for that, or
    /// the kernel cannot.
    ///
    /// # Errors
    /// [`GuestMemoryError`] when it should be possible and is not.
    pub fn track(&self) -> Result<Option<WriteTracker>, GuestMemoryError> {
        let Some(faults) = self.fault_descriptor().map_err(GuestMemoryError::Track)? else {
            return Ok(None);
        };
        let registered = sys::note_writes(&faults, self.start, self.bytes);
        registered.map_err(GuestMemoryError::Track)?;
        let table = File::open(format!("/proc/{}/pagemap", self.pid));
        Ok(Some(WriteTracker {
            memory: *self,
            table: table.map_err(GuestMemoryError::PageTable)?,
            ranges: vec![AddressRange::default(); RANGES_AT_ONCE],
            _faults: faults,
        }))
    }

    /// Borrows the descriptor that the process has open.
    fn fault_descriptor(&self) -> io::Result<Option<OwnedFd>> {
        for entry in fs::read_dir(format!("/proc/{}/fd", self.pid))? {
            let entry = entry?;
            // Closed meanwhile.
            let Ok(target) = fs::read_link(entry.path()) else {
                continue;
            };
            if target != Path::new(FAULT_DESCRIPTOR) {
                continue;
            }
            let number = entry.file_name().to_string_lossy().parse();
            let number = number.map_err(|_| io::ErrorKind::InvalidData)?;
            let pid = Pid::from_raw(self.pid).ok_or(io::ErrorKind::InvalidInput)?;
            let process = pidfd_open(pid, PidfdFlags::empty())?;
            let faults = pidfd_getfd(process, number, PidfdGetfdFlags::empty())?;
            // An engine that a guest has taken over may have put something else in its place.
            let own = format!("/proc/self/fd/{}", faults.as_raw_fd());
            if fs::read_link(own)? == Path::new(FAULT_DESCRIPTOR) {
                return Ok(Some(faults));
            }
        }
        Ok(None)
    }
}

impl WriteTracker {
    /// What was written since the last time, or ever at the first, and from now on counts as
    /// unwritten. The first answer may hold pages that nobody has written.
    ///
    /// # Errors
    /// [`GuestMemoryError`]; what was taken until then is lost, so a copy has to begin anew.
    pub fn take(&mut self) -> Result<Vec<Pages>, GuestMemoryError> {
        self.walk(self.memory.all(), Written::Take)
    }

    /// What was written since the last time, and goes on counting as written.
    ///
    /// # Errors
    /// [`GuestMemoryError`].
    pub fn look(&mut self) -> Result<Vec<Pages>, GuestMemoryError> {
        self.look_at(self.memory.all())
    }

    /// The same of some neighbouring pages, which must be pages of this memory.
    ///
    /// # Errors
    /// [`GuestMemoryError`].
    pub fn look_at(&mut self, pages: Pages) -> Result<Vec<Pages>, GuestMemoryError> {
        self.walk(pages, Written::Look)
    }

    fn walk(&mut self, pages: Pages, written: Written) -> Result<Vec<Pages>, GuestMemoryError> {
        let mut at = self.memory.start + pages.first * PAGE_BYTES;
        let end = at + pages.bytes();
        let mut found = Vec::new();
        while at < end {
            let walk = sys::written_ranges(&self.table, at, end, written, &mut self.ranges);
            let (count, reached) = walk.map_err(GuestMemoryError::Track)?;
            let page_of = |address: u64| (address - self.memory.start) / PAGE_BYTES;
            let pages: Vec<Pages> = (self.ranges[..count].iter())
                .map(|range| Pages {
                    first: page_of(range.start),
                    count: (range.end - range.start) / PAGE_BYTES,
                })
                .collect();
            found.extend(pages);
            if reached <= at {
                let stuck = io::Error::other("the walk over the page table does not go on");
                return Err(GuestMemoryError::Track(stuck));
            }
            at = reached;
        }
        // Neighbours come apart where one walk ends and the next begins, and where mappings meet.
        Ok(join(&found, &[]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{PrivateMapping, open_faults};

    const PAGES: usize = 64;
    const PAGE: usize = 4096;

    fn page(first: u64) -> Vec<Pages> {
        vec![Pages { first, count: 1 }]
    }

    /// One process has one piece of guest memory here, so all of it is one test.
    #[test]
    fn each_write_is_told_once_and_none_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        std::fs::write(&image, vec![7; PAGES * PAGE]).unwrap();
        let file = File::open(&image).unwrap();
        let mut mapping = PrivateMapping::of(&file, PAGES * PAGE).unwrap();
        let pid = i32::try_from(std::process::id()).unwrap();
        let name = image.to_str().unwrap();
        let memory = GuestMemory::find(pid, |path| path == name).unwrap();
        assert!(
            memory.track().unwrap().is_none(),
            "nothing was opened for it"
        );

        let _faults = open_faults().unwrap();
        let bytes = mapping.bytes_mut();
        bytes[0] = 1;
        let mut tracker = memory.track().unwrap().expect("it is open");
        let before = tracker.take().unwrap();
        assert!(join(&before, &page(0)) == before, "{before:?}");
        assert_eq!(tracker.take().unwrap(), [], "nobody wrote");

        // One page that was changed before, one that was only read, one that was never touched.
        assert_eq!(bytes[2 * PAGE], 7);
        for at in [0, 2, 40] {
            bytes[at * PAGE] = 2;
        }
        let wrote = [page(0), page(2), page(40)].concat();
        assert_eq!(tracker.look().unwrap(), wrote);
        let some = Pages {
            first: 1,
            count: 30,
        };
        assert_eq!(tracker.look_at(some).unwrap(), page(2));
        assert_eq!(tracker.take().unwrap(), wrote);
        assert_eq!(tracker.take().unwrap(), []);

        // What was noted as unwritten and never touched has not changed.
        assert_eq!(memory.changed().unwrap(), wrote);

        // A second tracker takes up where the first is.
        bytes[5 * PAGE] = 3;
        drop(tracker);
        let mut next = memory.track().unwrap().expect("it is open");
        assert_eq!(next.take().unwrap(), page(5));
        assert_eq!(bytes[0], 2);
    }
}
