//! The only way from one phase to another.

use dayfly_types::capture::MachineOrigin;
use dayfly_types::{SandboxState, SlotIndex, SnapshotId};

use super::event::LifecycleEvent as Event;
use super::phase::{Asleep, DiskLayers, Machine, Phase, Remains, RunningEngine, Wake};

/// A change that the lifecycle does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a sandbox that is {} does not take {event:?}", from.as_str())]
pub struct IllegalTransition {
    pub from: SandboxState,
    pub event: Event,
}

/// The phase after `event`.
///
/// # Errors
/// [`IllegalTransition`] for every pair that the drawing of [`super`] does not show, and for one
/// that would need what the sandbox does not have.
pub fn next(from: &Phase, event: Event) -> Result<Phase, IllegalTransition> {
    follow(from, &event).ok_or_else(|| IllegalTransition {
        from: from.state(),
        event,
    })
}

fn follow(from: &Phase, event: &Event) -> Option<Phase> {
    let to = match (from, event) {
        (Phase::Creating(start), Event::Ready) => {
            let origin = start.origin.clone();
            Phase::Running(machine_on(start.engine?, origin))
        }
        (Phase::Running(machine), Event::Pause) => Phase::Pausing(machine.clone()),
        (Phase::Pausing(machine), Event::PauseDone)
        | (Phase::Resuming(machine), Event::ResumeUndone) => Phase::Paused(machine.clone()),
        (Phase::Paused(machine), Event::Resume) => Phase::Resuming(machine.clone()),
        (Phase::Resuming(machine), Event::ResumeDone | Event::TakenOver)
        | (Phase::Pausing(machine), Event::PauseUndone | Event::TakenOver)
        | (Phase::Hibernating(machine), Event::HibernateUndone | Event::TakenOver) => {
            Phase::Running(machine.clone())
        }
        (Phase::Running(machine), Event::Hibernate) => Phase::Hibernating(machine.clone()),
        (Phase::Hibernating(machine), Event::HibernateDone(capture)) => {
            asleep(capture, Some(machine.engine.slot))
        }
        (Phase::Hibernated(asleep), Event::Wake) => waking(from, &asleep.capture),
        (Phase::Running(_) | Phase::Paused(_) | Phase::Hibernated(_), Event::Rollback(to)) => {
            waking(from, to)
        }
        (Phase::Waking(wake), Event::WakeDone) => {
            let origin = MachineOrigin::Capture(wake.capture.clone());
            Phase::Running(machine_on(engine_of(wake)?, origin))
        }
        (Phase::Waking(wake), Event::WakeUndone) => asleep(&wake.capture, wake.slot),
        (Phase::Running(machine), Event::WakeUndone) => {
            let capture = machine.disk.origin.restored_from()?;
            asleep(capture, Some(machine.engine.slot))
        }
        (Phase::Failed(remains), Event::StillAsleep) => {
            asleep(remains.asleep_in.as_ref()?, remains.slot)
        }
        (Phase::Deleting(_), Event::Gone) => Phase::Deleted,
        (Phase::Deleted, _) => return None,
        (_, Event::Delete) => Phase::Deleting(remains(from)),
        (Phase::Deleting(_), _) => return None,
        (_, Event::Fault(reason)) => Phase::Failed(Remains {
            reason: Some(reason.clone()),
            ..remains(from)
        }),
        _ => return None,
    };
    Some(to)
}

fn machine_on(engine: RunningEngine, origin: MachineOrigin) -> Machine {
    let disk = DiskLayers {
        origin,
        ..DiskLayers::default()
    };
    Machine { engine, disk }
}

fn engine_of(wake: &Wake) -> Option<RunningEngine> {
    Some(RunningEngine {
        slot: wake.slot?,
        process: wake.process?,
        network_start: wake.network_start,
    })
}

fn asleep(capture: &SnapshotId, slot: Option<SlotIndex>) -> Phase {
    Phase::Hibernated(Asleep {
        capture: capture.clone(),
        slot,
    })
}

fn waking(from: &Phase, capture: &SnapshotId) -> Phase {
    Phase::Waking(Wake {
        capture: capture.clone(),
        slot: from.slot(),
        process: from.process(),
        network_start: from.network_start(),
    })
}

fn remains(from: &Phase) -> Remains {
    let disk = DiskLayers {
        origin: from.origin().cloned().unwrap_or_default(),
        ..from.disk().cloned().unwrap_or_default()
    };
    Remains {
        reason: from.reason().map(str::to_owned),
        slot: from.slot(),
        disk,
        asleep_in: from.asleep_in().cloned(),
    }
}
