//! What ends a connection that is on the list.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// The end of one connection, in the hands of whoever may bring it about. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    mark: CancellationToken,
    is_reset: Arc<AtomicBool>,
}

impl Cut {
    /// Of a connection that ends at the latest with its lifecycle.
    pub(super) fn within(stop: &CancellationToken) -> Self {
        Self {
            mark: stop.child_token(),
            is_reset: Arc::default(),
        }
    }

    /// Sockets of the connection close by a reset from now on.
    pub(crate) fn reset(&self) {
        self.is_reset.store(true, Ordering::Release);
    }

    /// Ends the connection at once, on both sides, by a reset.
    pub(crate) fn now(&self) {
        self.reset();
        self.mark.cancel();
    }

    /// Ends when the connection must.
    pub(crate) const fn mark(&self) -> &CancellationToken {
        &self.mark
    }

    pub(crate) fn reset_mark(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_reset)
    }
}
