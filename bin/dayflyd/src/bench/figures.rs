//! Percentiles of a set of samples.

use std::time::Duration;

use serde::Serialize;

/// What is printed of one kind of run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figures {
    pub(crate) n: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) min_ms: f64,
    pub(crate) max_ms: f64,
}

impl Figures {
    /// The figures of at least one sample.
    pub(crate) fn of(samples: &[Duration]) -> Option<Self> {
        let mut sorted: Vec<f64> = samples
            .iter()
            .map(|d| round(d.as_secs_f64() * 1000.0))
            .collect();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            n: sorted.len(),
            p50_ms: percentile(&sorted, 50)?,
            p99_ms: percentile(&sorted, 99)?,
            min_ms: *sorted.first()?,
            max_ms: *sorted.last()?,
        })
    }
}

/// The nearest-rank percentile: a value that was measured, never one in between.
fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

pub(crate) fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let samples: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        let figures = Figures::of(&samples).unwrap();
        assert_eq!((figures.p50_ms, figures.p99_ms), (50.0, 99.0));
        assert_eq!(Figures::of(&samples[..1]).unwrap().p99_ms, 1.0);
        assert!(Figures::of(&[]).is_none());
    }
}
