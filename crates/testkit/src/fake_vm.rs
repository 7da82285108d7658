//! The machines of the fake engine.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dayfly_types::DiskMib;
use dayfly_vmm::{
    CaptureSpec, Captured, ControlError, EngineCaptureError, EngineProcess, FrameRange,
    GiveBackError, GivenBack, GuestEnd, MachineSpec, MemoryCapture, PAGE_BYTES, PageRange,
    ParkedVm, RestoreError, SealError, Slot, SlotIndex, Vm, VmEvent, VmExit, file_names,
};
use tokio::sync::watch;

use crate::fake_engine::{EngineOperation, Shared};

/// What a guest that panicked has on its console.
const PANIC_TEXT: &str = "\u{1b}[0mlong ago\r\n\r\nKernel panic - not syncing: out of memory\r\n";

/// One machine, for as long as its process is known.
#[derive(Debug)]
pub(crate) struct Machine {
    process: EngineProcess,
    slot: Slot,
    spec: MachineSpec,
    running: watch::Sender<bool>,
    exit: watch::Receiver<Option<VmExit>>,
    is_loaded: AtomicBool,
    /// Whether a write of the guest waits for room.
    waits: watch::Sender<bool>,
    /// Whether the guest was told of a write that failed.
    is_damaged: watch::Sender<bool>,
    /// Whether the guest has panicked.
    is_panicked: watch::Sender<bool>,
    /// The file that the guest's writes go to.
    writable: Mutex<String>,
    given_back_bytes: AtomicU64,
}

impl Machine {
    pub(crate) fn new(
        process: EngineProcess,
        slot: Slot,
        spec: MachineSpec,
        running: watch::Sender<bool>,
        exit: watch::Receiver<Option<VmExit>>,
    ) -> Self {
        Self {
            process,
            slot,
            spec,
            running,
            exit,
            is_loaded: AtomicBool::new(false),
            waits: watch::Sender::new(false),
            is_damaged: watch::Sender::new(false),
            is_panicked: watch::Sender::new(false),
            writable: Mutex::new(file_names::WRITABLE_DISK.to_owned()),
            given_back_bytes: AtomicU64::new(0),
        }
    }

    pub(crate) fn given_back_bytes(&self) -> u64 {
        self.given_back_bytes.load(Ordering::SeqCst)
    }

    pub(crate) fn is(&self, process: EngineProcess, slot: SlotIndex) -> bool {
        self.process == process && self.slot.index == slot && self.exit().is_none()
    }

    /// Whether it is a machine, and not a parked engine.
    pub(crate) fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::SeqCst)
    }

    pub(crate) fn set_running(&self, running: bool) {
        self.is_loaded.store(true, Ordering::SeqCst);
        self.running.send_replace(running);
    }

    /// The host has no room for what the guest writes: it stands still.
    pub(crate) fn run_out_of_room(&self) {
        self.running.send_replace(false);
        self.waits.send_replace(true);
    }

    /// A write fails for good, and the guest is told.
    pub(crate) fn break_disk(&self) {
        self.is_damaged.send_replace(true);
    }

    /// The guest's kernel gives up, and its engine keeps what it said.
    pub(crate) fn panic(&self) {
        self.running.send_replace(false);
        self.is_panicked.send_replace(true);
    }

    fn exit(&self) -> Option<VmExit> {
        *self.exit.borrow()
    }

    async fn ended(&self) -> VmExit {
        let mut exit = self.exit.clone();
        // A sender that is gone belonged to a slot that was released.
        let ended = exit
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|exit| *exit);
        ended.unwrap_or(VmExit::Gone)
    }

    async fn waits_for_room(&self) {
        // The sender is this machine's own.
        let _ = self.waits.subscribe().wait_for(|waits| *waits).await;
    }

    async fn breaks(&self) {
        let _ = self.is_damaged.subscribe().wait_for(|broken| *broken).await;
    }

    async fn panics(&self) {
        let _ = self.is_panicked.subscribe().wait_for(|it_is| *it_is).await;
    }

    fn writable(&self) -> MutexGuard<'_, String> {
        self.writable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fake of a parked engine.
