//! Percentiles of a set of samples.

use std::collections::BTreeMap;
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
        let samples: Vec<f64> = samples.iter().map(|sample| milliseconds(*sample)).collect();
        Self::of_milliseconds(&samples)
    }

    /// The figures of at least one sample that was measured elsewhere.
    pub(crate) fn of_milliseconds(samples: &[f64]) -> Option<Self> {
        let sorted = sorted(samples);
        Some(Self {
            n: sorted.len(),
            p50_ms: percentile(&sorted, 50)?,
            p99_ms: percentile(&sorted, 99)?,
            min_ms: *sorted.first()?,
            max_ms: *sorted.last()?,
        })
    }

    /// For a person.
    pub(crate) fn line(&self, name: &str) -> String {
        format!(
            "{name:<12} p50 {:>9.1} ms   p99 {:>9.1} ms   n {}\n",
            self.p50_ms, self.p99_ms, self.n
        )
    }
}

/// Samples of the parts of something, by the name of the part.
#[derive(Debug, Default)]
pub(crate) struct Parts(BTreeMap<String, Vec<f64>>);

impl Parts {
    pub(crate) fn push(&mut self, name: &str, part: Duration) {
        let samples = self.0.entry(name.to_owned()).or_default();
        samples.push(milliseconds(part));
    }

    /// Pushes the measured stages of a whole, and under `rest` what of it none of them was.
    pub(crate) fn push_stages(
        &mut self,
        whole: Duration,
        stages_us: &BTreeMap<String, u64>,
        rest: &str,
    ) {
        let mut left = whole;
        for (name, micros) in stages_us {
            let part = Duration::from_micros(*micros);
            left = left.saturating_sub(part);
            self.push(name, part);
        }
        self.push(rest, left);
    }

    pub(crate) fn medians_ms(&self) -> BTreeMap<String, f64> {
        self.0
            .iter()
            .filter_map(|(name, samples)| Some((name.clone(), median(samples)?)))
            .collect()
    }
}

/// The median: a value that was measured.
pub(crate) fn median(samples: &[f64]) -> Option<f64> {
    percentile(&sorted(samples), 50)
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = samples.iter().map(|sample| round(*sample)).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The nearest-rank percentile: a value that was measured, never one in between.
fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

pub(crate) fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
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

    #[test]
    fn stages_and_their_rest_make_up_the_whole() {
        let mut parts = Parts::default();
        let stages = BTreeMap::from([("load".to_owned(), 3000), ("thaw".to_owned(), 2000)]);
        parts.push_stages(Duration::from_millis(9), &stages, "rest");
        let medians = parts.medians_ms();
        assert_eq!(medians["rest"], 4.0);
        assert_eq!(medians.values().sum::<f64>(), 9.0);
    }
}
