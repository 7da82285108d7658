//! The task that writes what sandboxes use. One call to the node for all of them; no guest is asked.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use dayfly_node_api::{NodeCalls, NodeError};
use dayfly_types::limits::SAMPLES_MAX;

use crate::control::Control;
use crate::store::StoreError;
use crate::time::{milliseconds, now_ms};

/// How often it is looked whether node and database know each other, after a start.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Samples are counted this often, in rounds.
const TRIM_ROUNDS: u64 = 6;
/// A wall clock that moved so much more or less than time passed was set.
const CLOCK_SET_MS: i64 = 2000;

/// Writes samples for as long as the future is polled.
pub(super) async fn sample_always(control: &Control) -> Result<Infallible, NodeError> {
    let mut clock = Clock::default();
    let mut round = 0_u64;
    loop {
        // Of another node's sandboxes, rows of the same id would say something else.
        if !control.view.is_known() {
            tokio::time::sleep(LOOK_AGAIN).await;
            continue;
        }
        round += 1;
        let must_trim = round.is_multiple_of(TRIM_ROUNDS);
        if let Err(error) = sample(control, &mut clock, must_trim).await {
            // What was not written now is in the next sample: counters only grow.
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot write what sandboxes use"
            );
        }
        tokio::time::sleep(control.reconcile.sample_interval).await;
    }
}

/// Why there is no sample.
#[derive(Debug, thiserror::Error)]
enum SampleError {
    #[error("the node does not say what sandboxes use")]
    Node(#[from] NodeError),
    #[error("the database does not take what sandboxes use")]
    Store(#[from] StoreError),
}

async fn sample(control: &Control, clock: &mut Clock, must_trim: bool) -> Result<(), SampleError> {
    let uses = control.node.all_loads().await?;
    let (now, at_ms) = (Instant::now(), now_ms());
    let store = &control.store;
    if let Some(set) = clock.set_by(now, at_ms) {
        tracing::info!(by_ms = set.by_ms, "the wall clock was set");
        store.shift_meters(set.by_ms, set.written_ms).await?;
    }
    clock.looked_at = Some((now, at_ms));
    store.add_samples(&uses, at_ms).await?;
    if must_trim {
        store.trim_samples(SAMPLES_MAX).await?;
    }
    Ok(())
}

/// The wall clock beside one that nobody sets: running time is time that passed.
#[derive(Debug, Default)]
struct Clock {
    looked_at: Option<(Instant, i64)>,
}

/// A wall clock was set.
#[derive(Debug, PartialEq, Eq)]
struct ClockSet {
    by_ms: i64,
    /// What it can have said before, since the last look.
    written_ms: (i64, i64),
}

impl Clock {
    /// By how much the wall clock was set since the last look.
    fn set_by(&self, now: Instant, wall_ms: i64) -> Option<ClockSet> {
        let (before, wall_before_ms) = self.looked_at?;
        let would_be_ms = wall_before_ms + milliseconds(now.saturating_duration_since(before));
        let by_ms = wall_ms - would_be_ms;
        (by_ms.abs() > CLOCK_SET_MS).then_some(ClockSet {
            by_ms,
            written_ms: (wall_before_ms, would_be_ms),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_told_from_time_that_passes() {
        let start = Instant::now();
        let clock = Clock {
            looked_at: Some((start, 1_000_000)),
        };
        let later = start + Duration::from_secs(10);
        assert_eq!(clock.set_by(later, 1_010_500), None);
        let set_by = |wall_ms| clock.set_by(later, wall_ms).unwrap();
        assert_eq!(set_by(1_310_000).by_ms, 300_000);
        assert_eq!(set_by(910_000).by_ms, -100_000);
        assert_eq!(set_by(910_000).written_ms, (1_000_000, 1_010_000));
        assert_eq!(Clock::default().set_by(later, 5), None);
    }
}
