//! A phase as the journal has it: the fields of all phases side by side, as they were before there
//! were phases, so that programs of before read what this one writes.

use dayfly_types::capture::MachineOrigin;
use dayfly_types::{EngineProcess, SandboxState, SlotIndex, SnapshotId};
use serde::{Deserialize, Serialize};

use super::phase::{
    Asleep, DiskLayers, Machine, Phase, Remains, RunningEngine, Sealing, Start, Wake,
};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredPhase {
    state: SandboxState,
    #[serde(default)]
    reason: Option<String>,
    slot: Option<SlotIndex>,
    process: Option<EngineProcess>,
    #[serde(default)]
    origin: Option<SnapshotId>,
    /// Only the disk of `origin` is under the machine. Programs of before do not know this, so a
    /// record that says it has a format that they refuse.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    origin_is_disk: bool,
    #[serde(default)]
    sealed: Vec<SnapshotId>,
    #[serde(default)]
    asleep_in: Option<SnapshotId>,
    #[serde(default)]
    sealing: Option<Sealing>,
    #[serde(default)]
    next_layer: u32,
    #[serde(default)]
    network_start: u64,
}

/// Fields that do not make a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is {} and has no {lacks}", state.as_str())]
pub(super) struct NoPhase {
    state: SandboxState,
    lacks: &'static str,
}

impl StoredPhase {
    fn engine(&self) -> Option<RunningEngine> {
        Some(RunningEngine {
            slot: self.slot?,
            process: self.process?,
            network_start: self.network_start,
        })
    }

    fn capture(&self) -> Result<SnapshotId, NoPhase> {
        self.asleep_in.clone().ok_or(NoPhase {
            state: self.state,
            lacks: "capture",
        })
    }

    fn origin(&self) -> Result<MachineOrigin, NoPhase> {
        match (self.origin.clone(), self.origin_is_disk) {
            (None, false) => Ok(MachineOrigin::Template),
            (Some(id), false) => Ok(MachineOrigin::Capture(id)),
            (Some(id), true) => Ok(MachineOrigin::DiskOf(id)),
            (None, true) => Err(NoPhase {
                state: self.state,
                lacks: "capture under its disk",
            }),
        }
    }

    fn disk(self) -> Result<DiskLayers, NoPhase> {
        Ok(DiskLayers {
            origin: self.origin()?,
            sealed: self.sealed,
            sealing: self.sealing,
            next_layer: self.next_layer,
        })
    }

    fn machine(self) -> Result<Machine, NoPhase> {
        let engine = self.engine().ok_or(NoPhase {
            state: self.state,
            lacks: "engine",
        })?;
        Ok(Machine {
            engine,
            disk: self.disk()?,
        })
    }

    fn remains(self) -> Result<Remains, NoPhase> {
        Ok(Remains {
            reason: self.reason.clone(),
            slot: self.slot,
            asleep_in: self.asleep_in.clone(),
            disk: self.disk()?,
        })
    }
}

impl TryFrom<StoredPhase> for Phase {
    type Error = NoPhase;

    fn try_from(stored: StoredPhase) -> Result<Self, NoPhase> {
        Ok(match stored.state {
            SandboxState::Creating if stored.slot.is_some() && stored.process.is_none() => {
                return Err(NoPhase {
                    state: stored.state,
                    lacks: "process in its slot",
                });
            }
            SandboxState::Creating => Self::Creating(Start {
                engine: stored.engine(),
                origin: stored.origin()?,
            }),
            SandboxState::Running => Self::Running(stored.machine()?),
            SandboxState::Pausing => Self::Pausing(stored.machine()?),
            SandboxState::Paused => Self::Paused(stored.machine()?),
            SandboxState::Resuming => Self::Resuming(stored.machine()?),
            SandboxState::Hibernating => Self::Hibernating(stored.machine()?),
            SandboxState::Hibernated => Self::Hibernated(Asleep {
                capture: stored.capture()?,
                slot: stored.slot,
            }),
            SandboxState::Waking => Self::Waking(Wake {
                capture: stored.capture()?,
                slot: stored.slot,
                process: stored.process,
                network_start: stored.network_start,
            }),
            SandboxState::Failed => Self::Failed(stored.remains()?),
            // Nobody writes that it is gone; whoever did meant this.
            SandboxState::Deleting | SandboxState::Deleted => Self::Deleting(stored.remains()?),
        })
    }
}

impl From<Phase> for StoredPhase {
    fn from(phase: Phase) -> Self {
        let disk = phase.disk().cloned().unwrap_or_default();
        let origin = phase.origin();
        Self {
            state: phase.state(),
            reason: phase.reason().map(str::to_owned),
            slot: phase.slot(),
            process: phase.process(),
            origin: origin.and_then(MachineOrigin::capture).cloned(),
            origin_is_disk: matches!(origin, Some(MachineOrigin::DiskOf(_))),
            sealed: disk.sealed,
            asleep_in: phase.asleep_in().cloned(),
            sealing: disk.sealing,
            next_layer: disk.next_layer,
            network_start: phase.network_start(),
        }
    }
}
