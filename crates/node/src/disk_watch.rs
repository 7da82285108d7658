//! Looks at the node's disk at a steady pace, so that nobody else has to.
//!
//! Whoever waits for room hears of it here, and what each promise has left is kept true here.

use std::sync::Arc;
use std::time::Duration;

use dayfly_types::limits;
use tokio_util::sync::CancellationToken;

use crate::console::cut_console;
use crate::parts::Parts;

/// Volumes are looked at once in so many times: there may be thousands, and what they are owed only
/// shrinks while nobody makes one.
const VOLUMES_EVERY: u64 = 5;

/// Looks until `stop`.
pub(crate) async fn run(parts: Arc<Parts>, period: Duration, stop: CancellationToken) {
    let period = period.min(limits::DISK_WATCH_PERIOD);
    for count in 0_u64.. {
        let worker = Arc::clone(&parts);
        let look = tokio::task::spawn_blocking(move || look(&worker, count));
        if let Err(error) = look.await {
            tracing::error!(%error, "looking at the disk ended badly");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(period) => {}
        }
    }
}

fn look(parts: &Parts, count: u64) {
    parts.ledger.look();
    if count.is_multiple_of(VOLUMES_EVERY) {
        parts.ledger.set_volumes(parts.volumes.account());
    }
    for directory in parts.ledger.directories() {
        match cut_console(&directory) {
            Ok(false) => {}
            Ok(true) => {
                let directory = directory.display();
                tracing::warn!(%directory, "an engine says too much; what it said was cut");
            }
            Err(error) => {
                let directory = directory.display();
                tracing::debug!(%directory, %error, "cannot cut what an engine says");
            }
        }
    }
    let available = parts.ledger.disk_available_mib();
    let available = match &parts.reserve {
        Some(reserve) => reserve.keep(available),
        None => available,
    };
    parts.disk_available_mib.send_if_modified(|known| {
        let is_news = *known != available;
        *known = available;
        is_news
    });
}
