//! Time in milliseconds, as the event loop counts it.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds on the clock that stands still while the machine is suspended. Deadlines use it,
/// so that time spent in a snapshot does not count.
pub(crate) fn monotonic_ms() -> u64 {
    milliseconds(ClockId::Monotonic)
}

/// Milliseconds since the kernel started, suspends included.
pub(crate) fn uptime_ms() -> u64 {
    milliseconds(ClockId::Boottime)
}

fn milliseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1000 + nanos / 1_000_000
}
