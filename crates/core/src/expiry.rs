//! When a sandbox ends by itself.

use std::time::{Duration, SystemTime};

use dayfly_types::{Moment, limits};

/// The time to live of a new sandbox: what was asked for, else the default, else none for one that
/// was called persistent.
#[must_use]
pub const fn initial_ttl_seconds(asked: Option<u64>, persistent: bool) -> Option<u64> {
    match (asked, persistent) {
        (Some(seconds), _) => Some(seconds),
        (None, true) => None,
        (None, false) => Some(limits::TTL_SECONDS_DEFAULT),
    }
}

/// The deadline on the node's monotonic clock.
#[must_use]
pub fn deadline(now: Moment, ttl_seconds: Option<u64>) -> Option<Moment> {
    ttl_seconds.map(|seconds| now.plus(Duration::from_secs(seconds)))
}

/// The same deadline on the wall clock, in Unix milliseconds, for a record that has to be read
/// after a reboot.
#[must_use]
pub fn wall_deadline_ms(now: SystemTime, ttl_seconds: Option<u64>) -> Option<u64> {
    let now = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    ttl_seconds.map(|seconds| {
        let at = now.saturating_add(Duration::from_secs(seconds));
        u64::try_from(at.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Whole seconds left, rounded up, so that "0" means due and never "almost".
#[must_use]
pub fn seconds_left(now: Moment, deadline: Moment) -> u64 {
    deadline
        .since(now)
        .as_millis()
        .div_ceil(1000)
        .try_into()
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explicit_ttl_holds_also_for_persistent_ones() {
        assert_eq!(initial_ttl_seconds(Some(5), true), Some(5));
        assert_eq!(initial_ttl_seconds(None, true), None);
        assert_eq!(initial_ttl_seconds(None, false), Some(3600));
    }

    #[test]
    fn seconds_left_rounds_up_and_stops_at_zero() {
        assert_eq!(seconds_left(Moment(0), Moment(1)), 1);
        assert_eq!(seconds_left(Moment(1000), Moment(3000)), 2);
        assert_eq!(seconds_left(Moment(5000), Moment(3000)), 0);
    }
}
