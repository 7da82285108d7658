//! Times of one call, in microseconds.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long each of some calls took.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times(Vec<Duration>);

/// What is told of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) n: usize,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
}

impl Times {
    pub(crate) fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    pub(crate) fn figures(&self) -> Figures {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = |percent: usize| {
            let place = (sorted.len() * percent).div_ceil(100).max(1) - 1;
            let time = sorted.get(place).copied().unwrap_or_default();
            u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
        };
        Figures {
            n: sorted.len(),
            p50_us: at(50),
            p99_us: at(99),
        }
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
        let figures: Figures = (1..=200)
            .map(Duration::from_micros)
            .collect::<Times>()
            .figures();
        assert_eq!((figures.n, figures.p50_us, figures.p99_us), (200, 100, 198));
        assert_eq!(Times::default().figures().p99_us, 0);
    }
}
