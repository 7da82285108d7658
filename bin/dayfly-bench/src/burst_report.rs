//! What a bench of bursts found.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::arrivals::{Arrivals, Arrived};
use crate::environment::Environment;
use crate::figures::{Figures, Parts, median, milliseconds, round};
use crate::goal::Goal;

/// The product starts at least 0.85 of what the bare engine starts in the same time.
const THROUGHPUT_RATIO_MAX: f64 = 1.176;
/// Half of a burst is done in about half of its time.
const P50_OF_LAST_MAX: f64 = 0.6;
const P99_RATIO_MAX: f64 = 1.5;
const NEIGHBOUR_RATIO_MAX: f64 = 2.0;

/// Everything that the bench found. The shape is documented; fields are only added.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) product: BurstFigures,
    pub(crate) bare: BurstFigures,
    /// Started in a second by the bare engine over the same by the product.
    pub(crate) throughput_ratio: f64,
    pub(crate) p99_ratio: f64,
    /// Calls of `true` on another sandbox: while nothing else went on, beside the product's bursts
    /// and beside those of the bare engine.
    pub(crate) neighbour_quiet: Figures,
    pub(crate) neighbour: Figures,
    pub(crate) neighbour_beside_bare: Figures,
    pub(crate) neighbour_ratio_p50: f64,
    /// Medians of the parts of a create, in milliseconds.
    pub(crate) stages: BTreeMap<String, f64>,
    pub(crate) at_once: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<f64>,
    pub(crate) goals: Vec<Goal>,
    #[serde(flatten)]
    pub(crate) environment: Environment,
    pub(crate) clock: Clock,
}

/// All bursts of one kind.
#[derive(Debug, Serialize)]
pub(crate) struct BurstFigures {
    #[serde(flatten)]
    pub(crate) first_true: Figures,
    /// From the beginning of a burst to the response of its last, the median of all bursts.
    pub(crate) last_ms: f64,
    /// The median of its starts over its last, the same.
    pub(crate) p50_of_last: f64,
    pub(crate) per_second: f64,
    pub(crate) failed: usize,
}

/// Where each clock starts and stops.
#[derive(Debug, Serialize)]
pub(crate) struct Clock {
    product: &'static str,
    bare: &'static str,
    neighbour: &'static str,
}

const CLOCK: Clock = Clock {
    product: "from sending POST /v1/sandboxes to the answer of POST exec `true`, over HTTP",
    bare: "from making the slot of an engine process to the exit of `true`, over the agent channel",
    neighbour: "from sending POST exec `true` to its answer, over HTTP, sandbox warm",
};

#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) product: Vec<Arrived>,
    pub(crate) bare: Vec<Arrived>,
    pub(crate) neighbour_quiet: Vec<Duration>,
    pub(crate) neighbour_product: Vec<Duration>,
    pub(crate) neighbour_bare: Vec<Duration>,
}

impl BurstFigures {
    fn of(bursts: &[Arrived]) -> Result<Self> {
        let all: Vec<Duration> = bursts.iter().flat_map(|one| one.took.clone()).collect();
        let lasts: Vec<f64> = bursts.iter().map(|one| milliseconds(one.last)).collect();
        let shares: Option<Vec<f64>> = bursts
            .iter()
            .map(|one| Some(Figures::of(&one.took)?.p50_ms / milliseconds(one.last)))
            .collect();
        let shares = shares.context("a burst of which nothing was started")?;
        let seconds: f64 = bursts.iter().map(|one| one.last.as_secs_f64()).sum();
        Ok(Self {
            first_true: Figures::of(&all).context("no samples")?,
            last_ms: median(&lasts).context("no bursts")?,
            p50_of_last: median(&shares).context("no bursts")?,
            per_second: round(all.len() as f64 / seconds),
            failed: bursts.iter().map(|one| one.failures.len()).sum(),
        })
    }

