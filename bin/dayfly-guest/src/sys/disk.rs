use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `_IOW('f', 16, __u64)`.
const EXT4_IOC_RESIZE_FS: libc::c_ulong = 0x4008_6610;

/// Grows the mounted ext4 file system that the descriptor is on to this many blocks.
pub(crate) fn resize_ext4(on: BorrowedFd<'_>, blocks: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open for the call, and the kernel reads one 64-bit number through
    // the pointer, which `blocks` is.
    let result = unsafe { libc::ioctl(on.as_raw_fd(), EXT4_IOC_RESIZE_FS, &raw const blocks) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
