//! A sandbox and the node's disk: a write that waits for room, a disk that is damaged, and the room
//! that a capture needs.
//!
//! A guest whose write finds no room is stopped by its engine with the write still to be done. It is
//! let go on when there is room, and stopped again if that was too little. To the guest nothing has
//! happened but time.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dayfly_core::admission::Refusal;
use dayfly_host::process::{self, ProcessIdentity};
use dayfly_node_api::NodeError;
use dayfly_types::{ErrorCode, SandboxCondition, SandboxState, limits};
use dayfly_vmm::{EngineCaptureError, EngineProcess};

use super::bring_up::unix_nanos;
use super::owner::Owner;
use super::room::{disk_condition, waits_for_room};
use crate::capacity::{Booking, Ledger, Promise, PromiseNumber};
use crate::effects::Effect;
use crate::failure::node_error;
use crate::written::written_mib;

/// How long the guest's clock may take to be set after it went on. It may have stopped again.
const CLOCK_LIMIT: Duration = Duration::from_secs(2);
/// What an engine may add to its memory between the look at it and its stop.
const MEMORY_GROWTH_MIB: u64 = 32;

/// Which part of a capture needs room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Memory, and as much again as the disk layer holds: the guest gets an empty one, and may fill
    /// that up to what it was promised.
    MemoryAndDisk,
    /// Memory alone: the machine ends, and with it what it was promised.
    Memory,
}

/// Room for one capture.
#[derive(Debug)]
pub(super) struct CaptureRoom {
    booking: Booking,
    /// What of it memory may take.
    pub(super) memory_bytes_max: u64,
}

impl Owner {
    pub(super) fn condition(&self) -> Option<SandboxCondition> {
        disk_condition(&self.record, self.room.is_waiting())
    }

    /// How long to wait before the next try, while it is ours to let the guest go on: one that its
    /// user paused stays so.
    pub(super) fn room_pause(&self) -> Option<Duration> {
        let is_ours = self.record.state() == SandboxState::Running && self.vm.is_some();
        (self.room.is_waiting() && is_ours).then(|| self.room.pause())
    }

    /// The engine has stopped the guest for want of room.
    pub(super) fn out_of_room(&mut self) {
        if self.room.is_waiting() {
            return;
        }
        self.room.begin();
        tracing::warn!(
            sandbox_id = %self.record.id,
            "the node's disk is full; the sandbox stands still until there is room"
        );
        self.publish_now();
    }

    /// Lets the guest try its write again.
    pub(super) async fn try_again(&mut self) {
        self.room.note_try();
        let Some(vm) = self.vm.as_mut() else {
            return;
        };
        if let Err(error) = vm.resume().await {
            let error = crate::error_chain(&error);
            tracing::warn!(sandbox_id = %self.record.id, error, "cannot let the sandbox go on");
            return;
        }
        tracing::info!(sandbox_id = %self.record.id, "there is room; the sandbox goes on");
        self.room.is_over();
        self.activity.note_use(self.parts.clock.now());
        self.publish_now();
        if let Some(agent) = self.agent.clone() {
            let now = unix_nanos(self.parts.clock.as_ref());
            let effects = &self.parts.effects;
            let thawed = effects.around_async(Effect::GuestThaw, agent.thaw_at(now));
            // A clock that is late is no reason to stop.
            let _ = tokio::time::timeout(CLOCK_LIMIT, thawed).await;
        }
    }

    /// Asks the engine whether the guest stands still for want of room.
    pub(super) async fn is_out_of_room(&mut self) -> bool {
        match self.vm.as_mut() {
            Some(vm) => vm.waits_for_room().await.unwrap_or(false),
            None => false,
        }
    }

    /// A write failed for good, and the guest knows: whatever its disk holds, it is not what the
    /// guest meant to write. Said in the journal, since a later process cannot see it.
    pub(super) async fn disk_is_damaged(&mut self) {
        if self.record.disk_damaged {
            return;
        }
        self.record.disk_damaged = true;
        tracing::error!(
            sandbox_id = %self.record.id,
            "a write to the sandbox's disk failed; it is not captured any more"
        );
        if let Err(error) = self.write_record().await {
            tracing::error!(sandbox_id = %self.record.id, %error, "cannot note the damage");
        }
        self.publish_now();
    }

