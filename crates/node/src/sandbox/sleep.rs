//! Standing still and coming back: pause and resume, hibernate and wake, rollback.

use std::sync::Arc;
use std::time::Instant;

use dayfly_core::lifecycle::LifecycleEvent;
use dayfly_guest_proto::IdentityEvent;
use dayfly_node_api::NodeError;
use dayfly_snapshots::capture::{CaptureManifest, CapturePurpose};
use dayfly_types::{ErrorCode, SandboxClass, SandboxState, SleepReason, SnapshotId, limits};

use super::CaptureWish;
use super::activity::commands_unless_leased;
use super::bring_up::{Origin, VolumeDisk, unix_nanos};
use super::disk::Needs;
use super::handle::wrong_state;
use super::owner::Owner;
use super::report::unavailable;
use crate::bring_up_line::BringUpTurn;
use crate::capacity::Promise;
use crate::effects::Effect;
use crate::failure::node_error;
use crate::origin::origin_of_capture;
use crate::relief;

/// Whether a sandbox is put to sleep by somebody or by its idleness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SleepWhen {
    Always,
    /// Not when a call has begun meanwhile.
    WhileIdle,
    /// For others, and not when somebody has begun to use it meanwhile.
    WhileUnused {
        /// A command is under way in it.
        is_restless: bool,
    },
}

impl Owner {
    /// Stops the guest's processors. Memory stays where it is.
    pub(super) async fn pause(&mut self) -> Result<(), NodeError> {
        if self.record.state() == SandboxState::Paused {
            return Ok(());
        }
        self.transition(LifecycleEvent::Pause).await?;
        let state = self.record.state();
        let vm = self.vm.as_mut().ok_or_else(|| wrong_state(state))?;
        if let Err(error) = vm.pause().await {
            self.change(LifecycleEvent::PauseUndone).await?;
            return Err(node_error("the sandbox could not be paused", &error));
        }
        self.change(LifecycleEvent::PauseDone).await
    }

    /// Lets the guest's processors run, with the right time on its clock.
    pub(super) async fn resume(&mut self) -> Result<(), NodeError> {
        if self.record.state() == SandboxState::Running {
            return Ok(());
        }
        self.transition(LifecycleEvent::Resume).await?;
        let state = self.record.state();
        let vm = self.vm.as_mut().ok_or_else(|| wrong_state(state))?;
        if let Err(error) = vm.resume().await {
            self.change(LifecycleEvent::ResumeUndone).await?;
            return Err(node_error("the sandbox could not be resumed", &error));
        }
        self.room.is_over();
        if let Some(agent) = self.agent.clone() {
            // A clock that is late is no reason to stay paused.
            let now = unix_nanos(self.parts.clock.as_ref());
            let thawed = self
                .parts
                .effects
                .around_async(Effect::GuestThaw, agent.thaw_at(now));
            if let Err(error) = thawed.await {
                tracing::warn!(sandbox_id = %self.record.id, %error, "cannot set the guest's clock");
            }
        }
        self.activity.note_use(self.parts.clock.now());
        self.change(LifecycleEvent::ResumeDone).await
    }

    /// Captures to disk and ends the machine.
    pub(super) async fn hibernate(&mut self) -> Result<(), NodeError> {
        self.hibernate_if(SleepWhen::Always).await
    }

    pub(super) async fn hibernate_if(&mut self, wanted: SleepWhen) -> Result<(), NodeError> {
        if self.record.state() == SandboxState::Hibernated {
            return self.sleeps_on(wanted).await;
        }
        if self.record.state() != SandboxState::Paused {
            self.running_agent()?;
        }
        let room = self.book_capture(Needs::Memory).await?;
        if self.record.state() == SandboxState::Paused {
            self.resume().await?;
        }
        let agent = self.running_agent()?;
        let wish = CaptureWish {
            id: new_capture_id()?,
            purpose: CapturePurpose::Hibernation,
            name: None,
            expires_at: None,
        };
        let _pin = self.parts.pins.pin(&wish.id);
        self.note_why(wanted);
        self.change(LifecycleEvent::Hibernate).await?;
        // A call that began before this was announced counts; one that begins now waits for it.
        let is_too_late = match wanted {
            SleepWhen::Always => false,
            SleepWhen::WhileIdle => self.activity.has_open_calls(),
            SleepWhen::WhileUnused { .. } => self.activity.is_used(),
        };
        if is_too_late {
            return self.stay_awake().await;
        }
        if let Err(error) = self.capture_to_end(&wish, &agent, room).await {
            self.stay_awake().await?;
            return Err(error);
        }
        // Written before the machine ends: whoever finds this record wakes from the capture.
        let asleep = LifecycleEvent::HibernateDone(wish.id.clone());
        if let Err(error) = self.transition(asleep).await {
            if let Some(agent) = self.agent.clone() {
                self.let_go(&agent).await;
            }
            self.stay_awake().await?;
            return Err(error);
        }
        self.release_guard().await;
        self.end_machine().await;
        self.promise = None;
        let written = self.write_record().await;
        self.publish_now();
        self.parts.housekeeping.notify_one();
        written
    }

