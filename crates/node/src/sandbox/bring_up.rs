//! From a record to a guest that has its identity and is about to run user code.
//!
//! The same for a create, a fork's child, a wake and a rollback: they differ in where the machine
//! is started from. Each step that takes something notes it in the record before the next begins,
//! so that whoever finds the record after a crash can undo it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dayfly_core::lifecycle::RunningEngine;
use dayfly_guest_client::{AgentClient, CallError, DiskMount};
use dayfly_guest_proto::{AgentToken, Entropy, Identified, Identity, IdentityEvent, MachineId};
use dayfly_node_api::NodeError;
use dayfly_snapshots::EngineIdentity;
use dayfly_types::exec::ExecCommand;
use dayfly_types::{Clock, DiskMib, ErrorCode, SandboxId, limits};
use dayfly_vmm::{
    BootSpec, ControlError, EngineProcess, ParkError, RestoreError, Slot, SlotError, SlotIndex, Vm,
    VmEvent, VolumeFile,
};

use super::permit::permit;
use super::stages::Stages;
use crate::bake::start_program;
use crate::boots::BootTurn;
use crate::bring_up_line::BringUpTurn;
use crate::console::console_of;
use crate::disk_lane::DiskLane;
use crate::effects::Effect;
use crate::guest::{OpenAgentError, open_agent};
use crate::journal::{AttachedVolume, JournalError, SandboxRecord};
use crate::parts::Parts;
use crate::pool::{Booting, TakeError};
use crate::templates::ReadyTemplate;
use crate::volumes::VolumeLease;

/// How long the programs of the template may take to be started in a machine that was booted.
const PROGRAMS_START_LIMIT: Duration = Duration::from_secs(10);