#[derive(Debug)]
pub(crate) struct FakeParkedVm {
    machine: Arc<Machine>,
    shared: Arc<Shared>,
    device_state: PathBuf,
}

impl FakeParkedVm {
    pub(crate) fn new(machine: Arc<Machine>, shared: Arc<Shared>, device_state: PathBuf) -> Self {
        Self {
            machine,
            shared,
            device_state,
        }
    }

    /// A state loads only into a machine of the shape it was captured from.
    fn load(&self) -> Result<(), RestoreError> {
        let refused = |error: std::io::Error| RestoreError::Refused(error.into());
        let bytes = std::fs::read(&self.device_state).map_err(refused)?;
        let captured: MachineSpec =
            serde_json::from_slice(&bytes).map_err(|error| RestoreError::Refused(error.into()))?;
        if captured != self.machine.spec {
            return Err(RestoreError::Refused(
                "captured from another machine".into(),
            ));
        }
        Ok(())
    }
}

#[async_trait]
impl ParkedVm for FakeParkedVm {
    fn process(&self) -> EngineProcess {
        self.machine.process
    }

    async fn restore(self: Box<Self>) -> Result<Box<dyn Vm>, RestoreError> {
        let process = self.machine.process;
        if self.machine.exit().is_some() {
            return Err(RestoreError::Gone);
        }
        let fault = self
            .shared
            .fault(EngineOperation::Restore, Some(process))
            .await;
        let loaded = fault.map_err(|error| RestoreError::Refused(error.into()));
        if let Err(error) = loaded.and_then(|()| self.load()) {
            self.shared
                .slots
                .end(process, VmExit::Signaled { signal: 9 });
            return Err(error);
        }
        self.machine.set_running(true);
        Ok(Box::new(FakeVm::new(self.machine, self.shared)))
    }
}

/// The fake of a machine.
#[derive(Debug)]
pub(crate) struct FakeVm {
    machine: Arc<Machine>,
    shared: Arc<Shared>,
    /// Whether the event that it waits for room was told already.
    is_told: bool,
    told_of_failure: bool,
    /// Whether writes are noted for memory that is to be given back.
    is_noted: bool,
}

impl FakeVm {
    pub(crate) fn new(machine: Arc<Machine>, shared: Arc<Shared>) -> Self {
        Self {
            machine,
            shared,
            is_told: false,
            told_of_failure: false,
            is_noted: false,
        }
    }

    async fn control(&self, operation: EngineOperation) -> Result<(), ControlError> {
        let fault = self
            .shared
            .fault(operation, Some(self.machine.process))
            .await;
        if self.machine.exit().is_some() {
            return Err(ControlError::Gone);
        }
        fault.map_err(|error| ControlError::Refused(error.into()))
    }

    async fn give_back_step(&self, operation: EngineOperation) -> Result<(), GiveBackError> {
        let process = Some(self.machine.process);
        let fault = self.shared.fault(operation, process).await;
        if self.machine.exit().is_some() {
            return Err(GiveBackError::Gone);
        }
        fault.map_err(|error| GiveBackError::Refused(error.into()))
    }

    async fn seal_step(&self, operation: EngineOperation) -> Result<(), SealError> {
        let process = Some(self.machine.process);
        let fault = self.shared.fault(operation, process).await;
        if self.machine.exit().is_some() {
            return Err(SealError::Gone);
        }
        fault.map_err(|error| SealError::Refused(error.into()))
    }

