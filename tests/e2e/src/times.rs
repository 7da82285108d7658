//! Times of the same call, judged by a percentile.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::wait::patient;

/// How long each of some calls took.
#[derive(Debug, Clone, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    pub fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// The time that this share of the calls did not exceed.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * percent).div_ceil(100).max(1) - 1;
        sorted.get(place).copied().unwrap_or_default()
    }

    /// Prints the figures and holds a percentile against what is promised, which is as [`patient`]
    /// as every limit.
    ///
    /// # Errors
    /// When the promise is not kept.
    pub fn judge(&self, what: &str, percent: usize, limit: Duration) -> Result<()> {
        ensure!(!self.0.is_empty(), "{what}: nothing was measured");
        let time = self.percentile(percent);
        crate::figure!("{what}: p{percent} {time:?}; {self}");
        ensure!(
            time < patient(limit),
            "{what}: p{percent} is {time:?}, and {limit:?} are promised; {self}"
        );
        Ok(())
    }

    /// How many times the p99 of others this p99 is. Without a measurement, not a number.
    #[must_use]
    pub fn p99_to(&self, others: &Self) -> f64 {
        if self.0.is_empty() {
            return f64::NAN;
        }
        self.percentile(99).as_secs_f64() / others.percentile(99).as_secs_f64()
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (n, p50, p99) = (self.0.len(), self.percentile(50), self.percentile(99));
        write!(f, "n {n}, p50 {p50:.1?}, p99 {p99:.1?}")
    }
}

impl FromIterator<Duration> for Times {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        Self(times.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let times: Times = (1..=40).map(Duration::from_millis).collect();
        let found = [50, 95, 99, 100].map(|percent| times.percentile(percent).as_millis());
        assert_eq!(found, [20, 38, 40, 40]);
        assert_eq!(Times::default().percentile(50), Duration::ZERO);
    }
}
