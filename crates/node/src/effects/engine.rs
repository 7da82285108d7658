//! The engine's port with a point around each effect.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use dayfly_types::DiskMib;
use dayfly_vmm::{
    AdoptError, BootError, BootSpec, Capabilities, CaptureSpec, Captured, ControlError, Engine,
    EngineCaptureError, EngineProcess, FrameRange, GiveBackError, GivenBack, MemoryCapture,
    ParkError, ParkedVm, RestoreError, RestoreSpec, SealError, Slot, Vm, VmEvent, VmExit,
};

use super::{Effect, Effects};

/// An engine that is observed.
#[derive(Debug)]
pub(crate) struct ObservedEngine {
    inner: Arc<dyn Engine>,
    effects: Effects,
}

impl ObservedEngine {
    pub(crate) fn new(inner: Arc<dyn Engine>, effects: Effects) -> Self {
        Self { inner, effects }
    }

    fn observe(&self, inner: Box<dyn Vm>) -> Box<dyn Vm> {
        Box::new(ObservedVm {
            inner,
            effects: self.effects.clone(),
        })
    }
}

#[async_trait]
impl Engine for ObservedEngine {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn kept(&self) -> Vec<Capabilities> {
        self.inner.kept()
    }

    async fn boot(&self, slot: &Slot, spec: &BootSpec) -> Result<Box<dyn Vm>, BootError> {
        let work = self.inner.boot(slot, spec);
        let booted = self.effects.around_async(Effect::EngineBoot, work).await?;
        Ok(self.observe(booted))
    }

    async fn park(&self, slot: &Slot, spec: &RestoreSpec) -> Result<Box<dyn ParkedVm>, ParkError> {
        let work = self.inner.park(slot, spec);
        let inner = self.effects.around_async(Effect::EnginePark, work).await?;
        Ok(Box::new(ObservedParked {
            inner,
            effects: self.effects.clone(),
        }))
    }

    async fn adopt(&self, slot: &Slot, process: EngineProcess) -> Result<Box<dyn Vm>, AdoptError> {
        // Looks, and changes nothing.
        Ok(self.observe(self.inner.adopt(slot, process).await?))
    }
}

#[derive(Debug)]
struct ObservedParked {
    inner: Box<dyn ParkedVm>,
    effects: Effects,
}

#[async_trait]
impl ParkedVm for ObservedParked {
    fn process(&self) -> EngineProcess {
        self.inner.process()
    }

    async fn restore(self: Box<Self>) -> Result<Box<dyn Vm>, RestoreError> {
        let Self { inner, effects } = *self;
        let work = inner.restore();
        let inner = effects.around_async(Effect::EngineRestore, work).await?;
        Ok(Box::new(ObservedVm { inner, effects }))
    }
}

#[derive(Debug)]
struct ObservedVm {
    inner: Box<dyn Vm>,
    effects: Effects,
}

#[async_trait]
impl Vm for ObservedVm {
    fn process(&self) -> EngineProcess {
        self.inner.process()
    }

    async fn pause(&mut self) -> Result<(), ControlError> {
        let work = self.inner.pause();
        self.effects.around_async(Effect::EnginePause, work).await
    }

    async fn resume(&mut self) -> Result<(), ControlError> {
        let work = self.inner.resume();
        self.effects.around_async(Effect::EngineResume, work).await
    }

    async fn copy_ahead(
        &mut self,
        memory: &MemoryCapture,
    ) -> Result<Option<u64>, EngineCaptureError> {
        let work = self.inner.copy_ahead(memory);
        let effect = Effect::EngineCopyAhead;
        self.effects.around_async(effect, work).await
    }

    async fn capture(&mut self, spec: &CaptureSpec) -> Result<Captured, EngineCaptureError> {
        let work = self.inner.capture(spec);
        self.effects.around_async(Effect::EngineCapture, work).await
    }

    async fn note_writes(&mut self, memory_bytes: u64) -> Result<bool, GiveBackError> {
        // Looks, and changes nothing.
        self.inner.note_writes(memory_bytes).await
    }

    async fn give_back(
        &mut self,
        free: &[FrameRange],
        least_bytes: u64,
    ) -> Result<GivenBack, GiveBackError> {
        let work = self.inner.give_back(free, least_bytes);
        let effect = Effect::EngineGiveBack;
        self.effects.around_async(effect, work).await
    }

    async fn prepare_seal(&mut self, layer: &str, empty_layer: &Path) -> Result<(), SealError> {
        let work = self.inner.prepare_seal(layer, empty_layer);
        let effect = Effect::EnginePrepareSeal;
        self.effects.around_async(effect, work).await
    }

    async fn seal_disk(&mut self, layer: &str) -> Result<String, SealError> {
        let work = self.inner.seal_disk(layer);
        self.effects.around_async(Effect::EngineSeal, work).await
    }

    async fn writable_disk(&mut self) -> Result<String, ControlError> {
        self.inner.writable_disk().await
    }

    async fn grow_disk(&mut self, size: DiskMib) -> Result<(), ControlError> {
        let work = self.inner.grow_disk(size);
        self.effects.around_async(Effect::EngineGrow, work).await
    }

    async fn announce_volume(&mut self, spare: u8, bytes: u64) -> Result<(), ControlError> {
        let work = self.inner.announce_volume(spare, bytes);
        self.effects
            .around_async(Effect::EngineAnnounce, work)
            .await
    }

    async fn wait(&mut self) -> VmExit {
        self.inner.wait().await
    }

    async fn next_event(&mut self) -> VmEvent {
        self.inner.next_event().await
    }

    async fn waits_for_room(&mut self) -> Result<bool, ControlError> {
        self.inner.waits_for_room().await
    }

    async fn console(&mut self) -> Result<String, ControlError> {
        self.inner.console().await
    }

    async fn kill(&mut self) -> Result<(), ControlError> {
        let work = self.inner.kill();
        self.effects.around_async(Effect::EngineKill, work).await
    }
}
