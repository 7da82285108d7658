//! How far long work is, and whether it should go on.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// A line in the log this often.
const PERIOD: Duration = Duration::from_secs(5);

/// Told of bytes that were worked through.
#[derive(Debug)]
pub(crate) struct Progress {
    done: &'static str,
    bytes: u64,
    told: Instant,
    stop: CancellationToken,
}

impl Progress {
    pub(crate) fn new(done: &'static str, stop: CancellationToken) -> Self {
        Self {
            done,
            bytes: 0,
            told: Instant::now(),
            stop,
        }
    }

    /// Says whether the work should go on.
    pub(crate) fn saw(&mut self, bytes: u64) -> bool {
        self.bytes += bytes;
        if self.told.elapsed() >= PERIOD {
            self.told = Instant::now();
            tracing::info!(mib = self.bytes >> 20, "{} so far", self.done);
        }
        !self.stop.is_cancelled()
    }
}
