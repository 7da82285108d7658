//! What a sandbox is and has in each part of its life.

use dayfly_types::capture::MachineOrigin;
use dayfly_types::{EngineProcess, SandboxState, SlotIndex, SnapshotId};
use serde::{Deserialize, Serialize};

use super::stored::StoredPhase;

/// The engine of a machine, and the place that it has on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningEngine {
    pub slot: SlotIndex,
    pub process: EngineProcess,
    /// Tells this start of the machine from every other one of any sandbox.
    pub network_start: u64,
}

/// What a fresh process must know of a capture that was cut short: if the machine writes to
/// `layer`, what it wrote to before belongs to the capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealing {
    pub capture: SnapshotId,
    pub layer: String,
    /// The file in the run directory that is being sealed.
    pub sealed: String,
}

/// What the disk of a machine lies on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskLayers {
    /// What the machine was started from.
    pub origin: MachineOrigin,
    /// Captures that the machine has sealed disk layers into since, lowest first.
    pub sealed: Vec<SnapshotId>,
    /// A capture under way whose disk layer may or may not be sealed.
    pub sealing: Option<Sealing>,
    /// The number of the next disk layer in the run directory.
    pub next_layer: u32,
}

impl DiskLayers {
    fn above_origin(&self) -> impl Iterator<Item = &SnapshotId> {
        let sealing = self.sealing.iter().map(|sealing| &sealing.capture);
        self.sealed.iter().chain(sealing)
    }
}

/// A sandbox that is being made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// As in [`DiskLayers`].
    pub origin: MachineOrigin,
    pub engine: Option<RunningEngine>,
}

/// A sandbox with a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub engine: RunningEngine,
    pub disk: DiskLayers,
}

/// A sandbox that sleeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asleep {
    pub capture: SnapshotId,
    /// The slot of the machine that was captured, until that is ended.
    pub slot: Option<SlotIndex>,
}

/// A sandbox that is being restored from a capture of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    pub capture: SnapshotId,
    /// Of the machine before, until that is ended, and then of the new one.
    pub slot: Option<SlotIndex>,
    /// Stays when its slot is given back: that there was a machine is what a fresh process must
    /// know.
    pub process: Option<EngineProcess>,
    /// As in [`RunningEngine`].
    pub network_start: u64,
}

/// What there may be of a sandbox that never runs again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remains {
    /// Why it failed, if it did.
    pub reason: Option<String>,
    pub slot: Option<SlotIndex>,
    pub disk: DiskLayers,
    pub asleep_in: Option<SnapshotId>,
}

/// Where a sandbox is in its life, with exactly what it has there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredPhase", into = "StoredPhase")]
pub enum Phase {
    #[non_exhaustive]
    Creating(Start),
    #[non_exhaustive]
    Running(Machine),
    #[non_exhaustive]
    Pausing(Machine),
    #[non_exhaustive]
    Paused(Machine),
    #[non_exhaustive]
    Resuming(Machine),
    #[non_exhaustive]
    Hibernating(Machine),
    #[non_exhaustive]
    Hibernated(Asleep),
    #[non_exhaustive]
    Waking(Wake),
    #[non_exhaustive]
    Failed(Remains),
    #[non_exhaustive]
    Deleting(Remains),
    Deleted,
}

impl Phase {
    /// The first phase: a sandbox whose machine will be started from this.
    #[must_use]
    pub const fn creating(origin: MachineOrigin) -> Self {
        Self::Creating(Start {
            origin,
            engine: None,
        })
    }

    #[must_use]
    pub const fn state(&self) -> SandboxState {
        match self {
            Self::Creating(_) => SandboxState::Creating,
            Self::Running(_) => SandboxState::Running,
            Self::Pausing(_) => SandboxState::Pausing,
            Self::Paused(_) => SandboxState::Paused,
            Self::Resuming(_) => SandboxState::Resuming,
            Self::Hibernating(_) => SandboxState::Hibernating,
            Self::Hibernated(_) => SandboxState::Hibernated,
            Self::Waking(_) => SandboxState::Waking,
            Self::Failed(_) => SandboxState::Failed,
            Self::Deleting(_) => SandboxState::Deleting,
            Self::Deleted => SandboxState::Deleted,
        }
    }