    fn line(&self, name: &str) -> String {
        format!(
            "{}{:<12} last {:>8.1} ms   {:.2} a second   p50 / last {:.3}   failed {}\n",
            self.first_true.line(name),
            "",
            self.last_ms,
            self.per_second,
            self.p50_of_last,
            self.failed
        )
    }
}

impl Report {
    pub(crate) fn of(
        samples: &Samples,
        stages: &[BTreeMap<String, u64>],
        arrivals: Arrivals,
        environment: Environment,
    ) -> Result<Self> {
        let calls = |calls: &[Duration]| Figures::of(calls).context("no calls of the neighbour");
        let product = BurstFigures::of(&samples.product)?;
        let bare = BurstFigures::of(&samples.bare)?;
        let quiet = calls(&samples.neighbour_quiet)?;
        let neighbour = calls(&samples.neighbour_product)?;
        let throughput_ratio = round(bare.per_second / product.per_second);
        let p99_ratio = round(product.first_true.p99_ms / bare.first_true.p99_ms);
        let neighbour_ratio = round(neighbour.p50_ms / quiet.p50_ms);
        let failed = product.failed as f64;
        let mut goals = vec![
            Goal::at_most("failed", 0.0, failed),
            Goal::at_most("throughput_ratio", THROUGHPUT_RATIO_MAX, throughput_ratio),
            Goal::at_most("p99_ratio", P99_RATIO_MAX, p99_ratio),
            Goal::at_most("neighbour_ratio_p50", NEIGHBOUR_RATIO_MAX, neighbour_ratio),
        ];
        if arrivals.are_one_burst() {
            let share = product.p50_of_last;
            goals.push(Goal::at_most("p50_of_last", P50_OF_LAST_MAX, share));
        }
        let mut parts = Parts::default();
        for (name, micros) in stages.iter().flatten() {
            parts.push(name, Duration::from_micros(*micros));
        }
        Ok(Self {
            throughput_ratio,
            p99_ratio,
            neighbour_quiet: quiet,
            neighbour,
            neighbour_beside_bare: calls(&samples.neighbour_bare)?,
            neighbour_ratio_p50: neighbour_ratio,
            stages: parts.medians_ms(),
            at_once: arrivals.at_once,
            rate: arrivals.rate,
            goals,
            product,
            bare,
            environment,
            clock: CLOCK,
        })
    }
}

/// For a person.
pub(crate) fn render(report: &Report) -> String {
    let mut text = report.product.line("product");
    for (stage, milliseconds) in &report.stages {
        text.push_str(&format!("  {stage:<14} {milliseconds:>8.1} ms\n"));
    }
    text.push_str(&report.bare.line("bare"));
    text.push_str(&report.neighbour_quiet.line("neighbour"));
    text.push_str(&report.neighbour.line("  in a burst"));
    text.push_str(&report.neighbour_beside_bare.line("  in a bare"));
    for goal in &report.goals {
        text.push_str(&goal.line());
    }
    text.push_str(&report.environment.line());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(took_ms: &[u64], last_ms: u64) -> Arrived {
        let took = took_ms.iter().copied().map(Duration::from_millis);
        Arrived {
            took: took.collect(),
            last: Duration::from_millis(last_ms),
            failures: Vec::new(),
        }
    }

    #[test]
    fn what_finishes_in_turns_differs_from_what_finishes_together() {
        let turns = BurstFigures::of(&[burst(&[250, 500, 750, 1000], 1000)]).unwrap();
        let together = BurstFigures::of(&[burst(&[970, 980, 990, 1000], 1000)]).unwrap();
        assert_eq!((turns.p50_of_last, together.p50_of_last), (0.5, 0.98));
        assert_eq!((turns.per_second, together.per_second), (4.0, 4.0));
    }

    #[test]
    fn a_burst_that_fails_whole_has_no_figures() {
        assert!(BurstFigures::of(&[burst(&[], 10)]).is_err());
    }
}