    /// One changed page, so that layers are not empty.
    fn save_memory(&self, capture: &MemoryCapture) -> std::io::Result<Vec<PageRange>> {
        let layer = std::fs::File::options().write(true).open(&capture.layer)?;
        layer.set_len(self.machine.spec.memory.bytes())?;
        std::os::unix::fs::FileExt::write_all_at(&layer, &[1; 4096], 0)?;
        Ok(vec![PageRange { first: 0, count: 1 }])
    }
}

fn has_room(memory: &MemoryCapture) -> Result<(), EngineCaptureError> {
    if memory.bytes_max < PAGE_BYTES {
        return Err(EngineCaptureError::TooMuch {
            wanted_bytes: PAGE_BYTES,
            limit_bytes: memory.bytes_max,
        });
    }
    Ok(())
}

#[async_trait]
impl Vm for FakeVm {
    fn process(&self) -> EngineProcess {
        self.machine.process
    }

    async fn pause(&mut self) -> Result<(), ControlError> {
        self.control(EngineOperation::Pause).await?;
        self.machine.set_running(false);
        Ok(())
    }

    async fn resume(&mut self) -> Result<(), ControlError> {
        self.control(EngineOperation::Resume).await?;
        self.is_told = false;
        self.machine.waits.send_replace(false);
        self.machine.set_running(true);
        Ok(())
    }

    async fn copy_ahead(
        &mut self,
        memory: &MemoryCapture,
    ) -> Result<Option<u64>, EngineCaptureError> {
        let process = Some(self.machine.process);
        let fault = self.shared.fault(EngineOperation::CopyAhead, process).await;
        if self.machine.exit().is_some() {
            return Err(EngineCaptureError::Gone);
        }
        fault.map_err(|error| EngineCaptureError::Refused(error.into()))?;
        has_room(memory)?;
        let written = self.save_memory(memory);
        written.map_err(|error| EngineCaptureError::Memory(error.into()))?;
        Ok(Some(PAGE_BYTES))
    }

    async fn capture(&mut self, spec: &CaptureSpec) -> Result<Captured, EngineCaptureError> {
        let process = self.machine.process;
        let fault = self
            .shared
            .fault(EngineOperation::Capture, Some(process))
            .await;
        if self.machine.exit().is_some() {
            return Err(EngineCaptureError::Gone);
        }
        fault.map_err(|error| EngineCaptureError::Refused(error.into()))?;
        if *self.machine.running.borrow() {
            return Err(EngineCaptureError::Refused("the machine runs".into()));
        }
        if *self.machine.waits.borrow() {
            return Err(EngineCaptureError::WaitsForRoom);
        }
        if *self.machine.is_damaged.borrow() {
            return Err(EngineCaptureError::DiskDamaged);
        }
        if spec.device_state.parent() != Some(&self.machine.slot.run_directory) {
            return Err(EngineCaptureError::Refused(
                "not in the run directory".into(),
            ));
        }
        let bytes = serde_json::to_vec(&self.machine.spec)
            .map_err(|error| EngineCaptureError::Refused(error.into()))?;
        std::fs::write(&spec.device_state, &bytes)
            .map_err(|error| EngineCaptureError::Refused(error.into()))?;
        let mut captured = Captured {
            device_state_bytes: bytes.len() as u64,
            ..Captured::default()
        };
        if let Some(memory) = &spec.memory {
            has_room(memory)?;
            let written = self.save_memory(memory);
            captured.extents = written.map_err(|error| EngineCaptureError::Memory(error.into()))?;
            captured.patched_pages = u64::from(memory.patch.is_some());
        }
        Ok(captured)
    }

    async fn note_writes(&mut self, _memory_bytes: u64) -> Result<bool, GiveBackError> {
        self.give_back_step(EngineOperation::NoteWrites).await?;
        self.is_noted = true;
        Ok(true)
    }