    /// What it has, by kind.
    const fn belongings(&self) -> Belongings<'_> {
        match self {
            Self::Creating(start) => Belongings::Start(start),
            Self::Running(machine)
            | Self::Pausing(machine)
            | Self::Paused(machine)
            | Self::Resuming(machine)
            | Self::Hibernating(machine) => Belongings::Machine(machine),
            Self::Hibernated(asleep) => Belongings::Asleep(asleep),
            Self::Waking(wake) => Belongings::Wake(wake),
            Self::Failed(remains) | Self::Deleting(remains) => Belongings::Remains(remains),
            Self::Deleted => Belongings::Nothing,
        }
    }

    /// The machine, in the phases that have a whole one.
    #[must_use]
    pub const fn machine(&self) -> Option<&Machine> {
        match self.belongings() {
            Belongings::Machine(machine) => Some(machine),
            Belongings::Start(_)
            | Belongings::Asleep(_)
            | Belongings::Wake(_)
            | Belongings::Remains(_)
            | Belongings::Nothing => None,
        }
    }

    /// The slot that belongs to the sandbox, whatever is in it.
    #[must_use]
    pub fn slot(&self) -> Option<SlotIndex> {
        match self.belongings() {
            Belongings::Start(start) => start.engine.map(|engine| engine.slot),
            Belongings::Machine(machine) => Some(machine.engine.slot),
            Belongings::Asleep(asleep) => asleep.slot,
            Belongings::Wake(wake) => wake.slot,
            Belongings::Remains(remains) => remains.slot,
            Belongings::Nothing => None,
        }
    }

    /// The engine that runs or ran last for it.
    #[must_use]
    pub fn process(&self) -> Option<EngineProcess> {
        match self.belongings() {
            Belongings::Start(start) => start.engine.map(|engine| engine.process),
            Belongings::Machine(machine) => Some(machine.engine.process),
            Belongings::Wake(wake) => wake.process,
            Belongings::Asleep(_) | Belongings::Remains(_) | Belongings::Nothing => None,
        }
    }

    /// See [`RunningEngine::network_start`].
    #[must_use]
    pub fn network_start(&self) -> u64 {
        match self.belongings() {
            Belongings::Start(start) => start.engine.map_or(0, |engine| engine.network_start),
            Belongings::Machine(machine) => machine.engine.network_start,
            Belongings::Wake(wake) => wake.network_start,
            Belongings::Asleep(_) | Belongings::Remains(_) | Belongings::Nothing => 0,
        }
    }

    /// What its machine was or will be started from, in the phases that know.
    #[must_use]
    pub const fn origin(&self) -> Option<&MachineOrigin> {
        match self.belongings() {
            Belongings::Start(start) => Some(&start.origin),
            Belongings::Machine(machine) => Some(&machine.disk.origin),
            Belongings::Remains(remains) => Some(&remains.disk.origin),
            Belongings::Asleep(_) | Belongings::Wake(_) | Belongings::Nothing => None,
        }
    }

    /// What its disk lies on, in the phases in which it has one of its own or left one.
    #[must_use]
    pub const fn disk(&self) -> Option<&DiskLayers> {
        match self.belongings() {
            Belongings::Machine(machine) => Some(&machine.disk),
            Belongings::Remains(remains) => Some(&remains.disk),
            Belongings::Start(_)
            | Belongings::Asleep(_)
            | Belongings::Wake(_)
            | Belongings::Nothing => None,
        }
    }

    /// The same, to be changed by a capture.
    pub const fn disk_mut(&mut self) -> Option<&mut DiskLayers> {
        match self {
            Self::Running(machine)
            | Self::Pausing(machine)
            | Self::Paused(machine)
            | Self::Resuming(machine)
            | Self::Hibernating(machine) => Some(&mut machine.disk),
            Self::Failed(remains) | Self::Deleting(remains) => Some(&mut remains.disk),
            Self::Creating(_) | Self::Hibernated(_) | Self::Waking(_) | Self::Deleted => None,
        }
    }

    /// The capture that it sleeps in or wakes from.
    #[must_use]
    pub const fn asleep_in(&self) -> Option<&SnapshotId> {
        match self.belongings() {
            Belongings::Asleep(asleep) => Some(&asleep.capture),
            Belongings::Wake(wake) => Some(&wake.capture),
            Belongings::Remains(remains) => remains.asleep_in.as_ref(),
            Belongings::Start(_) | Belongings::Machine(_) | Belongings::Nothing => None,
        }
    }

    /// Why it failed.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self.belongings() {
            Belongings::Remains(remains) => remains.reason.as_deref(),
            Belongings::Start(_)
            | Belongings::Machine(_)
            | Belongings::Asleep(_)
            | Belongings::Wake(_)
            | Belongings::Nothing => None,
        }
    }

    /// The captures that must stay for it.
    pub fn captures(&self) -> impl Iterator<Item = &SnapshotId> {
        let above = self.disk().into_iter().flat_map(DiskLayers::above_origin);
        let origin = self.origin().and_then(MachineOrigin::capture).into_iter();
        origin.chain(self.asleep_in()).chain(above)
    }

    /// Notes the engine that was taken for a machine that is being brought up. No other phase takes
    /// one.
    pub fn take_engine(&mut self, taken: RunningEngine) {
        if let Self::Creating(start) = self {
            start.engine = Some(taken);
        } else if let Self::Waking(wake) = self {
            wake.slot = Some(taken.slot);
            wake.process = Some(taken.process);
            wake.network_start = taken.network_start;
        } else {
            debug_assert!(false, "an engine was taken for a sandbox that needs none");
        }
    }

    /// Notes that the slot was given back, with everything that was in it. A phase with a whole
    /// machine is left before that.
    pub fn give_slot_back(&mut self) {
        match self {
            Self::Creating(start) => start.engine = None,
            Self::Hibernated(asleep) => asleep.slot = None,
            Self::Waking(wake) => wake.slot = None,
            Self::Failed(remains) | Self::Deleting(remains) => remains.slot = None,
            Self::Running(_)
            | Self::Pausing(_)
            | Self::Paused(_)
            | Self::Resuming(_)
            | Self::Hibernating(_)
            | Self::Deleted => debug_assert!(false, "a machine has lost its slot"),
        }
    }
}

/// What a sandbox has, by kind: several phases have the same.
enum Belongings<'a> {
    Start(&'a Start),
    Machine(&'a Machine),
    Asleep(&'a Asleep),
    Wake(&'a Wake),
    Remains(&'a Remains),
    Nothing,
}
