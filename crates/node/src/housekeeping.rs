//! What a node does about captures when nobody asks: collect garbage, shorten chains, end
//! retention.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dayfly_snapshots::capture::Collector;
use dayfly_types::SnapshotId;
use tokio_util::sync::CancellationToken;

use crate::parts::Parts;

/// How often a node keeps house. Garbage is gone after two passes.
pub const HOUSEKEEPING_PERIOD: Duration = Duration::from_secs(5);

/// Keeps house until `stop`.
pub(crate) async fn run(parts: Arc<Parts>, period: Duration, stop: CancellationToken) {
    // How soon after something became garbage the next pass comes.
    let soon = period / 10;
    let collector = Arc::new(Collector::default());
    while !stop.is_cancelled() {
        let (worker, collector) = (Arc::clone(&parts), Arc::clone(&collector));
        let pass = tokio::task::spawn_blocking(move || pass(&worker, &collector));
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

fn pass(parts: &Parts, collector: &Collector) {
    end_retention(parts);
    // What the last pass replaced: a restore that began before then has its links by now.
    for id in parts.captures.superseded() {
        if let Err(error) = parts.captures.drop_superseded(&id) {
            let error = crate::error_chain(&error);
            tracing::warn!(capture = %id, error, "cannot drop a replaced layer");
        }
    }
    shorten_one(parts);
    match parts.captures.collect(collector, &roots(parts)) {
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

/// Merges one capture with what it lies on. One in a pass: a disk that is busy with this is busy
/// for sandboxes too.
fn shorten_one(parts: &Parts) {
    let Some(id) = parts.captures.needs_flatten().into_iter().next() else {
        return;
    };
    match parts.captures.flatten(&id) {
        Ok(true) => {
            tracing::info!(capture = %id, "chain shortened");
            parts.housekeeping.notify_one();
        }
        Ok(false) => {}
        Err(error) => {
            let error = crate::error_chain(&error);
            tracing::warn!(capture = %id, error, "cannot shorten a chain");
        }
    }
}

/// What sandboxes and operations under way need.
pub(crate) fn roots(parts: &Parts) -> HashSet<SnapshotId> {
    // Pins first: an operation hands over from a pin to a record, never the other way.
    let mut roots: HashSet<SnapshotId> = parts.pins.all().into_iter().collect();
    for handle in parts.sandboxes().values() {
        roots.extend(handle.published.borrow().captures.iter().cloned());
    }
    roots
}

fn end_retention(parts: &Parts) {
    let now = parts.clock.wall();
    for capture in parts.captures.all() {
        let is_over = capture
            .expires_at
            .is_some_and(|at| SystemTime::from(at) <= now);
        if is_over
            && capture.is_snapshot()
            && let Err(error) = parts.captures.hide(&capture.id)
        {
            let error = crate::error_chain(&error);
            tracing::warn!(capture = %capture.id, error, "cannot end a snapshot's retention");
        }
    }
}
