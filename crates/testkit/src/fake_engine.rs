//! An engine without a hypervisor. Its processes are tasks, its captures are small files.
//!
//! It keeps the port's contract, the conformance suite included, and goes wrong only when told to.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use dayfly_vmm::{
    Accelerator, AdoptError, BootError, BootMemory, BootSpec, Capabilities, CaptureKind, DiskFiles,
    Engine, EngineBuild, EngineCommand, EngineKind, EngineProcess, LaunchError, MachineSpec,
    ParkError, ParkedVm, RestoreSpec, Slot, SlotLimits, SlotProvider, Vm, VmExit, file_names,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::fake_guest::FakeGuest;
use crate::fake_slots::FakeSlots;
use crate::fake_vm::{FakeParkedVm, FakeVm, Machine};
use crate::faults::{Fault, Faults, Ordered};

/// What can be made to go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineOperation {
    Boot,
    Park,
    Adopt,
    Restore,
    Pause,
    Resume,
    CopyAhead,
    Capture,
    NoteWrites,
    GiveBack,
    PrepareSeal,
    Seal,
    Grow,
    Kill,
    /// Being asked which file the guest writes to.
    WritableDisk,
}

/// How a guest came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestOrigin {
    Booted,
    /// From a capture; it waits for its identity.
    Restored,
}

/// What a guest in a fake machine is given.
#[derive(Debug)]
pub struct GuestSockets {
    pub origin: GuestOrigin,
    pub control: UnixListener,
    pub bulk: UnixListener,
    /// Whether the processors run. A guest does nothing while they do not.
    pub running: watch::Receiver<bool>,
}

/// Plays the guest of one machine until it is dropped, which is when the machine ends.
pub type GuestFactory =
    Arc<dyn Fn(GuestSockets) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// An [`Engine`] for tests.
pub struct FakeEngine {
    shared: Arc<Shared>,
    capabilities: Capabilities,
    kept: Vec<Capabilities>,
}

/// What the engine and its machines have in common.
pub(crate) struct Shared {
    pub(crate) slots: Arc<FakeSlots>,
    pub(crate) faults: Faults<EngineOperation>,
    guest: GuestFactory,
    /// Where guests live. Not where the caller of a restore does: a node that dies takes its own
    /// runtime along and not its machines.
    runtime: Handle,
    machines: Mutex<BTreeMap<i32, Arc<Machine>>>,
}

impl std::fmt::Debug for FakeEngine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("FakeEngine")
            .field("slots", &self.shared.slots)
            .finish()
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl FakeEngine {
    /// An engine whose guests speak the agent's protocol.
    #[must_use]
    pub fn new(slots: Arc<FakeSlots>) -> Self {
        let guest = |sockets: GuestSockets| -> Pin<Box<dyn Future<Output = ()> + Send>> {
            let guest = match sockets.origin {
                GuestOrigin::Booted => FakeGuest::booted(),
                GuestOrigin::Restored => FakeGuest::restored(),
            };
            Box::pin(guest.run(sockets))
        };
        Self::with_guest(slots, Arc::new(guest))
    }

    /// An engine whose guests are played by `guest`. They live in the runtime that this is called
    /// in.
    #[must_use]
    pub fn with_guest(slots: Arc<FakeSlots>, guest: GuestFactory) -> Self {
        let capabilities = Capabilities {
            engine: EngineKind::Fake,
            engine_version: "1".to_owned(),
            build: None,
            accelerator: Accelerator::Tcg,
            cpu_model: "fake".to_owned(),
            captures: vec![CaptureKind::DeviceOnly, CaptureKind::Diff],
            can_park: true,
        };
        let machines = Mutex::default();
        let shared = Shared {
            slots,
            faults: Faults::default(),
            guest,
            runtime: Handle::current(),
            machines,
        };
        Self {
            shared: Arc::new(shared),
            capabilities,
            kept: Vec::new(),
        }
    }

    /// Says something else about itself than it does by default.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The same host after another engine was installed, with earlier builds kept beside it.
    /// Machines go on.
    #[must_use]
    pub fn replaced(&self, installed: Capabilities, kept: Vec<Capabilities>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            capabilities: installed,
            kept,
        }
    }

    fn has_build(&self, wanted: &EngineBuild) -> bool {
        let mut all = self.kept.iter().chain([&self.capabilities]);
        all.any(|one| one.build.as_ref() == Some(wanted))
    }

    /// Has a write of every guest wait for room on the host's disk.
    pub fn run_out_of_room(&self) {
        for machine in self.shared.machines().values() {
            machine.run_out_of_room();
        }
    }

    /// What the machine of a process has given back to the host so far.
    #[must_use]
    pub fn given_back_bytes(&self, pid: i32) -> u64 {
        let machines = self.shared.machines();
        machines
            .get(&pid)
            .map_or(0, |machine| machine.given_back_bytes())
    }

    /// Has the kernel of every guest panic.
    pub fn panic_guests(&self) {
        for machine in self.shared.machines().values() {
            machine.panic();
        }
    }

    /// Has a write of every guest fail, of which the guests are told.
    pub fn break_disks(&self) {
        for machine in self.shared.machines().values() {
            machine.break_disk();
        }
    }

    #[must_use]
    pub fn faults(&self) -> &Faults<EngineOperation> {
        &self.shared.faults
    }
}

