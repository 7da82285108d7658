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

/// Milliseconds since 1970 on the clock that people see, which a wake may move either way.
pub(crate) fn wall_clock_ms() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec
        .saturating_mul(1000)
        .saturating_add(now.tv_nsec / 1_000_000)
}

/// The time that the kernel gives to a file that changes now. Its clock for files is coarser than
/// the one for people and never ahead of it.
pub(crate) fn file_clock_unix_nanos() -> u64 {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