    fn note_why(&mut self, wanted: SleepWhen) {
        (self.record.sleep_reason, self.record.is_restless) = match wanted {
            SleepWhen::Always | SleepWhen::WhileIdle => (None, false),
            SleepWhen::WhileUnused { is_restless } => {
                self.sleeps_for_others += 1;
                (Some(SleepReason::Pressure), is_restless)
            }
        };
    }

    /// One that sleeps for others and is told to sleep does not wake when they have gone.
    async fn sleeps_on(&mut self, wanted: SleepWhen) -> Result<(), NodeError> {
        if wanted != SleepWhen::Always || self.record.sleep_reason.is_none() {
            return Ok(());
        }
        (self.record.sleep_reason, self.record.is_restless) = (None, false);
        let written = self.write_record().await;
        self.publish_now();
        written
    }

    async fn stay_awake(&mut self) -> Result<(), NodeError> {
        (self.record.sleep_reason, self.record.is_restless) = (None, false);
        self.change(LifecycleEvent::HibernateUndone).await
    }

    /// Sleeps because others need its memory, unless it is used or may not. Says whether it does.
    pub(super) async fn sleep_for_others(&mut self) -> Result<bool, NodeError> {
        let now = self.parts.clock.now();
        let may = self.record.class == SandboxClass::Shared
            && self.record.state() == SandboxState::Running
            && !self.activity.is_out_of_sight()
            && self.activity.is_quiet(now, limits::PRESSURE_IDLE_MIN);
        let Some(agent) = self.agent.clone().filter(|_| may) else {
            return Ok(false);
        };
        let Some(commands) = commands_unless_leased(&agent).await else {
            return Ok(false);
        };
        let is_restless = commands > 0;
        self.hibernate_if(SleepWhen::WhileUnused { is_restless })
            .await?;
        Ok(self.record.state() == SandboxState::Hibernated)
    }