impl Shared {
    fn machines(&self) -> MutexGuard<'_, BTreeMap<i32, Arc<Machine>>> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plays out an order against a process that may have started already.
    pub(crate) async fn fault(
        &self,
        operation: EngineOperation,
        process: Option<EngineProcess>,
    ) -> Result<(), Ordered> {
        match self.faults.next(operation) {
            None => Ok(()),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Fail) => Err(Ordered),
            Some(Fault::Exit) => {
                if let Some(process) = process {
                    self.slots.end(process, VmExit::Exited { code: 1 });
                }
                Err(Ordered)
            }
        }
    }

    async fn launch(&self, slot: &Slot, spec: &MachineSpec) -> Result<EngineProcess, LaunchError> {
        let command = EngineCommand {
            root: PathBuf::from("/"),
            program: PathBuf::from("fake-engine"),
            arguments: Vec::new(),
            mounts: Vec::new(),
            environment: Vec::new(),
            devices: Vec::new(),
            limits: SlotLimits {
                memory: spec.memory,
                vcpus: spec.vcpus,
            },
            accelerator: Accelerator::Tcg,
        };
        self.slots.launch(slot, command).await
    }

    /// Makes the machine of a process: its sockets listen, its guest waits for its processors.
    fn start(
        &self,
        slot: &Slot,
        process: EngineProcess,
        spec: &MachineSpec,
        origin: GuestOrigin,
    ) -> io::Result<Arc<Machine>> {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let exit = self.slots.watch(process).ok_or_else(gone)?;
        let running = watch::Sender::new(false);
        let _here = self.runtime.enter();
        let sockets = GuestSockets {
            origin,
            control: UnixListener::bind(slot.run_directory.join(file_names::CONTROL_SOCKET))?,
            bulk: UnixListener::bind(slot.run_directory.join(file_names::BULK_SOCKET))?,
            running: running.subscribe(),
        };
        let guest = (self.guest)(sockets);
        let mut end = exit.clone();
        self.runtime.spawn(async move {
            tokio::select! {
                () = guest => {}
                _ = end.wait_for(Option::is_some) => {}
            }
        });
        let machine = Machine::new(process, slot.clone(), spec.clone(), running, exit);
        let machine = Arc::new(machine);
        self.machines().insert(process.pid, machine.clone());
        Ok(machine)
    }
}

#[async_trait]
impl Engine for FakeEngine {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn kept(&self) -> Vec<Capabilities> {
        self.kept.clone()
    }

    async fn boot(&self, slot: &Slot, spec: &BootSpec) -> Result<Box<dyn Vm>, BootError> {
        let shared = &self.shared;
        let process = shared
            .launch(slot, &spec.machine)
            .await
            .map_err(BootError::Launch)?;
        let boot = async {
            shared.fault(EngineOperation::Boot, Some(process)).await?;
            require(&spec.kernel)?;
            require(&spec.initial_ram_disk)?;
            lay_out(slot, &spec.disks)?;
            spec.volumes
                .iter()
                .try_for_each(|volume| require(&volume.file))?;
            if spec.memory == BootMemory::Image {
                let path = slot.run_directory.join(file_names::MEMORY_IMAGE);
                let memory = std::fs::File::create_new(path)?;
                memory.set_len(spec.machine.memory.bytes())?;
            }
            Ok(shared.start(slot, process, &spec.machine, GuestOrigin::Booted)?)
        };
        match boot.await {
            Ok(machine) => {
                machine.set_running(true);
                Ok(Box::new(FakeVm::new(machine, shared.clone())))
            }
            Err(error) => {
                shared.slots.end(process, VmExit::Signaled { signal: 9 });
                Err(BootError::Refused(error))
            }
        }
    }

