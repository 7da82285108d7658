//! How many requests of one connection are under way, bodies of answers included.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// The count of one connection.
#[derive(Debug, Default)]
pub(crate) struct OpenStreams {
    count: AtomicUsize,
    changed: Notify,
}

/// One request, from its head to the last byte of its answer.
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<OpenStreams>);

impl OpenStreams {
    pub(crate) fn begin(self: &Arc<Self>) -> OpenStream {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_one();
        OpenStream(Arc::clone(self))
    }

    /// Waits until there has been none for this long.
    pub(crate) async fn idle(&self, limit: Duration) {
        loop {
            let is_busy = self.count.load(Ordering::Acquire) > 0;
            if is_busy {
                self.changed.notified().await;
            } else if tokio::time::timeout(limit, self.changed.notified())
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_is_idle_when_nothing_was_under_way_for_so_long() {
        let streams = Arc::<OpenStreams>::default();
        let limit = Duration::from_millis(20);
        let stream = streams.begin();
        let waiting = tokio::time::timeout(10 * limit, streams.idle(limit)).await;
        assert!(waiting.is_err());
        drop(stream);
        let waiting = tokio::time::timeout(Duration::from_secs(20), streams.idle(limit)).await;
        assert!(waiting.is_ok());
    }
}