    /// Ends the machine of a sandbox that goes on without one.
    async fn end_machine(&mut self) {
        self.agent = None;
        self.vm = None;
        self.room.is_over();
        while let Some(slot) = self.record.phase.slot() {
            if self.release_slot(slot).await {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
    }

    /// Restores a sleeping sandbox; finds a running one as it should be.
    pub(super) async fn wake(&mut self) -> Result<(), NodeError> {
        if self.record.state() == SandboxState::Running {
            return Ok(());
        }
        if let Some(reason) = unavailable(&self.parts, &self.record) {
            return Err(NodeError::new(ErrorCode::WrongState, reason));
        }
        let asleep_in = self.record.phase.asleep_in().cloned();
        let is_asleep = self.record.state() == SandboxState::Hibernated;
        let id = asleep_in.filter(|_| is_asleep);
        let id = id.ok_or_else(|| wrong_state(self.record.state()))?;
        let asked = Instant::now();
        let promise = self.promised().await?;
        let mut origin = origin_of_capture(&self.parts, &id, IdentityEvent::Wake).await?;
        // What slept with its volumes mounted still has them; what goes back to a snapshot whose
        // rollback was cut short has not.
        let purpose = self.parts.captures.get(&id).map(|capture| capture.purpose);
        let are_mounted = purpose == Some(CapturePurpose::Hibernation);
        self.add_volumes(&mut origin, are_mounted).await?;
        origin.turn = Some(self.turn(asked).await?);
        self.change(LifecycleEvent::Wake).await?;
        self.start_from(origin, promise).await
    }

    /// Others may have to fall asleep for it, which this one waits for.
    async fn promised(&self) -> Result<Promise, NodeError> {
        let record = &self.record;
        let demand = self
            .parts
            .demand(record.class, &record.machine, record.disk);
        relief::admit(&self.parts, record.class, demand).await
    }

    /// Waits until the machine may be brought up. Before anything is changed for it, because it may
    /// be refused.
    async fn turn(&self, asked: Instant) -> Result<BringUpTurn, NodeError> {
        let mut turn = (self.parts.bring_up_line).join(&self.record.project, asked)?;
        turn.come().await?;
        Ok(turn)
    }

    /// Restores what was prepared. After a failure the sandbox sleeps on, unless its machine may
    /// have written to a volume that its memory still has mounted: memory that is older than its
    /// disk must not run again.
    async fn start_from(&mut self, mut origin: Origin, promise: Promise) -> Result<(), NodeError> {
        self.promise = Some(promise);
        let under_way = self.parts.pool.create_begins();
        let started = self.start_machine(&origin).await;
        drop(origin.turn.take());
        under_way.linger();
        if let Err(error) = started {
            let writes = |volume: &VolumeDisk| volume.is_mounted && !volume.read_only;
            let has_moved_on = self.may_have_run && origin.volumes.iter().any(writes);
            self.advance(if has_moved_on {
                let reason = "its wake failed after it may have written to a volume";
                LifecycleEvent::Fault(reason.to_owned())
            } else {
                LifecycleEvent::WakeUndone
            })?;
            self.end_machine().await;
            self.promise = None;
            let written = self.write_record().await;
            self.publish_now();
            return written.and(Err(error));
        }
        // Another machine, on a disk that was whole when it was captured.
        self.record.disk_damaged = false;
        (self.record.sleep_reason, self.record.is_restless) = (None, false);
        let written = self.write_record().await;
        self.publish_now();
        self.parts.housekeeping.notify_one();
        written
    }

    /// Takes the sandbox back to a snapshot of its own.
    pub(super) async fn rollback(&mut self, to: &SnapshotId) -> Result<(), NodeError> {
        let _pin = self.parts.pins.pin(to);
        let manifest = self.own_snapshot(to)?;
        if !matches!(
            self.record.state(),
            SandboxState::Running | SandboxState::Hibernated | SandboxState::Paused
        ) {
            return Err(wrong_state(self.record.state()));
        }
        // Everything that can be refused is refused while there still is a machine to go on with.
        let asked = Instant::now();
        let promise = match self.promise.take() {
            Some(promise) => promise,
            None => self.promised().await?,
        };
        // Behind the promise: whoever holds a turn waits for nobody who may need one.
        let origin = match self.turn(asked).await {
            Ok(turn) => self.prepare_rollback(to).await.map(|origin| Origin {
                turn: Some(turn),
                ..origin
            }),
            Err(error) => Err(error),
        };
        let origin = match origin {
            Ok(origin) => origin,
            Err(error) => {
                // A sandbox that sleeps has no promise to keep.
                if self.record.state() != SandboxState::Hibernated {
                    self.promise = Some(promise);
                }
                return Err(error);
            }
        };
        self.record.disk = disk_of(manifest.disk_mib, &self.record.machine);
        // Written or not, there is no way back from here: the machine ends.
        let doubtful = (self.record.phase.disk_mut()).and_then(|disk| disk.sealing.take());
        let _ = self.change(LifecycleEvent::Rollback(to.clone())).await;
        self.end_machine().await;
        if let Some(sealing) = doubtful {
            // What it may have sealed is part of no disk any more.
            self.abandon(&sealing.capture).await;
        }
        self.start_from(origin, promise).await
    }

    async fn prepare_rollback(&mut self, to: &SnapshotId) -> Result<Origin, NodeError> {
        let mut origin = origin_of_capture(&self.parts, to, IdentityEvent::Rollback).await?;
        self.add_volumes(&mut origin, false).await?;
        if self.record.state() == SandboxState::Running
            && let Some(agent) = self.agent.clone()
        {
            self.unmount_volumes(&agent).await?;
        } else if !self.record.volumes.is_empty() {
            let text = "a sandbox with volumes can be taken back only while it runs, because they \
                        are unmounted first";
            return Err(NodeError::new(ErrorCode::VolumeBusy, text));
        }
        Ok(origin)
    }

    fn own_snapshot(&self, id: &SnapshotId) -> Result<Arc<CaptureManifest>, NodeError> {
        let found = self.parts.captures.get(id);
        let mine = found
            .filter(|manifest| manifest.is_snapshot() && manifest.project == self.record.project)
            .ok_or_else(|| NodeError::not_found(format!("no snapshot {id}")))?;
        if mine.sandbox != self.record.id {
            let text = format!("snapshot {id} is of another sandbox; create a new one from it");
            return Err(NodeError::new(ErrorCode::InvalidRequest, text));
        }
        Ok(mine)
    }
}

/// The size of the writable disk, when it is another than the machine's.
pub(crate) fn disk_of(
    disk_mib: u64,
    machine: &dayfly_vmm::MachineSpec,
) -> Option<dayfly_types::DiskMib> {
    let size = dayfly_types::DiskMib::new(disk_mib).ok()?;
    (size != machine.disk).then_some(size)
}

/// A name that nobody else will choose.
fn new_capture_id() -> Result<SnapshotId, NodeError> {
    let mut random = [0; dayfly_types::ids::ID_RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|_| NodeError::internal("no randomness could be had"))?;
    Ok(SnapshotId::from_random(
        &dayfly_types::CellName::local(),
        random,
    ))
}
