//! The page by which a copy of this guest is told from the guest itself.

use std::cell::UnsafeCell;

use dayfly_guest_proto::CopyMark;
use dayfly_guest_proto::copy_mark::{FLAG_OFFSET, MAGIC, PAGE_BYTES};

/// Alone in its page, so that the host finds it at the start of one.
#[repr(C, align(4096))]
struct Page(UnsafeCell<[u8; PAGE_BYTES]>);

// SAFETY: the agent has one thread, and tests that use the page run each in a process of its own
// or one after the other; no reference to the bytes is ever made, only volatile accesses.
unsafe impl Sync for Page {}

static PAGE: Page = Page(UnsafeCell::new([0; PAGE_BYTES]));

/// Marks this guest's memory as the source of a capture. The write also makes sure that the page
/// is in memory.
pub(crate) fn write(mark: &CopyMark) {
    put(FLAG_OFFSET, 0);
    for (offset, byte) in MAGIC.into_iter().chain(mark.nonce()).enumerate() {
        put(offset, byte);
    }
}

/// Forgets the mark, so that no later image holds an old one.
pub(crate) fn clear() {
    for offset in 0..=FLAG_OFFSET {
        put(offset, 0);
    }
}

/// Whether a host set the flag while it saved this memory: then this is the copy.
pub(crate) fn is_copy() -> bool {
    let flag = PAGE.0.get().cast::<u8>().wrapping_add(FLAG_OFFSET);
    // SAFETY: the pointer is into a static array at an offset below its length, so it is valid and
    // aligned for one byte, which is always initialised. Volatile, because the value changes
    // without this program: the memory is saved with another one.
    let flag = unsafe { flag.read_volatile() };
    flag != 0
}

fn put(offset: usize, byte: u8) {
    // Within the page whatever the caller says.
    let place = PAGE.0.get().cast::<u8>().wrapping_add(offset % PAGE_BYTES);
    // SAFETY: the pointer is into a static array at an offset below its length, so it is valid and
    // aligned for one byte; the cell allows the write, and nobody holds a reference to it.
    // Volatile, because the host reads the page where the compiler sees no reader.
    unsafe { place.write_volatile(byte) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_is_written_at_the_start_of_a_page_and_cleared() {
        let start = PAGE.0.get().cast::<u8>();
        assert_eq!(start.addr() % PAGE_BYTES, 0);
        write(&CopyMark::from_nonce(&[9; 32]));
        assert!(!is_copy());
        put(FLAG_OFFSET, 1);
        assert!(is_copy());
        write(&CopyMark::from_nonce(&[8; 32]));
        assert!(!is_copy(), "a new mark is of a guest that is no copy");
        clear();
        assert!(!is_copy());
    }
}
