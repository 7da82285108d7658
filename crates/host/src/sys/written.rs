//! Having the kernel note which pages of another process are written.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Pages, by the address of the first and of what follows the last. The kernel writes these.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AddressRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    categories: u64,
}

/// What becomes of the notes that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// They are taken back in the same step: the pages count as unwritten from then on.
    Take,
    Look,
}

/// `struct uffdio_register`.
#[repr(C)]
struct Registration {
    start: u64,
    bytes: u64,
    mode: u64,
    possible: u64,
}

/// `struct pm_scan_arg`.
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    reached: u64,
    ranges: u64,
    ranges_length: u64,
    pages_max: u64,
    inverted: u64,
    wanted: u64,
    wanted_any: u64,
    answered: u64,
}

const REGISTER: libc::Ioctl = 0xc020_aa00; // UFFDIO_REGISTER
const WRITE_PROTECT: u64 = 2; // UFFDIO_REGISTER_MODE_WP
const SCAN: libc::Ioctl = 0xc060_6610; // PAGEMAP_SCAN
const PROTECT_MATCHING: u64 = 1; // PM_SCAN_WP_MATCHING
const CHECK_ASYNC: u64 = 2; // PM_SCAN_CHECK_WPASYNC
const IS_WRITTEN: u64 = 2; // PAGE_IS_WRITTEN

/// Has the kernel note writes to a piece of the memory that `faults` belongs to. May be repeated.
///
/// # Errors
/// What the kernel said.
pub(crate) fn note_writes(faults: &OwnedFd, start: u64, bytes: u64) -> io::Result<()> {
    let mut registration = Registration {
        start,
        bytes,
        mode: WRITE_PROTECT,
        possible: 0,
    };
    // SAFETY: the command reads and writes one `struct uffdio_register`, which `registration` is
    // and which lives through the call. What it changes is how the kernel treats faults of the
    // process that opened `faults`; no memory of ours is touched.
    let result = unsafe { libc::ioctl(faults.as_raw_fd(), REGISTER, &raw mut registration) };
    super::check(result.into()).map(drop)
}

/// Finds what was written between two addresses. Answers how many of `ranges` it has filled, and
/// the address that it has come to.
///
/// # Errors
/// What the kernel said; `EPERM` where writes are not noted.
pub(crate) fn written_ranges(
    table: &File,
    start: u64,
    end: u64,
    written: Written,
    ranges: &mut [AddressRange],
) -> io::Result<(usize, u64)> {
    let flags = match written {
        Written::Take => PROTECT_MATCHING | CHECK_ASYNC,
        Written::Look => CHECK_ASYNC,
    };
    let mut scan = Scan {
        size: size_of::<Scan>() as u64,
        flags,
        start,
        end,
        reached: 0,
        ranges: ranges.as_mut_ptr().expose_provenance() as u64,
        ranges_length: ranges.len() as u64,
        pages_max: 0,
        inverted: 0,
        wanted: IS_WRITTEN,
        wanted_any: 0,
        answered: IS_WRITTEN,
    };
    // SAFETY: the command reads and writes one `struct pm_scan_arg` of the size that it names,
    // which `scan` is, and writes at most `ranges_length` elements behind `ranges`, which are ours
    // alone for the length of the call and have the layout of `struct page_region`.
    let result = unsafe { libc::ioctl(table.as_raw_fd(), SCAN, &raw mut scan) };
    let count = super::check(result.into())?;
    let count = usize::try_from(count).unwrap_or(0).min(ranges.len());
    Ok((count, scan.reached))
}

/// Opens, for this process itself, what the library of an engine opens.
#[cfg(test)]
pub(crate) fn open_faults() -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;

    const USER_MODE_ONLY: i32 = 1; // UFFD_USER_MODE_ONLY
    const API: libc::Ioctl = 0xc018_aa3f; // UFFDIO_API
    const FEATURES: u64 = (1 << 15) | (1 << 13); // UFFD_FEATURE_WP_ASYNC, UFFD_FEATURE_WP_UNPOPULATED
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
    // SAFETY: a call that takes flags and answers a descriptor; it touches no memory.
    let descriptor = super::check(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) })?;
    let descriptor = i32::try_from(descriptor).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel has just made this descriptor, and nobody else knows its number.
    let faults = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut handshake = [0xaa, FEATURES, 0];
    // SAFETY: the command reads and writes one `struct uffdio_api`, three numbers of 64 bits, which
    // `handshake` is and which lives through the call.
    let agreed = unsafe { libc::ioctl(faults.as_raw_fd(), API, handshake.as_mut_ptr()) };
    super::check(agreed.into()).map(|_| faults)
}
