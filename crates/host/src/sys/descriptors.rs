//! The whole descriptor table at once.

use std::io;

use super::check;

/// Marks every descriptor from `first` upwards close-on-exec, whoever opened it.
///
/// Marking, and not closing, keeps this safe to call while owners of such descriptors exist.
///
/// # Errors
/// What the kernel said; `ENOSYS` before Linux 5.11.
pub fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: `close_range` takes three integers and touches no memory of ours. With
    // CLOSE_RANGE_CLOEXEC it closes nothing, so no owned descriptor becomes invalid.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    check(result).map(drop)
}
