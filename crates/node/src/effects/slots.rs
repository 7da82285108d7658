//! The slots' port with a point around each effect.

use std::sync::Arc;

use async_trait::async_trait;
use dayfly_types::CpuMillis;
use dayfly_vmm::{
    CpuWeight, EngineCommand, EngineProcess, LaunchError, Slot, SlotError, SlotIndex, SlotProvider,
};

use super::{Effect, Effects};

/// Slots that are observed. Give these to the engine too: it launches through them.
#[derive(Debug)]
pub struct ObservedSlots {
    inner: Arc<dyn SlotProvider>,
    effects: Effects,
}

impl ObservedSlots {
    #[must_use]
    pub fn new(inner: Arc<dyn SlotProvider>, effects: Effects) -> Self {
        Self { inner, effects }
    }
}

#[async_trait]
impl SlotProvider for ObservedSlots {
    async fn acquire(&self) -> Result<Slot, SlotError> {
        let work = self.inner.acquire();
        self.effects.around_async(Effect::SlotAcquire, work).await
    }

    async fn reopen(&self, index: SlotIndex) -> Result<Slot, SlotError> {
        // Looks, and changes nothing.
        self.inner.reopen(index).await
    }

    async fn launch(
        &self,
        slot: &Slot,
        command: EngineCommand,
    ) -> Result<EngineProcess, LaunchError> {
        let work = self.inner.launch(slot, command);
        self.effects.around_async(Effect::SlotLaunch, work).await
    }

    async fn limit_cpu(&self, index: SlotIndex, cpu: CpuMillis) -> Result<(), SlotError> {
        let work = self.inner.limit_cpu(index, cpu);
        self.effects.around_async(Effect::SlotLimit, work).await
    }

    async fn weigh_cpu(&self, index: SlotIndex, weight: CpuWeight) -> Result<(), SlotError> {
        let work = self.inner.weigh_cpu(index, weight);
        self.effects.around_async(Effect::SlotLimit, work).await
    }

    async fn close_directory(&self, slot: &Slot) -> Result<(), SlotError> {
        let work = self.inner.close_directory(slot);
        self.effects.around_async(Effect::SlotLimit, work).await
    }

    async fn release(&self, index: SlotIndex) -> Result<(), SlotError> {
        let work = self.inner.release(index);
        self.effects.around_async(Effect::SlotRelease, work).await
    }

    async fn list(&self) -> Result<Vec<SlotIndex>, SlotError> {
        self.inner.list().await
    }
}
