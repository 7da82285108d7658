//! What a node does about captures when nobody asks: collect garbage, shorten chains, end
//! retention.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dayfly_core::wall_clock::WallClock;
use dayfly_snapshots::capture::Collector;
use dayfly_types::{SnapshotId, limits};
use tokio_util::sync::CancellationToken;

use crate::parts::Parts;
use crate::sandbox::{Request, SandboxHandle};

/// How often a node keeps house. Garbage is gone after two passes.
pub const HOUSEKEEPING_PERIOD: Duration = Duration::from_secs(5);

/// Keeps house until `stop`.
pub(crate) async fn run(parts: Arc<Parts>, period: Duration, stop: CancellationToken) {
    // How soon after something became garbage the next pass comes.
    let soon = period / 10;
    let keeper = Arc::new(Keeper::default());
    while !stop.is_cancelled() {
        crate::kept::look_again(&parts).await;
        let (worker, keeper) = (Arc::clone(&parts), Arc::clone(&keeper));
        let pass = tokio::task::spawn_blocking(move || keeper.pass(&worker));
        if let Err(error) = pass.await {
            tracing::error!(%error, "housekeeping ended badly");
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(period) => {}
            () = parts.housekeeping.notified() => {
                tokio::time::sleep(soon).await;
            }
        }
    }
}

/// How long a replaced layer stays: a restore that was told of it has its links by then.
const SUPERSEDED_STAYS: Duration = limits::CREATE_DEADLINE.saturating_mul(2);
/// How long a capture that could not be merged is left alone.
const MERGE_RETRY: Duration = Duration::from_secs(300);

/// What is remembered between passes.
#[derive(Debug, Default)]
struct Keeper {
    collector: Collector,
    superseded: Mutex<HashMap<SnapshotId, Instant>>,
    failed: Mutex<HashMap<SnapshotId, Instant>>,
    wall_clock: Mutex<WallClock>,
}

impl Keeper {
    fn pass(&self, parts: &Parts) {
        self.end_retention(parts);
        self.drop_superseded(parts);
        self.shorten_one(parts);
        look_for_captures(parts);
        // What a record names that cannot be read may be any capture.
        if !parts.kept.is_empty() {
            return;
        }
        match parts.captures.collect(&self.collector, &roots(parts)) {
            Ok(removed) if !removed.is_empty() => {
                tracing::info!(count = removed.len(), "captures collected");
            }
            Ok(_) => {}
            Err(error) => {
                let error = crate::error_chain(&error);
                tracing::warn!(error, "cannot collect a capture");
            }
        }
    }

    fn end_retention(&self, parts: &Parts) {
        let belief = lock(&self.wall_clock).look(parts.clock.now(), parts.clock.wall());
        for capture in parts.captures.all() {
            let is_over = capture.expires_at.is_some_and(|expires_at| {
                belief.is_over(capture.created_at.into(), expires_at.into())
            });
            if is_over
                && capture.is_snapshot()
                && let Err(error) = parts.captures.hide(&capture.id)
            {
                let error = crate::error_chain(&error);
                tracing::warn!(capture = %capture.id, error, "cannot end a snapshot's retention");
            }
        }
    }

    fn drop_superseded(&self, parts: &Parts) {
        let now = Instant::now();
        let found = parts.captures.superseded();
        let mut since = lock(&self.superseded);
        since.retain(|id, _| found.contains(id));
        for id in found {
            let since = since.entry(id.clone()).or_insert(now);
            if now.duration_since(*since) < SUPERSEDED_STAYS {
                continue;
            }
            if let Err(error) = parts.captures.drop_superseded(&id) {
                let error = crate::error_chain(&error);
                tracing::warn!(capture = %id, error, "cannot drop a replaced layer");
            }
        }
    }

    /// Merges one capture with what it lies on. One in a pass: a disk that is busy with this is
    /// busy for sandboxes too.
    fn shorten_one(&self, parts: &Parts) {
        let mut failed = lock(&self.failed);
        failed.retain(|_, at| at.elapsed() < MERGE_RETRY);
        let wanted = parts.captures.needs_flatten();
        let Some(id) = wanted.into_iter().find(|id| !failed.contains_key(id)) else {
            return;
        };
        // Until the old files go, a merge takes as much again as everything that it merges.
        let Ok(_room) = parts.ledger.book(merge_mib(parts, &id)) else {
            tracing::warn!(capture = %id, "no room to shorten a chain; it stays as it is for now");
            failed.insert(id, Instant::now());
            return;
        };
        match parts.captures.flatten(&id) {
            Ok(true) => {
                tracing::info!(capture = %id, "chain shortened");
                parts.housekeeping.notify_one();
            }
            Ok(false) => {}
            Err(error) => {
                let text = crate::error_chain(&error);
                tracing::warn!(capture = %id, error = text, "cannot shorten a chain");
                failed.insert(id, Instant::now());
            }
        }
    }
}

/// The most that merging a capture with what it lies on can write.
fn merge_mib(parts: &Parts, id: &SnapshotId) -> u64 {
    let Some(capture) = parts.captures.get(id) else {
        return 0;
    };
    let merged: HashSet<&SnapshotId> = capture.below().chain([id]).collect();
    let sizes = merged.iter().map(|id| parts.captures.size_bytes(id));
    (sizes.sum::<u64>() >> 20) + limits::CAPTURE_OVERHEAD_MIB
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads captures again that could not be read, and has their sandboxes say that they are there.
fn look_for_captures(parts: &Parts) {
    let waiting: Vec<SandboxHandle> = parts
        .all_sandboxes()
        .filter(|handle| handle.report().unavailable.is_some())
        .collect();
    let missed = waiting
        .iter()
        .flat_map(|handle| handle.published.borrow().captures.clone());
    if parts.captures.look_again(missed.collect()) == 0 {
        return;
    }
    for handle in waiting {
        // A full queue has something in it after which it is said anyway.
        let _ = handle.requests.try_send(Request::LookAgain);
    }
}

/// What sandboxes and operations under way need.
pub(crate) fn roots(parts: &Parts) -> HashSet<SnapshotId> {
    // Pins first: an operation hands over from a pin to a record, never the other way.
    let mut roots: HashSet<SnapshotId> = parts.pins.all().into_iter().collect();
    // One that appears meanwhile may be missed: the collector asks twice before it takes anything.
    for handle in parts.all_sandboxes() {
        roots.extend(handle.published.borrow().captures.iter().cloned());
    }
    roots
}