    /// Books the most that a capture can write, before anything is done for it.
    ///
    /// # Errors
    /// `disk_damaged`, or `storage_full` when it would go below what is kept or promised.
    pub(super) async fn book_capture(&self, needs: Needs) -> Result<CaptureRoom, NodeError> {
        if self.record.disk_damaged {
            return Err(damaged());
        }
        if self.room.is_waiting() {
            return Err(waits_for_room());
        }
        let wanted = RoomRequest {
            memory_mib: self.record.machine.memory.into(),
            process: self.vm.as_ref().map(|vm| vm.process()),
            run_directory: match needs {
                Needs::MemoryAndDisk => Some(self.slot().await?.run_directory),
                Needs::Memory => None,
            },
            gives_up: self
                .promise
                .as_ref()
                .filter(|_| needs == Needs::Memory)
                .map(Promise::number),
        };
        let ledger = Arc::clone(&self.parts.ledger);
        let booked = tokio::task::spawn_blocking(move || book(&ledger, &wanted)).await;
        let booked = booked.map_err(|error| node_error("the disk could not be looked at", &error));
        let mut room = booked?.map_err(|refusal| no_room(&refusal))?;
        if needs == Needs::MemoryAndDisk {
            room.booking.seals(self.promise.as_ref());
        }
        Ok(room)
    }

    /// What a capture's refusal is called, with what it says about the sandbox noted.
    pub(super) async fn not_captured(
        &mut self,
        what: &str,
        error: &EngineCaptureError,
    ) -> NodeError {
        match error {
            EngineCaptureError::DiskDamaged => {
                self.disk_is_damaged().await;
                damaged()
            }
            EngineCaptureError::WaitsForRoom => waits_for_room(),
            EngineCaptureError::TooMuch { .. } => {
                let text = format!("{what}: the node's disk has no room for it: {error}");
                NodeError::new(ErrorCode::StorageFull, text)
            }
            EngineCaptureError::Memory(_)
            | EngineCaptureError::TimedOut(_)
            | EngineCaptureError::Refused(_)
            | EngineCaptureError::Gone => node_error(what, error),
        }
    }

    /// Says where the disk is that was promised.
    pub(super) async fn tell_ledger(&self) {
        if let (Some(promise), Ok(slot)) = (&self.promise, self.slot().await) {
            promise.is_kept_in(slot.run_directory);
        }
    }
}

/// What a capture is about to ask for.
struct RoomRequest {
    memory_mib: u64,
    process: Option<EngineProcess>,
    /// Where the disk layer is that is sealed.
    run_directory: Option<PathBuf>,
    /// The promise that ends with the capture.
    gives_up: Option<PromiseNumber>,
}

/// With room for all of memory nothing can go wrong. With less, what the engine has of its own is
/// looked at: the guest can only have changed what is there, and what it changes until it stands
/// still is cut off by the limit.
fn book(ledger: &Arc<Ledger>, wanted: &RoomRequest) -> Result<CaptureRoom, Refusal> {
    let layer = wanted.run_directory.as_deref().map(written_mib);
    let beside_mib = layer.map_or(0, |mib| mib + 1) + limits::CAPTURE_OVERHEAD_MIB;
    let try_with = |memory_mib: u64| {
        let booking = ledger.book_beside(memory_mib + beside_mib, wanted.gives_up)?;
        Ok(CaptureRoom {
            booking,
            memory_bytes_max: memory_mib << 20,
        })
    };
    try_with(wanted.memory_mib).or_else(|refusal| {
        let own_mib = wanted.process.and_then(own_memory_mib).ok_or(refusal)?;
        let likely_mib = own_mib + own_mib / 4 + MEMORY_GROWTH_MIB;
        try_with(likely_mib.min(wanted.memory_mib))
    })
}

/// What an engine has of its own, if it still is that engine.
fn own_memory_mib(engine: EngineProcess) -> Option<u64> {
    let bytes = process::own_memory_bytes(engine.pid).ok()?;
    let identity = ProcessIdentity {
        pid: engine.pid,
        start_time_ticks: engine.start_time_ticks,
    };
    identity.cpu_time().ok()?;
    (bytes > 0).then_some(bytes >> 20)
}

fn no_room(refusal: &Refusal) -> NodeError {
    let (Refusal::Disk {
        wanted_mib,
        left_mib,
    }
    | Refusal::Memory {
        wanted_mib,
        left_mib,
    }) = refusal;
    let text = format!(
        "the capture may need {wanted_mib} MiB of the node's disk, and {left_mib} MiB are left \
         beside what is kept for the host and promised to sandboxes and volumes; nothing was \
         stopped. Delete snapshots, volumes or sandboxes"
    );
    NodeError::new(ErrorCode::StorageFull, text)
}

fn damaged() -> NodeError {
    let text = "a write to the sandbox's disk failed, so what the disk holds is in doubt; it is not \
                captured. Copy out what you need, then delete it or take it back to a snapshot";
    NodeError::new(ErrorCode::DiskDamaged, text)
}
