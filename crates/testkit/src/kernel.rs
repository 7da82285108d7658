//! What the kernel that a test runs on can do.

use std::fs;

/// Whether it notes by itself which pages of a process are written, which Linux does since 6.7.
#[must_use]
pub fn kernel_notes_writes() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.parse().ok());
    let (major, minor): (Option<u32>, Option<u32>) = (numbers.next(), numbers.next());
    (major, minor) >= (Some(6), Some(7))
}
