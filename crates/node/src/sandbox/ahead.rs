//! Copying memory before a capture freezes the guest, so that the pause has little left to copy.
//!
//! The sandbox runs on meanwhile. One that writes faster than the host copies gets less processor
//! time until its last round is over; see [`dayfly_core::rounds`].

use dayfly_core::rounds::{Next, Rounds};
use dayfly_node_api::NodeError;
use dayfly_snapshots::capture::file_names;
use dayfly_types::{CpuMillis, SnapshotId};
use dayfly_vmm::{MemoryCapture, PagePatch, Slot};

use super::disk::CaptureRoom;
use super::handle::wrong_state;
use super::owner::Owner;

/// How often a limit is set that could not be set.
const LIMIT_TRIES: usize = 3;
const WHAT: &str = "the sandbox's memory could not be copied";

impl Owner {
    /// Where the memory of a capture goes.
    pub(super) fn memory_of_capture(
        &self,
        id: &SnapshotId,
        room: &CaptureRoom,
        patch: Option<PagePatch>,
    ) -> MemoryCapture {
        let directory = self.parts.captures.unfinished(id);
        MemoryCapture {
            layer: directory.join(file_names::MEMORY_LAYER),
            bytes: self.record.machine.memory.bytes(),
            bytes_max: room.memory_bytes_max,
            patch,
        }
    }

    /// Copies rounds of memory until little is left to copy. The capture has been begun.
    pub(super) async fn copy_ahead(
        &mut self,
        slot: &Slot,
        id: &SnapshotId,
        room: &CaptureRoom,
    ) -> Result<(), NodeError> {
        let memory = self.memory_of_capture(id, room, None);
        let mut is_held_back = false;
        let copied = self.copy_rounds(slot, &memory, &mut is_held_back).await;
        if is_held_back {
            self.hold_back(slot, self.record.cpu_limit()).await;
        }
        copied
    }

    async fn copy_rounds(
        &mut self,
        slot: &Slot,
        memory: &MemoryCapture,
        is_held_back: &mut bool,
    ) -> Result<(), NodeError> {
        let mut rounds = Rounds::default();
        let mut bytes = 0;
        loop {
            let state = self.record.state();
            let vm = self.vm.as_mut().ok_or_else(|| wrong_state(state))?;
            let copied = match vm.copy_ahead(memory).await {
                Ok(Some(copied)) => copied,
                // The pause copies everything then.
                Ok(None) => return Ok(()),
                Err(error) => return Err(self.not_captured(WHAT, &error).await),
            };
            bytes += copied;
            match rounds.note(copied) {
                Next::Round => {}
                Next::SlowerRound(millis) => {
                    *is_held_back = true;
                    let own = self.record.cpu_limit();
                    let less = CpuMillis::new(millis).map_or(own, |less| less.min(own));
                    self.hold_back(slot, less).await;
                }
                Next::Pause => break,
            }
        }
        let (sandbox_id, rounds) = (&self.record.id, rounds.count());
        tracing::debug!(%sandbox_id, rounds, bytes, is_held_back, "memory is copied ahead");
        Ok(())
    }

    /// A guest that cannot be held back is copied all the same, in a longer pause. One that cannot
    /// be given back what it has is tried again.
    async fn hold_back(&self, slot: &Slot, cpu: CpuMillis) {
        for _ in 0..LIMIT_TRIES {
            let Err(error) = self.parts.slots.limit_cpu(slot.index, cpu).await else {
                return;
            };
            let error = crate::error_chain(&error);
            tracing::warn!(sandbox_id = %self.record.id, error, "cannot limit the processor time");
        }
    }
}
