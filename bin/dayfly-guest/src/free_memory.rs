//! Memory that nobody in the guest uses: how much it is, and which pages.
//!
//! The kernel says of each page frame whether it is in the hands of its allocator (`kpageflags`).
//! What such a page holds means nothing to anyone: who gets it writes to it before it is read. That
//! is not so where the kernel clears or marks pages when they are freed and relies on it later; then
//! no page is told.
//!
//! The kernel looks at a frame without holding anything still, and in a moment that is as good as
//! none it can take a frame in the middle of an allocation for a free one. So only whole blocks are
//! told: the first frame of an allocation is never mistaken, and one that spans several blocks would
//! have to be mistaken at each of its frames.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};

use dayfly_guest_proto::{FreePages, GuestError, Response};

use crate::refusal::guest_error;

/// One frame in the table.
const ENTRY_BYTES: usize = 8;
/// What is read of the table at once.
const CHUNK_BYTES: usize = 64 << 10;
/// In the hands of the allocator. The kernel says so of each page of a free block.
const BUDDY: u64 = 1 << 10;
/// Words of the kernel's command line by which it uses what is in free pages.
const USES_FREE_PAGES: [&str; 3] = ["init_on_free", "page_poison", "debug_pagealloc"];
/// What such a word ends with when it says that it is not so.
const OFF: [&str; 3] = ["=0", "=off", "=n"];

/// Which pages to tell of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FreePagesWanted {
    /// Only blocks of so many frames, at a multiple of it, all of which are free.
    pub(crate) block_pages: u32,
    /// Beyond it the smallest are left out.
    pub(crate) ranges_max: u32,
}

/// How much is free.
pub(crate) fn amount() -> Result<Response, GuestError> {
    let text = fs::read_to_string("/proc/meminfo");
    let bytes = text.and_then(|text| {
        let field = text.lines().find_map(|line| line.strip_prefix("MemFree:"));
        let kib = field.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.map(|kib| kib << 10)
            .ok_or(ErrorKind::InvalidData.into())
    });
    let bytes = bytes.map_err(|error| guest_error("cannot find out how much is free", &error))?;
    Ok(Response::FreeMemory { bytes })
}

impl FreePagesWanted {
    /// Finds them. Takes a while, so a child does it.
    pub(crate) fn find(self) -> Result<Response, GuestError> {
        let ranges = self.look();
        let ranges = ranges.map_err(|error| guest_error("cannot find free pages", &error))?;
        Ok(Response::FreePages { ranges })
    }

    fn look(self) -> io::Result<Vec<FreePages>> {
        if uses_free_pages(&fs::read_to_string("/proc/cmdline")?) {
            return Ok(Vec::new());
        }
        let mut table = File::open("/proc/kpageflags")?;
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut found = Found::new(self);
        loop {
            let count = match table.read(&mut buffer) {
                Ok(0) => return Ok(found.end()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            // The kernel gives whole entries.
            for entry in buffer[..count].as_chunks::<ENTRY_BYTES>().0 {
                found.note(u64::from_ne_bytes(*entry) & BUDDY != 0);
            }
        }
    }
}

fn uses_free_pages(command_line: &str) -> bool {
    let says_so = |word: &str| {
        let is_about = USES_FREE_PAGES.iter().any(|start| word.starts_with(start));
        is_about && !OFF.iter().any(|end| word.ends_with(end))
    };
    command_line.split_whitespace().any(says_so)
}

/// Ranges as they are found, frame by frame.
#[derive(Debug)]
struct Found {
    wanted: FreePagesWanted,
    ranges: Vec<FreePages>,
    /// The frames up to here were noted.
    end: u64,
    /// Whether all frames of the block that ends behind that were free so far.
    is_block_free: bool,
    /// How many free frames end with the block before.
    run: u64,
}

impl Found {
    fn new(wanted: FreePagesWanted) -> Self {
        Self {
            wanted,
            ranges: Vec::new(),
            end: 0,
            is_block_free: true,
            run: 0,
        }
    }

    fn note(&mut self, is_free: bool) {
        self.is_block_free &= is_free;
        self.end += 1;
        let block = u64::from(self.wanted.block_pages.max(1));
        if self.end.is_multiple_of(block) {
            if std::mem::replace(&mut self.is_block_free, true) {
                self.run += block;
            } else {
                self.end_run(self.end - block);
            }
        }
    }

    fn end_run(&mut self, end: u64) {
        let count = std::mem::take(&mut self.run);
        if count > 0 {
            let first = end - count;
            self.ranges.push(FreePages { first, count });
            // Sorted out now and then, so that a large guest needs no more room than a small one.
            if self.ranges.len() >= 4 * self.ranges_max().max(1) {
                self.keep_largest();
            }
        }
    }

    fn ranges_max(&self) -> usize {
        usize::try_from(self.wanted.ranges_max).unwrap_or(usize::MAX / 4)
    }

    fn keep_largest(&mut self) {
        let by_size = |range: &FreePages| std::cmp::Reverse(range.count);
        self.ranges.sort_unstable_by_key(by_size);
        self.ranges.truncate(self.ranges_max());
    }

    fn end(mut self) -> Vec<FreePages> {
        // What is behind the last whole block is left out.
        let block = u64::from(self.wanted.block_pages.max(1));
        self.end_run(self.end - self.end % block);
        self.keep_largest();
        self.ranges.sort_unstable_by_key(|range| range.first);
        self.ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, block_pages: u32, ranges_max: u32) -> Vec<(u64, u64)> {
        let mut found = Found::new(FreePagesWanted {
            block_pages,
            ranges_max,
        });
        text.chars().for_each(|frame| found.note(frame == 'f'));
        let ranges = found.end();
        ranges
            .into_iter()
            .map(|range| (range.first, range.count))
            .collect()
    }

    #[test]
    fn runs_of_free_frames_are_found() {
        assert_eq!(found("ff..fff.f", 1, 9), [(0, 2), (4, 3), (8, 1)]);
        assert_eq!(found("....", 0, 9), []);
        assert_eq!(found("", 0, 9), []);
    }

    #[test]
    fn only_whole_blocks_are_told() {
        assert_eq!(found("ff.fffff.f", 2, 9), [(0, 2), (4, 4)]);
        assert_eq!(found(".fff.fff", 4, 9), []);
        assert_eq!(found("fffffffff", 4, 9), [(0, 8)]);
        assert_eq!(found("...ffff", 4, 9), []);
    }

    #[test]
    fn the_largest_are_told_in_their_order() {
        assert_eq!(found("ff.f.fff.f.f.ffff.f", 1, 2), [(5, 3), (13, 4)]);
        assert_eq!(found("f.ff", 1, 0), []);
        let many = "f.".repeat(1000) + "ff";
        assert_eq!(found(&many, 1, 1), [(2000, 2)]);
    }

    #[test]
    fn a_kernel_that_uses_what_is_in_free_pages_is_told_by_its_command_line() {
        for text in [
            "quiet init_on_free=1",
            "page_poison=on x",
            "debug_pagealloc",
            "init_on_free",
        ] {
            assert!(uses_free_pages(text), "{text}");
        }
        for text in [
            "",
            "init_on_alloc=1 quiet",
            "init_on_free=0",
            "page_poison=off",
            "xinit_on_free=1",
        ] {
            assert!(!uses_free_pages(text), "{text}");
        }
    }

    #[test]
    fn it_is_known_how_much_is_free() {
        let amount = amount().unwrap();
        assert!(matches!(amount, Response::FreeMemory { bytes } if bytes > 0));
    }
}