    async fn park(&self, slot: &Slot, spec: &RestoreSpec) -> Result<Box<dyn ParkedVm>, ParkError> {
        let shared = &self.shared;
        if let Some(build) = spec.build.as_ref().filter(|build| !self.has_build(build)) {
            return Err(ParkError::NoBuild {
                build: build.clone(),
            });
        }
        let layout = |error: io::Error| ParkError::Layout(error.into());
        lay_out(slot, &spec.disks).map_err(layout)?;
        let process = shared
            .launch(slot, &spec.machine)
            .await
            .map_err(ParkError::Launch)?;
        let park = async {
            shared.fault(EngineOperation::Park, Some(process)).await?;
            spec.memory_image.file().map_or(Ok(()), require)?;
            spec.memory_layers
                .iter()
                .try_for_each(|layer| require(&layer.file))?;
            spec.volumes
                .iter()
                .try_for_each(|volume| require(&volume.file))?;
            Ok(shared.start(slot, process, &spec.machine, GuestOrigin::Restored)?)
        };
        match park.await {
            Ok(machine) => {
                let device_state = spec.device_state.clone();
                Ok(Box::new(FakeParkedVm::new(
                    machine,
                    shared.clone(),
                    device_state,
                )))
            }
            Err(error) => {
                shared.slots.end(process, VmExit::Signaled { signal: 9 });
                Err(ParkError::Refused(error))
            }
        }
    }

    async fn adopt(&self, slot: &Slot, process: EngineProcess) -> Result<Box<dyn Vm>, AdoptError> {
        let refused = |error: Ordered| AdoptError::Refused(error.into());
        self.shared
            .fault(EngineOperation::Adopt, Some(process))
            .await
            .map_err(refused)?;
        let machine = self.shared.machines().get(&process.pid).cloned();
        let machine = machine.filter(|machine| machine.is(process, slot.index));
        let machine = machine.ok_or(AdoptError::Gone)?;
        if !machine.is_loaded() {
            return Err(AdoptError::Refused("the engine is parked".into()));
        }
        Ok(Box::new(FakeVm::new(machine, self.shared.clone())))
    }
}

/// The same files as a real driver lays out, so that what seals and clears them is tested.
fn lay_out(slot: &Slot, disks: &DiskFiles) -> io::Result<()> {
    require(&disks.base)?;
    for part in &disks.base_parts {
        require(&part.content)?;
        require(&part.map)?;
    }
    disks.sealed.iter().try_for_each(|layer| require(layer))?;
    let disk = slot.run_directory.join(file_names::WRITABLE_DISK);
    std::fs::copy(&disks.empty_layer, disk)?;
    Ok(())
}

pub(crate) fn require(path: &Path) -> io::Result<()> {
    let describe = |error: io::Error| io::Error::new(error.kind(), format!("{}", path.display()));
    std::fs::metadata(path).map(drop).map_err(describe)
}

/// Guests that send back what they are sent, and nothing while their processors stand still.
#[must_use]
pub fn echo_guests() -> GuestFactory {
    Arc::new(|sockets| Box::pin(echo(sockets)))
}

/// Sends back what comes in on either port while the processors run.
async fn echo(sockets: GuestSockets) {
    let GuestSockets {
        control,
        bulk,
        running,
        ..
    } = sockets;
    tokio::join!(
        echo_port(control, running.clone()),
        echo_port(bulk, running)
    );
}

async fn echo_port(listener: UnixListener, mut running: watch::Receiver<bool>) {
    loop {
        match listener.accept().await {
            // One client at a time, as the port of a real engine.
            Ok((stream, _)) => drop(echo_stream(stream, &mut running).await),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn echo_stream(
    mut stream: UnixStream,
    running: &mut watch::Receiver<bool>,
) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        if running.wait_for(|running| *running).await.is_err() {
            return Ok(());
        }
        stream.write_all(&buffer[..count]).await?;
    }
}
