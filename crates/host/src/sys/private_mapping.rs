//! A private, writable mapping of a file: what an engine makes of a memory image.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The mapping of one file, for as long as it lives.
#[derive(Debug)]
pub(crate) struct PrivateMapping {
    start: *mut libc::c_void,
    length: usize,
}

impl PrivateMapping {
    pub(crate) fn of(file: &File, length: usize) -> io::Result<Self> {
        // SAFETY: a mapping at an address of the kernel's choice touches no memory of ours, and
        // the descriptor is open for the call.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start, length })
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `length` bytes long, readable and writable, lives as long as
        // `self`, and this is the only reference into it, because `self` is borrowed mutably. The
        // tests that use it do not shorten the file.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.length) }
    }
}

impl Drop for PrivateMapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `of` mapped, and no reference outlives `self`.
        unsafe { libc::munmap(self.start, self.length) };
    }
}
