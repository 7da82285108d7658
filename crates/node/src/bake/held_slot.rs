//! A slot that is given back whatever happens.

use std::sync::Arc;
use std::time::Duration;

use dayfly_vmm::{Slot, SlotProvider};

use super::error::BakeError;

/// A slot in use by a bake. Dropping it gives it back in the background.
#[derive(Debug)]
pub(super) struct HeldSlot {
    slots: Arc<dyn SlotProvider>,
    slot: Slot,
    limit: Duration,
    is_released: bool,
}

impl HeldSlot {
    pub(super) async fn acquire(
        slots: &Arc<dyn SlotProvider>,
        limit: Duration,
    ) -> Result<Self, BakeError> {
        let provider = Arc::clone(slots);
        // In a task of its own: a slot that is acquired after its caller has gone must still find
        // somebody who gives it back.
        let task = tokio::spawn(async move {
            let slot = provider.acquire().await?;
            Ok(Self {
                slots: provider,
                slot,
                limit,
                is_released: false,
            })
        });
        match tokio::time::timeout(limit, task).await {
            Ok(Ok(held)) => held.map_err(BakeError::Slot),
            Ok(Err(_)) => Err(BakeError::Stopped),
            Err(_) => Err(BakeError::SlotTimedOut(limit)),
        }
    }

    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Gives the slot back and waits for it. A failure is left to the node's reconciler, which
    /// finds slots by what is left of them on the host.
    pub(super) async fn release(mut self) {
        self.is_released = true;
        let task = tokio::spawn(release(
            Arc::clone(&self.slots),
            self.slot.clone(),
            self.limit,
        ));
        let _ = task.await;
    }
}

impl Drop for HeldSlot {
    fn drop(&mut self) {
        if self.is_released {
            return;
        }
        // Without a runtime the process is ending; the next start finds the slot.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(release(
                Arc::clone(&self.slots),
                self.slot.clone(),
                self.limit,
            ));
        }
    }
}

async fn release(slots: Arc<dyn SlotProvider>, slot: Slot, limit: Duration) {
    match tokio::time::timeout(limit, slots.release(slot.index)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let error = crate::error_chain(&error);
            tracing::warn!(
                slot = slot.index.0,
                error,
                "cannot release the slot of a bake"
            );
        }
        Err(_) => tracing::warn!(
            slot = slot.index.0,
            "releasing the slot of a bake takes too long"
        ),
    }
}
