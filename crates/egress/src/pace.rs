//! How much goes through in a second. What was too much is paid for by waiting before the next.

use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What may be ahead of the rate: so much of a second, for connections that come in bursts.
const BURST: Duration = Duration::from_millis(50);
/// A wait beyond this would look like a connection that hangs.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The rate of one direction of a sandbox, shared by all of its connections.
#[derive(Debug)]
pub(crate) struct Pace {
    bytes_per_second: Option<NonZeroU64>,
    /// When everything that went through would have been through at exactly the rate.
    paid_until: Mutex<Instant>,
}

impl Pace {
    /// Without a rate nothing ever waits.
    pub(crate) fn new(bytes_per_second: Option<NonZeroU64>, now: Instant) -> Self {
        Self {
            bytes_per_second,
            paid_until: Mutex::new(now),
        }
    }

    pub(crate) fn spend(&self, bytes: usize, now: Instant) {
        let Some(rate) = self.bytes_per_second else {
            return;
        };
        #[expect(clippy::cast_precision_loss, reason = "a nanosecond more or less")]
        let cost = Duration::from_secs_f64(bytes as f64 / rate.get() as f64);
        let mut paid_until = self
            .paid_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *paid_until = (*paid_until).max(now) + cost;
    }

    /// How long to wait before more may go through.
    pub(crate) fn owed(&self, now: Instant) -> Option<Duration> {
        self.bytes_per_second?;
        let paid_until = *self
            .paid_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let owed = paid_until.saturating_duration_since(now + BURST);
        (!owed.is_zero()).then(|| owed.min(WAIT_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b18_what_goes_through_is_the_rate_and_a_short_burst() {
        let start = Instant::now();
        let pace = Pace::new(NonZeroU64::new(1_000_000), start);
        let mut now = start;
        let mut passed: u32 = 0;
        while now < start + Duration::from_secs(10) {
            match pace.owed(now) {
                Some(wait) => now += wait,
                None => {
                    pace.spend(16_000, now);
                    passed += 16_000;
                }
            }
        }
        assert!((10_000_000..10_100_000).contains(&passed), "{passed}");
    }

    #[test]
    fn an_idle_time_is_not_saved_up() {
        let start = Instant::now();
        let pace = Pace::new(NonZeroU64::new(1_000), start);
        let later = start + Duration::from_secs(3600);
        pace.spend(1_000, later);
        assert_eq!(pace.owed(later), Some(Duration::from_millis(950)));
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let now = Instant::now();
        let pace = Pace::new(None, now);
        pace.spend(usize::MAX, now);
        assert_eq!(pace.owed(now), None);
    }
}
