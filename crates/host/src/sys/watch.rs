//! Watching a descriptor with the async runtime.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Hands a descriptor to the runtime, which says when it becomes readable.
///
/// # Errors
/// What the kernel said.
pub(crate) fn watch_readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    watch(descriptor, Interest::READABLE)
}

/// The same for what is said out of the order, as the kernel does of a stall.
///
/// # Errors
/// What the kernel said.
pub(crate) fn watch_urgent(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    watch(descriptor, Interest::PRIORITY)
}

fn watch(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, always answers with the same number, and is closed by nobody
    // else; the `AsyncFd` owns it from here on, so it stays open for as long as it is watched.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, interest) };
    watched.map_err(Into::into)
}
