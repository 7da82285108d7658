//! How much goes over a socket.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that went over one socket.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    read: AtomicU64,
    written: AtomicU64,
}

impl Meter {
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn total(&self) -> u64 {
        self.read().wrapping_add(self.written())
    }

    pub(crate) fn count_read(&self, count: usize) {
        self.read.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_written(&self, count: usize) {
        self.written.fetch_add(count as u64, Ordering::Relaxed);
    }
}
