//! Finding and copying the memory in which a process differs from the files that it maps.
//!
//! An engine maps guest memory privately from one or more files, each page at the same place in
//! its file as in the guest. A page that was written since is no file page any more, and the
//! kernel says so in `pagemap`. Nothing has to run in the engine for that.
//!
//! What changes while this runs may or may not be in a copy. So the caller pauses the guest, or
//! asks a [`WriteTracker`] afterwards what has to be copied again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::parse_mapping_header;
use crate::process::{ProcessError, read_process_file};
use crate::sys::read_remote;

mod pages;
mod tracker;

pub use pages::{Pages, both, join, merge_to, sorted, without};
use pages::{cut, push};
pub use tracker::WriteTracker;

/// The page size of every machine we run on.
pub const PAGE_BYTES: u64 = 4096;
const PAGE: usize = 4096;
const _: () = assert!(PAGE as u64 == PAGE_BYTES);
/// One entry of `pagemap`.
const ENTRY_BYTES: usize = 8;
/// Entries read at once: 256 MiB of memory.
const ENTRIES_AT_ONCE: usize = 65_536;
/// How much one thread reads and writes in one step: small enough that what was read is still in
/// the processor's cache when it is written.
const COPY_BYTES: u64 = 128 << 10;
/// More threads than this only fight for the memory bus.
const COPY_THREADS_MAX: usize = 4;

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const FILE_OR_SHARED: u64 = 1 << 61;
/// Of an entry that is not present, where its page is. The last of these is no place: the kernel
/// remembers there that a page which nobody has touched counts as unwritten.
const PLACE: u64 = 0x1f;
const REMEMBERED_ONLY: u64 = 0x1f;

