//! The descriptor by which the kernel can be asked to note writes to this process's memory.
//!
//! It belongs to the memory of whoever opens it, so nobody outside can open it for this process.
//! Nothing is registered with it here: the node borrows it and does that when it captures.
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

/// Faults of the kernel are not ours to hold up, whatever becomes of this process.
const USER_MODE_ONLY: i32 = 1; // UFFD_USER_MODE_ONLY
const API: libc::Ioctl = 0xc018_aa3f; // UFFDIO_API
const API_VERSION: u64 = 0xaa;
/// The kernel lets a noted write go on by itself, and notes also writes to what was never read.
const FEATURES: u64 = (1 << 15) | (1 << 13); // UFFD_FEATURE_WP_ASYNC, UFFD_FEATURE_WP_UNPOPULATED

/// `struct uffdio_api`.
#[repr(C)]
struct Handshake {
    version: u64,
    features: u64,
    commands: u64,
}

/// Opens it and leaves it open. Where the kernel has none, captures copy all memory in their pause.
pub(crate) fn open() {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
    // SAFETY: a call that takes flags and answers a descriptor; it touches no memory.
    let descriptor = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
    let Ok(descriptor) = i32::try_from(descriptor) else {
        return;
    };
    if descriptor < 0 {
        return;
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else knows its number.
    let faults = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut handshake = Handshake {
        version: API_VERSION,
        features: FEATURES,
        commands: 0,
    };
    // SAFETY: the command reads and writes one `struct uffdio_api`, which `handshake` is and which
    // lives through the call.
    let agreed = unsafe { libc::ioctl(faults.as_raw_fd(), API, &raw mut handshake) };
    if agreed == 0 {
        // For as long as the process lives.
        let _ = faults.into_raw_fd();
    }
}
