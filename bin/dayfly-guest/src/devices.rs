//! Devices, which appear some time after their drivers were loaded.

use std::io;
use std::time::Duration;

use crate::clock::monotonic_ms;

/// How long a device may take to appear.
const DEADLINE_MS: u64 = 10_000;

/// Looks until there is something, within a deadline.
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> io::Result<T> {
    let end_ms = monotonic_ms() + DEADLINE_MS;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if monotonic_ms() >= end_ms {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