/// Why memory was not found or copied.
#[derive(Debug, thiserror::Error)]
pub enum GuestMemoryError {
    #[error("cannot read the mappings of the engine")]
    Mappings(#[source] ProcessError),
    #[error("the engine does not map guest memory in one piece")]
    NotMapped,
    #[error("guest memory is mapped shared")]
    Shared,
    #[error("cannot read the engine's page table")]
    PageTable(#[source] io::Error),
    #[error("cannot read the engine's memory")]
    Read(#[source] io::Error),
    #[error("cannot write the memory layer")]
    Write(#[source] io::Error),
    #[error("cannot find out what the guest writes")]
    Track(#[source] io::Error),
}

/// Where a process has guest memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestMemory {
    pid: i32,
    /// The address of guest page 0.
    start: u64,
    bytes: u64,
}

/// A change made to the copy only: in a page that begins with `prefix`, one byte gets a value.
#[derive(Debug, Clone, Copy)]
pub struct Patch<'a> {
    pub prefix: &'a [u8],
    pub offset: usize,
    pub value: u8,
}

impl GuestMemory {
    /// Finds guest memory in a process by the paths of the files that it is mapped from, and
    /// makes sure that no mapping writes through to one of them.
    ///
    /// # Errors
    /// [`GuestMemoryError`] when there is none, in several places, with a gap, or a shared one.
    pub fn find(
        pid: i32,
        is_guest_memory: impl Fn(&str) -> bool,
    ) -> Result<Self, GuestMemoryError> {
        let text = read_process_file(pid, "maps").map_err(GuestMemoryError::Mappings)?;
        let mut start = None;
        let (mut covered, mut end) = (0, 0);
        for line in text.lines() {
            let Some(header) = parse_mapping_header(line) else {
                continue;
            };
            let path = header.path.trim_end_matches(" (deleted)");
            if !is_guest_memory(path) {
                continue;
            }
            if header.permissions.ends_with('s') {
                return Err(GuestMemoryError::Shared);
            }
            let base = header.start.checked_sub(header.offset);
            if base.is_none() || start.is_some_and(|start| Some(start) != base) {
                return Err(GuestMemoryError::NotMapped);
            }
            start = base;
            covered += header.end - header.start;
            end = end.max(header.offset + (header.end - header.start));
        }
        match start {
            Some(start) if covered == end => Ok(Self {
                pid,
                start,
                bytes: covered,
            }),
            _ => Err(GuestMemoryError::NotMapped),
        }
    }

    /// How much there is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Every page of it.
    fn all(&self) -> Pages {
        Pages {
            first: 0,
            count: self.bytes / PAGE_BYTES,
        }
    }

    /// The pages that the process has changed, in order.
    ///
    /// # Errors
    /// When the kernel does not show its page table; that takes root.
    pub fn changed(&self) -> Result<Vec<Pages>, GuestMemoryError> {
        let table = File::open(format!("/proc/{}/pagemap", self.pid))
            .map_err(GuestMemoryError::PageTable)?;
        let total = self.bytes / PAGE_BYTES;
        let mut buffer = vec![0; ENTRIES_AT_ONCE * ENTRY_BYTES];
        let mut found: Vec<Pages> = Vec::new();
        let mut page = 0;
        while page < total {
            let count = (total - page).min(ENTRIES_AT_ONCE as u64);
            let wanted = usize::try_from(count).unwrap_or(ENTRIES_AT_ONCE) * ENTRY_BYTES;
            let at = (self.start / PAGE_BYTES + page) * ENTRY_BYTES as u64;
            table
                .read_exact_at(&mut buffer[..wanted], at)
                .map_err(GuestMemoryError::PageTable)?;
            for entry in buffer[..wanted].as_chunks::<ENTRY_BYTES>().0 {
                if is_changed(u64::from_ne_bytes(*entry)) {
                    push(&mut found, page);
                }
                page += 1;
            }
        }
        Ok(found)
    }

    /// Copies pages to the same places in `layer`. Answers how many pages the patch has changed.
    ///
    /// # Errors
    /// [`GuestMemoryError`]; the layer then holds some of the pages.
    pub fn copy(
        &self,
        pages: &[Pages],
        layer: &Path,
        patch: Option<Patch<'_>>,
    ) -> Result<u64, GuestMemoryError> {
        let layer = File::options()
            .write(true)
            .open(layer)
            .map_err(GuestMemoryError::Write)?;
        layer.set_len(self.bytes).map_err(GuestMemoryError::Write)?;
        let jobs = cut(pages);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = processors.min(COPY_THREADS_MAX).min(jobs.len());
        let patched = AtomicU64::new(0);
        let share = jobs.len().div_ceil(threads.max(1)).max(1);
        // Each thread takes neighbouring pieces, so that each writes its part of the file in order.
        std::thread::scope(|scope| {
            let workers: Vec<_> = jobs
                .chunks(share)
                .map(|jobs| scope.spawn(|| self.copy_jobs(jobs, &layer, patch, &patched)))
                .collect();
            workers.into_iter().try_for_each(|worker| {
                let lost = GuestMemoryError::Read(io::Error::other("a copying thread panicked"));
                worker.join().unwrap_or(Err(lost))
            })
        })?;
        Ok(patched.into_inner())
    }

    fn copy_jobs(
        &self,
        jobs: &[Pages],
        layer: &File,
        patch: Option<Patch<'_>>,
        patched: &AtomicU64,
    ) -> Result<(), GuestMemoryError> {
        let mut buffer = vec![0; usize::try_from(COPY_BYTES).unwrap_or(PAGE)];
        for job in jobs {
            let offset = job.first * PAGE_BYTES;
            let length = usize::try_from(job.count * PAGE_BYTES).unwrap_or(buffer.len());
            let piece = &mut buffer[..length];
            read_remote(self.pid, self.start + offset, piece).map_err(GuestMemoryError::Read)?;
            if let Some(patch) = patch {
                patched.fetch_add(apply(piece, patch), Ordering::Relaxed);
            }
            layer
                .write_all_at(piece, offset)
                .map_err(GuestMemoryError::Write)?;
        }
        Ok(())
    }
}

fn is_changed(entry: u64) -> bool {
    if entry & SWAPPED != 0 {
        return entry & PLACE != REMEMBERED_ONLY;
    }
    entry & PRESENT != 0 && entry & FILE_OR_SHARED == 0
}

fn apply(piece: &mut [u8], patch: Patch<'_>) -> u64 {
    let mut count = 0;
    for page in piece.as_chunks_mut::<PAGE>().0 {
        if page.starts_with(patch.prefix)
            && let Some(byte) = page.get_mut(patch.offset)
        {
            *byte = patch.value;
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(ranges: &[(u64, u64)]) -> Vec<Pages> {
        ranges
            .iter()
            .map(|&(first, count)| Pages { first, count })
            .collect()
    }

    /// The test's own process maps a file privately and writes to two of its pages.
    #[test]
    fn only_written_pages_are_found_and_copied() {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        std::fs::write(&image, vec![7; 16 * 4096]).unwrap();
        let file = File::open(&image).unwrap();
        let mut mapping = crate::sys::PrivateMapping::of(&file, 16 * 4096).unwrap();
        let bytes = mapping.bytes_mut();
        assert_eq!(bytes[0], 7);
        bytes[3 * 4096] = 1;
        bytes[4 * 4096 + 9] = 2;
        bytes[15 * 4096..15 * 4096 + 4].copy_from_slice(b"mark");
        let pid = i32::try_from(std::process::id()).unwrap();
        let name = image.to_str().unwrap();
        let memory = GuestMemory::find(pid, |path| path == name).unwrap();
        assert_eq!(memory.bytes(), 16 * 4096);
        let changed = memory.changed().unwrap();
        assert_eq!(changed, pages(&[(3, 2), (15, 1)]));
        let layer = directory.path().join("layer");
        File::create(&layer).unwrap();
        let patch = Patch {
            prefix: b"mark",
            offset: 4,
            value: 9,
        };
        assert_eq!(memory.copy(&changed, &layer, Some(patch)).unwrap(), 1);
        let copy = std::fs::read(&layer).unwrap();
        assert_eq!(copy.len(), 16 * 4096);
        assert_eq!((copy[3 * 4096], copy[3 * 4096 + 1]), (1, 7));
        assert_eq!(&copy[15 * 4096..15 * 4096 + 5], b"mark\x09");
        assert_eq!(copy[0], 0, "an unchanged page was copied");
        assert_eq!(std::fs::read(&image).unwrap(), vec![7; 16 * 4096]);
    }

    #[test]
    fn a_process_without_such_a_mapping_is_refused() {
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(matches!(
            GuestMemory::find(pid, |path| path == "/no such file"),
            Err(GuestMemoryError::NotMapped)
        ));
    }
}