/// Why a machine could not be brought up. The owner releases the slot.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BringUpError {
    #[error("no engine could be had")]
    Engine(#[source] TakeError),
    #[error("the journal could not be written")]
    Journal(#[source] JournalError),
    #[error("the processor time could not be limited")]
    Limit(#[source] SlotError),
    #[error("the snapshot could not be restored")]
    Restore(#[source] RestoreError),
    #[error("the guest did not answer after its restore")]
    Agent(#[source] OpenAgentError),
    #[error(
        "its machine did not come up on that disk in time; ask again, or create it from an earlier \
         snapshot"
    )]
    NotUp(#[source] OpenAgentError),
    #[error(
        "its machine ended while it booted on that disk ({0}), which something on the disk may \
         cause; create it from an earlier snapshot"
    )]
    EndedInBoot(String),
    #[error("the guest did not take its identity")]
    Identity(#[source] CallError),
    #[error("a disk could not be enlarged")]
    Disk(#[source] ControlError),
    #[error("a volume could not be mounted")]
    Volume(#[source] CallError),
    #[error("the guest's disk could not be enlarged")]
    Grow(#[source] CallError),
    #[error("the guest's processes could not be thawed")]
    Thaw(#[source] CallError),
    #[error("no randomness could be had")]
    Randomness,
    #[error("it took longer than {0:?}")]
    TimedOut(Duration),
}

impl BringUpError {
    /// Whether the guest may have run before it failed.
    pub(crate) fn behind_restore(&self) -> bool {
        !matches!(self, Self::Engine(_) | Self::Journal(_) | Self::Limit(_))
    }

    pub(crate) fn into_node_error(self, what: &str) -> NodeError {
        let message = format!("{what}: {self}");
        match &self {
            // Retired between the look and the start.
            Self::Engine(TakeError::Park(ParkError::NoBuild { .. })) => {
                NodeError::new(ErrorCode::SnapshotUnfit, message)
            }
            // Another try would end as this one.
            Self::Engine(TakeError::Boot(_)) => crate::failure::node_error(what, &self),
            Self::Engine(_) | Self::TimedOut(_) => {
                NodeError::new(ErrorCode::NoCapacity, message).retry_after(Duration::from_secs(1))
            }
            Self::Agent(_)
            | Self::NotUp(_)
            | Self::EndedInBoot(_)
            | Self::Identity(_)
            | Self::Volume(_)
            | Self::Grow(_)
            | Self::Thaw(_) => NodeError::new(ErrorCode::GuestUnavailable, message),
            Self::Journal(_) | Self::Limit(_) | Self::Disk(_) | Self::Restore(_) => {
                crate::failure::node_error(what, &self)
            }
            Self::Randomness => NodeError::internal(message),
        }
    }
}

/// Where a machine is started from.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) template: Arc<ReadyTemplate>,
    /// What starts it, and runs the machine from then on.
    pub(crate) engine: EngineIdentity,
    pub(crate) start: Start,
    pub(crate) event: IdentityEvent,
    pub(crate) volumes: Vec<VolumeDisk>,
    /// The size that the writable disk must have, when it is another than what is restored.
    pub(crate) grow: Option<DiskMib>,
    /// Held until it runs, unless it boots, which has turns of its own.
    pub(crate) turn: Option<BringUpTurn>,
}

/// How a machine comes to life.
#[derive(Debug)]
pub(crate) enum Start {
    /// It is restored, and a parked engine will do: one has the template's own files and nothing
    /// else.
    RestorePlain,
    /// It is restored in an engine that is made for it.
    Restore,
    /// It boots with the disks of what it could otherwise be restored from.
    Boot {
        /// What runs in every sandbox of the template, since there is no memory that has it.
        programs: Vec<ExecCommand>,
        /// Held until it runs.
        _turn: BootTurn,
    },
}

impl Origin {
    /// How long it may take until the guest has its identity.
    pub(crate) const fn deadline(&self) -> Duration {
        match self.start {
            Start::RestorePlain | Start::Restore => limits::CREATE_DEADLINE,
            Start::Boot { .. } => limits::DISK_BOOT_DEADLINE,
        }
    }

    /// Puts a volume in the place of its spare disk.
    pub(crate) fn attach(&mut self, volume: &AttachedVolume, lease: VolumeLease, is_mounted: bool) {
        let AttachedVolume { mount, spare, .. } = volume;
        let template = Arc::make_mut(&mut self.template);
        template.restore.volumes.push(VolumeFile {
            spare: *spare,
            file: lease.file,
            read_only: mount.read_only,
        });
        self.volumes.push(VolumeDisk {
            spare: *spare,
            bytes: lease.bytes,
            path: mount.path.clone(),
            read_only: mount.read_only,
            is_mounted,
        });
        if matches!(self.start, Start::RestorePlain) {
            self.start = Start::Restore;
        }
    }
}

/// A volume that takes the place of a spare disk.
#[derive(Debug, Clone)]
pub(crate) struct VolumeDisk {
    pub(crate) spare: u8,
    pub(crate) bytes: u64,
    pub(crate) path: String,
    pub(crate) read_only: bool,
    /// Still mounted in the memory that is restored.
    pub(crate) is_mounted: bool,
}

/// A machine whose guest has its identity. User code does not run yet.
#[derive(Debug)]
pub(crate) struct BroughtUp {
    pub(crate) vm: Box<dyn Vm>,
    pub(crate) agent: AgentClient,
    pub(crate) identified: Identified,
    pub(crate) stages: Stages,
}

/// Where the engine may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Supply {
    /// A parked one if there is one.
    Any,
    /// One started now: a parked one was found dead.
    FreshOnly,
}

/// Brings up the machine that `record` describes, and keeps the record's slot and process true: the
/// slot is in the record before anything else is done with it.
pub(crate) async fn bring_up(
    parts: &Arc<Parts>,
    disk: &DiskLane,
    record: &mut SandboxRecord,
    origin: &Origin,
    supply: Supply,
) -> Result<BroughtUp, BringUpError> {
    let now = unix_nanos(parts.clock.as_ref());
    let mut stages = match &origin.turn {
        Some(turn) => Stages::begin_behind("line", turn.waited(), now),
        None => Stages::begin(now),
    };
    let (mut vm, agent) = match &origin.start {
        Start::Boot { .. } => boot(parts, disk, record, origin, &mut stages).await?,
        Start::RestorePlain | Start::Restore => {
            restore(parts, disk, record, origin, supply, &mut stages).await?
        }
    };
    let identity = identity(record, parts.clock.as_ref(), origin.event)?;
    let identified = parts
        .effects
        .around_async(Effect::GuestIdentify, agent.identify(identity))
        .await
        .map_err(BringUpError::Identity)?;
    stages.end("identity");
    if !origin.volumes.is_empty() || origin.grow.is_some() {
        set_up_disks(parts, vm.as_mut(), &agent, origin).await?;
        stages.end("disks");
    }
    Ok(BroughtUp {
        vm,
        agent,
        identified,
        stages,
    })
}

async fn restore(
    parts: &Arc<Parts>,
    disk: &DiskLane,
    record: &mut SandboxRecord,
    origin: &Origin,
    supply: Supply,
    stages: &mut Stages,
) -> Result<(Box<dyn Vm>, AgentClient), BringUpError> {
    let may_be_parked = supply == Supply::Any && matches!(origin.start, Start::RestorePlain);
    let parked = if may_be_parked {
        parts.pool.take(&origin.template).await
    } else {
        parts.pool.make(&origin.template).await
    };
    let parked = parked.map_err(BringUpError::Engine)?;
    let slot = parked.slot;
    record.engine = Some(origin.engine.clone());
    note(parts, disk, record, slot.index, parked.vm.process()).await?;
    limit_cpu(parts, record, &slot).await?;
    stages.end("engine");
    // Beside each other: until the permit is in force the guest reaches nothing.
    let (restored, ()) = tokio::join!(parked.vm.restore(), permit(parts, record));
    let mut vm = restored.map_err(BringUpError::Restore)?;
    stages.end("restore");
    let opened = open_agent(&slot.run_directory, limits::AGENT_HANDSHAKE_DEADLINE).await;
    let agent = or_console(record, vm.as_mut(), opened.map_err(BringUpError::Agent)).await?;
    stages.end("agent");
    Ok((vm, agent))
}

/// Boots once: a kernel that hangs is the caller's to try again, who has waited long enough.
async fn boot(
    parts: &Arc<Parts>,
    disk: &DiskLane,
    record: &mut SandboxRecord,
    origin: &Origin,
    stages: &mut Stages,
) -> Result<(Box<dyn Vm>, AgentClient), BringUpError> {
    let spec = BootSpec::with_disks_of(&origin.template.restore);
    let booting = parts.pool.boot(spec).await;
    let Booting { slot, mut vm } = booting.map_err(BringUpError::Engine)?;
    record.engine = Some(origin.engine.clone());
    note(parts, disk, record, slot.index, vm.process()).await?;
    stages.end("engine");
    permit(parts, record).await;
    let opened = tokio::select! {
        opened = open_agent(&slot.run_directory, limits::BOOT_DEADLINE) => {
            opened.map_err(BringUpError::NotUp)
        }
        end = end_of(vm.as_mut()) => Err(BringUpError::EndedInBoot(end)),
    };
    let agent = or_console(record, vm.as_mut(), opened).await?;
    // Not before: with a tenth of a processor no kernel comes up in time, and nothing of the user's
    // has run yet.
    limit_cpu(parts, record, &slot).await?;
    stages.end("boot");
    Ok((vm, agent))
}

/// Logs what the guest said last when nobody answers. It is the only trace of why: the machine is
/// ended next.
async fn or_console<T>(
    record: &SandboxRecord,
    vm: &mut dyn Vm,
    opened: Result<T, BringUpError>,
) -> Result<T, BringUpError> {
    if opened.is_err() {
        let console = console_of(vm).await;
        tracing::warn!(sandbox_id = %record.id, console, "a guest does not answer");
    }
    opened
}

/// How a machine ends by itself.
async fn end_of(vm: &mut dyn Vm) -> String {
    loop {
        match vm.next_event().await {
            VmEvent::Ended(exit) => return exit.to_string(),
            VmEvent::GuestEnded(end) => return end.to_string(),
            VmEvent::WriteFailed => return "a write to its disk failed".to_owned(),
            // It goes on when there is room.
            VmEvent::WaitsForRoom => {}
        }
    }
}

/// Starts what the memory of the template would have, in a machine that was booted and may run user
/// code by now. A disk on which that does not work any more still has its files, so nobody is
/// refused them for it.
pub(crate) async fn start_programs(id: &SandboxId, agent: &AgentClient, programs: &[ExecCommand]) {
    let start_all = async {
        for program in programs {
            if let Err(error) = start_program(agent, program, PROGRAMS_START_LIMIT).await {
                let error = crate::error_chain(&error);
                tracing::warn!(sandbox_id = %id, error, "a program of the template does not start");
            }
        }
    };
    if tokio::time::timeout(PROGRAMS_START_LIMIT, start_all)
        .await
        .is_err()
    {
        tracing::warn!(sandbox_id = %id, "the programs of the template take long to start");
    }
}

async fn set_up_disks(
    parts: &Parts,
    vm: &mut dyn Vm,
    agent: &AgentClient,
    origin: &Origin,
) -> Result<(), BringUpError> {
    for volume in origin.volumes.iter().filter(|volume| !volume.is_mounted) {
        if !volume.read_only {
            let announced = vm.announce_volume(volume.spare, volume.bytes).await;
            announced.map_err(BringUpError::Disk)?;
        }
        let mount = DiskMount {
            serial: format!("spare{}", volume.spare),
            path: volume.path.clone(),
            read_only: volume.read_only,
            expect_bytes: Some(volume.bytes),
        };
        parts
            .effects
            .around_async(Effect::GuestMount, agent.mount_volume(mount))
            .await
            .map_err(BringUpError::Volume)?;
    }
    if let Some(size) = origin.grow {
        vm.grow_disk(size).await.map_err(BringUpError::Disk)?;
        parts
            .effects
            .around_async(Effect::GuestGrow, agent.grow_disk(size.bytes()))
            .await
            .map_err(BringUpError::Grow)?;
    }
    Ok(())
}

async fn limit_cpu(parts: &Parts, record: &SandboxRecord, slot: &Slot) -> Result<(), BringUpError> {
    if let Some(cpu) = record.cpu {
        let limited = parts.slots.limit_cpu(slot.index, cpu).await;
        limited.map_err(BringUpError::Limit)?;
    }
    Ok(())
}

async fn note(
    parts: &Arc<Parts>,
    disk: &DiskLane,
    record: &mut SandboxRecord,
    slot: SlotIndex,
    process: EngineProcess,
) -> Result<(), BringUpError> {
    record.phase.take_engine(RunningEngine {
        slot,
        process,
        network_start: unix_nanos(parts.clock.as_ref()),
    });
    let (parts, record) = (Arc::clone(parts), record.clone());
    let written = disk.run(move || parts.journal.write(&record)).await;
    written.map_err(BringUpError::Journal)
}

/// Everything that must differ between two guests of one snapshot.
pub(crate) fn identity(
    record: &SandboxRecord,
    clock: &dyn Clock,
    event: IdentityEvent,
) -> Result<Identity, BringUpError> {
    let mut entropy = [0_u8; 32];
    getrandom::fill(&mut entropy).map_err(|_| BringUpError::Randomness)?;
    Ok(Identity {
        sandbox_id: record.id.clone(),
        hostname: record.id.as_str().to_owned(),
        machine_id: machine_id(&record.id, &record.agent_token),
        wall_clock_unix_nanos: unix_nanos(clock),
        entropy: Entropy(entropy),
        agent_token: AgentToken::new(record.agent_token.clone()),
        event: Some(event),
        reseed_user_space: record.reseed_user_space,
    })
}

/// The same for one sandbox through every sleep, and for no other: drawn from its secret token.
fn machine_id(id: &SandboxId, token: &str) -> MachineId {
    let hash = dayfly_snapshots::digest::hash_text(&["machine-id", id.as_str(), token]);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    MachineId::from_random(bytes)
}

/// Read as late as can be: every microsecond between here and the guest is an error of its clock.
pub(crate) fn unix_nanos(clock: &dyn Clock) -> u64 {
    let wall = clock
        .wall()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX)
}
