//! Where the machine has the page frames of its guest.
//!
//! `microvm` has memory from address 0 up to 3 GiB, and what is more from 4 GiB on. In the file, or
//! the mapping, that is memory, there is no hole.

use dayfly_host::guest_memory::{PAGE_BYTES, Pages, sorted};
use dayfly_vmm::FrameRange;

/// The frames below the hole, and the first one above it.
const LOW_FRAMES: u64 = (3 << 30) / PAGE_BYTES;
const HIGH_FRAME: u64 = (4 << 30) / PAGE_BYTES;

/// The pages that some frames are, in order. A guest may say anything; what this machine does not
/// have is left out.
pub(crate) fn pages_of(frames: &[FrameRange], memory_bytes: u64) -> Vec<Pages> {
    let all = memory_bytes / PAGE_BYTES;
    let low = all.min(LOW_FRAMES);
    let mut pages = Vec::with_capacity(frames.len());
    for range in frames {
        let end = range.first.saturating_add(range.count);
        pages.extend(between(range.first, end.min(low)));
        // Above the hole a frame is as much further down as the hole is large.
        let high_end = (end.max(HIGH_FRAME) - (HIGH_FRAME - LOW_FRAMES)).min(all);
        let high_first = range.first.max(HIGH_FRAME) - (HIGH_FRAME - LOW_FRAMES);
        pages.extend(between(high_first, high_end));
    }
    sorted(pages)
}

fn between(first: u64, end: u64) -> Option<Pages> {
    let count = end.checked_sub(first).filter(|count| *count > 0)?;
    Some(Pages { first, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(frames: &[(u64, u64)], memory_mib: u64) -> Vec<(u64, u64)> {
        let frames: Vec<FrameRange> = frames
            .iter()
            .map(|&(first, count)| FrameRange { first, count })
            .collect();
        let pages = pages_of(&frames, memory_mib << 20);
        pages
            .iter()
            .map(|range| (range.first, range.count))
            .collect()
    }

    #[test]
    fn a_small_machine_has_each_frame_where_its_number_says() {
        assert_eq!(of(&[(3, 2), (9, 1)], 512), [(3, 2), (9, 1)]);
    }

    #[test]
    fn above_the_hole_a_frame_is_a_gibibyte_further_down() {
        let gib = (1 << 30) / PAGE_BYTES;
        assert_eq!(of(&[(4 * gib, 5)], 4096), [(3 * gib, 5)]);
        assert_eq!(of(&[(3 * gib - 1, 5)], 4096), [(3 * gib - 1, 1)]);
        // A range over the hole is what lies on both sides of it.
        assert_eq!(of(&[(3 * gib - 1, gib + 2)], 4096), [(3 * gib - 1, 2)]);
        assert_eq!(of(&[(3 * gib, gib)], 4096), []);
    }

    #[test]
    fn what_a_hostile_guest_says_is_cut_to_what_there_is() {
        let pages = (512 << 20) / PAGE_BYTES;
        assert_eq!(of(&[(0, u64::MAX)], 512), [(0, pages)]);
        assert_eq!(of(&[(u64::MAX, u64::MAX), (pages, 1), (5, 0)], 512), []);
        assert_eq!(
            of(&[(pages - 1, 9), (7, 3), (2, 6)], 512),
            [(2, 8), (pages - 1, 1)]
        );
        let all = (8192 << 20) / PAGE_BYTES;
        assert_eq!(of(&[(0, u64::MAX), (0, u64::MAX)], 8192), [(0, all)]);
        assert_eq!(of(&[(u64::MAX - 1, 1)], 8192), []);
    }
}