    /// Of this guest all is changed, and nothing is written after it was noted.
    async fn give_back(
        &mut self,
        free: &[FrameRange],
        least_bytes: u64,
    ) -> Result<GivenBack, GiveBackError> {
        if !std::mem::take(&mut self.is_noted) {
            return Err(GiveBackError::NotNoted);
        }
        self.give_back_step(EngineOperation::GiveBack).await?;
        if !*self.machine.running.borrow() {
            return Err(GiveBackError::NotRunning);
        }
        let all = self.machine.spec.memory.bytes() / PAGE_BYTES;
        let within = |range: &FrameRange| {
            let end = range.first.saturating_add(range.count).min(all);
            end.saturating_sub(range.first) * PAGE_BYTES
        };
        let bytes: u64 = free.iter().map(within).sum();
        if bytes < least_bytes {
            return Ok(GivenBack {
                left_bytes: bytes,
                ..GivenBack::default()
            });
        }
        let given = &self.machine.given_back_bytes;
        given.fetch_add(bytes, Ordering::SeqCst);
        Ok(GivenBack {
            bytes,
            stops: 1,
            ..GivenBack::default()
        })
    }

    async fn prepare_seal(&mut self, layer: &str, empty_layer: &Path) -> Result<(), SealError> {
        self.seal_step(EngineOperation::PrepareSeal).await?;
        let path = self.machine.slot.run_directory.join(layer);
        let copied = std::fs::copy(empty_layer, path);
        copied.map_err(|error| SealError::Layer(error.into()))?;
        Ok(())
    }

    async fn seal_disk(&mut self, layer: &str) -> Result<String, SealError> {
        self.seal_step(EngineOperation::Seal).await?;
        if *self.machine.running.borrow() {
            return Err(SealError::Refused("the machine runs".into()));
        }
        let path = self.machine.slot.run_directory.join(layer);
        crate::fake_engine::require(&path).map_err(|error| SealError::Refused(error.into()))?;
        let mut writable = self.machine.writable();
        Ok(std::mem::replace(&mut *writable, layer.to_owned()))
    }

    async fn writable_disk(&mut self) -> Result<String, ControlError> {
        self.control(EngineOperation::WritableDisk).await?;
        Ok(self.machine.writable().clone())
    }

    async fn grow_disk(&mut self, _size: DiskMib) -> Result<(), ControlError> {
        self.control(EngineOperation::Grow).await
    }

    async fn announce_volume(&mut self, _spare: u8, _bytes: u64) -> Result<(), ControlError> {
        self.control(EngineOperation::Grow).await
    }

    async fn wait(&mut self) -> VmExit {
        self.machine.ended().await
    }

    async fn next_event(&mut self) -> VmEvent {
        tokio::select! {
            exit = self.machine.ended() => VmEvent::Ended(exit),
            () = self.machine.panics() => VmEvent::GuestEnded(GuestEnd::ShutDown),
            () = self.machine.waits_for_room(), if !self.is_told => {
                self.is_told = true;
                VmEvent::WaitsForRoom
            }
            () = self.machine.breaks(), if !self.told_of_failure => {
                self.told_of_failure = true;
                VmEvent::WriteFailed
            }
        }
    }

    async fn waits_for_room(&mut self) -> Result<bool, ControlError> {
        if self.machine.exit().is_some() {
            return Err(ControlError::Gone);
        }
        Ok(*self.machine.waits.borrow())
    }

    async fn console(&mut self) -> Result<String, ControlError> {
        if self.machine.exit().is_some() {
            return Err(ControlError::Gone);
        }
        let is_panicked = *self.machine.is_panicked.borrow();
        let text = if is_panicked { PANIC_TEXT } else { "" };
        Ok(text.to_owned())
    }

    async fn kill(&mut self) -> Result<(), ControlError> {
        let fault = self
            .shared
            .fault(EngineOperation::Kill, Some(self.machine.process))
            .await;
        fault.map_err(|error| ControlError::Refused(error.into()))?;
        self.shared
            .slots
            .end(self.machine.process, VmExit::Signaled { signal: 9 });
        Ok(())
    }
}
