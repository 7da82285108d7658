//! Capturing a running sandbox without ending it.
//!
//! ```text
//! unmount volumes, prepare the next disk layer
//! copy memory, again and again what was written       user code runs (with volumes: also before)
//! freeze user processes, sync                         frozen
//!   stop the engine                                   paused
//!     device state, memory of the last moment, switch to the next disk layer
//!   let the engine run
//! thaw user processes                                 user code runs
//! take the files, write down that the disk is sealed
//! make the files durable, publish, remount
//! ```
//! The guest is let go on every path. A lease in the guest thaws it when this process dies in the
//! middle, and a guard outside lets the engine run; see [`crate::pause_guard`].

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use dayfly_core::lifecycle::{DiskLayers, Sealing};
use dayfly_guest_client::{AgentClient, QuiesceSpec};
use dayfly_guest_proto::copy_mark;
use dayfly_node_api::NodeError;
use dayfly_snapshots::capture::{
    CaptureDraft, CaptureError, CaptureManifest, CapturePurpose, file_names,
};
use dayfly_types::capture::CaptureCost;
use dayfly_types::{ErrorCode, SandboxState, SnapshotId, limits};
use dayfly_vmm::{Afterwards, CaptureSpec, Captured, PagePatch, Slot, file_names as slot_files};

use super::CaptureWish;
use super::bring_up::unix_nanos;
use super::disk::{CaptureRoom, Needs};
use super::handle::wrong_state;
pub(crate) use super::layer::keep_layer;
use super::owner::Owner;
use crate::disk_lane::off_runtime;
use crate::effects::{Captures, Effect};
use crate::engines::{engine_before_noted, engine_of};
use crate::failure::{capture_error, node_error};
use crate::origin::memory_base_of;

const WHAT: &str = "the sandbox could not be captured";

/// What one pause yielded.
pub(super) struct Taken {
    pub(super) captured: Captured,
    pub(super) cost: CaptureCost,
    /// Before the guest was told to stand still.
    pub(super) frozen_at: Option<SystemTime>,
    /// Held until the files are published, or nothing is left of them.
    pub(super) room: CaptureRoom,
}

/// What the manifest will say.
pub(super) struct Drafted {
    pub(super) draft: CaptureDraft,
    /// The layers that the machine has sealed before.
    pub(super) sealed: Vec<SnapshotId>,
    pub(super) room: CaptureRoom,
}

impl Owner {
    /// Captures the sandbox, which then goes on as if nothing had happened.
    pub(super) async fn capture(
        &mut self,
        wish: &CaptureWish,
    ) -> Result<Arc<CaptureManifest>, NodeError> {
        let start = Instant::now();
        let _pin = self.parts.pins.pin(&wish.id);
        if let Some(published) = self.settled_capture(&wish.id).await? {
            return Ok(published);
        }
        let taken = self.take_capture(wish).await;
        let published = match taken {
            Ok(taken) => self.publish_capture(wish, taken, start).await,
            Err(error) => Err(error),
        };
        if published.is_err() {
            self.keep_layer_if_sealed(&wish.id).await;
        }
        published
    }

    /// What an earlier call of the same id has captured, once nothing is in doubt.
    pub(super) async fn settled_capture(
        &mut self,
        id: &SnapshotId,
    ) -> Result<Option<Arc<CaptureManifest>>, NodeError> {
        self.settle().await?;
        let published = self.parts.captures.get(id);
        let published = published.filter(|capture| capture.purpose != CapturePurpose::Layer);
        if published.is_none() {
            self.check_unused(id)?;
        }
        Ok(published)
    }

    /// Takes the files of a capture; the sandbox goes on.
    pub(super) async fn take_capture(&mut self, wish: &CaptureWish) -> Result<Taken, NodeError> {
        if matches!(
            self.record.state(),
            SandboxState::Hibernated | SandboxState::Waking
        ) {
            self.wake().await?;
        }
        // First: what is damaged or has no room is so whether or not the guest answers now.
        let room = self.book_capture(Needs::MemoryAndDisk).await?;
        let agent = self.running_agent()?;
        self.check_chain()?;
        let _pin = self.parts.pins.pin(&wish.id);
        let slot = self.slot().await?;
        self.begin_capture(&wish.id).await?;
        if let Err(error) = self.let_go_of_volumes(&agent, &slot, &wish.id, &room).await {
            self.abandon(&wish.id).await;
            return Err(error);
        }
        let taken = self.take(&agent, &slot, &wish.id, room).await;
        self.activity.note_rest(self.parts.clock.now());
        // The machine may lie on the capture from here on, whatever becomes of it; who collects
        // garbage must know before the pin goes.
        self.publish_now();
        let remounted = self.mount_volumes(&agent).await;
        let taken = taken?;
        remounted?;
        Ok(taken)
    }

    /// Unmounts the volumes. Most of the memory is copied before, so that they are not gone for long.
    async fn let_go_of_volumes(
        &mut self,
        agent: &AgentClient,
        slot: &Slot,
        id: &SnapshotId,
        room: &CaptureRoom,
    ) -> Result<(), NodeError> {
        if self.record.volumes.is_empty() {
            return Ok(());
        }
        self.copy_ahead(slot, id, room).await?;
        self.unmount_volumes(agent).await
    }

    /// Captures for a sleep: the machine stays paused and its disk is linked, not sealed, so that
    /// it can still go on when the capture cannot be published.
    pub(super) async fn capture_to_end(
        &mut self,
        wish: &CaptureWish,
        agent: &AgentClient,
        room: CaptureRoom,
    ) -> Result<Arc<CaptureManifest>, NodeError> {
        let start = Instant::now();
        self.settle().await?;
        let slot = self.slot().await?;
        self.begin_capture(&wish.id).await?;
        let taken = self
            .freeze_and_save(agent, &slot, &wish.id, Afterwards::Ends, room)
            .await;
        let published = match taken {
            Ok(taken) => self.publish_capture(wish, taken, start).await,
            Err(error) => Err(error),
        };
        if published.is_err() {
            self.let_go(agent).await;
            self.abandon(&wish.id).await;
        }
        published
    }

    pub(super) fn running_agent(&self) -> Result<AgentClient, NodeError> {
        if self.record.state() != SandboxState::Running {
            return Err(wrong_state(self.record.state()));
        }
        self.agent.clone().ok_or_else(|| {
            let text = "the guest agent does not answer now";
            NodeError::new(ErrorCode::GuestUnavailable, text).retry_after(Duration::from_secs(1))
        })
    }

    fn check_chain(&self) -> Result<(), NodeError> {
        let layers = self.layers()?.sealed.len();
        if layers < limits::DISK_CHAIN_MAX {
            return Ok(());
        }
        let text = format!(
            "the sandbox was captured {layers} times since it last woke; hibernate and wake it once"
        );
        Err(NodeError::new(ErrorCode::TooMany, text))
    }

    pub(super) async fn slot(&self) -> Result<Slot, NodeError> {
        let index = (self.record.phase.slot()).ok_or_else(|| wrong_state(self.record.state()))?;
        let reopened = self.parts.slots.reopen(index).await;
        reopened.map_err(|error| node_error(WHAT, &error))
    }

    /// What the disk lies on.
    fn layers(&self) -> Result<&DiskLayers, NodeError> {
        let state = self.record.state();
        (self.record.phase.disk()).ok_or_else(|| wrong_state(state))
    }

    fn layers_mut(&mut self) -> Result<&mut DiskLayers, NodeError> {
        let state = self.record.state();
        (self.record.phase.disk_mut()).ok_or_else(|| wrong_state(state))
    }

    async fn begin_capture(&self, id: &SnapshotId) -> Result<(), NodeError> {
        let begun = self.on_captures(id, Captures::begin).await;
        begun.map_err(|error| capture_error(WHAT, &error))
    }

    /// Does something to one unfinished capture, behind what was begun before.
    pub(super) async fn on_captures<T: Send + 'static>(
        &self,
        id: &SnapshotId,
        work: impl FnOnce(&Captures, &SnapshotId) -> T + Send + 'static,
    ) -> T {
        let (captures, id) = (Arc::clone(&self.parts.captures), id.clone());
        self.disk.run(move || work(&captures, &id)).await
    }

    pub(super) async fn abandon(&self, id: &SnapshotId) {
        if let Err(error) = self.on_captures(id, Captures::abandon).await {
            let error = crate::error_chain(&error);
            tracing::warn!(capture = %id, error, "cannot remove an unfinished capture");
        }
    }

    /// Drops what a capture that was cut short by a delete has made.
    pub(super) async fn abandon_capture(&mut self) {
        let layers = self.record.phase.disk_mut();
        if let Some(sealing) = layers.and_then(|layers| layers.sealing.take()) {
            self.abandon(&sealing.capture).await;
        }
    }

    async fn take(
        &mut self,
        agent: &AgentClient,
        slot: &Slot,
        id: &SnapshotId,
        room: CaptureRoom,
    ) -> Result<Taken, NodeError> {
        let mut ready = self.prepare_seal(id).await;
        // The last before the freeze: what is written behind the last round is copied in the pause.
        if ready.is_ok() {
            ready = self.copy_ahead(slot, id, &room).await;
        }
        let taken = match ready {
            Ok(()) => {
                self.freeze_and_save(agent, slot, id, Afterwards::GoesOn, room)
                    .await
            }
            Err(error) => Err(error),
        };
        // Whether the disk is sealed decides what the capture's directory is from now on: part of
        // this machine's disk, or nothing. When the engine does not say, it stays in doubt.
        if taken.is_err() {
            let layers = self.layers()?;
            if layers.sealing.is_some() {
                self.settle_sealing().await?;
            } else if !layers.sealed.contains(id) {
                self.abandon(id).await;
            }
        }
        taken
    }

    /// Opens the next disk layer, and notes in the journal what is about to happen.
    async fn prepare_seal(&mut self, id: &SnapshotId) -> Result<(), NodeError> {
        let (parts, record) = (Arc::clone(&self.parts), self.record.clone());
        let base = memory_base_of(&parts, &record);
        let look = move || {
            let (name, version) = (&record.template, &record.template_version);
            parts.templates.under(base, name, version)
        };
        let template = off_runtime(look).await?;
        if self.record.engine.is_none() {
            self.record.engine = engine_before_noted(&self.parts, &self.record, &template);
        }
        let record = &self.record;
        let empty = template.restore.disks.empty_layer.clone();
        let layer = format!("disk-{}.img", self.layers()?.next_layer + 1);
        let vm = self
            .vm
            .as_mut()
            .ok_or_else(|| wrong_state(record.state()))?;
        let sealed = vm.writable_disk().await;
        let sealed = sealed.map_err(|error| node_error(WHAT, &error))?;
        vm.prepare_seal(&layer, &empty)
            .await
            .map_err(|error| node_error(WHAT, &error))?;
        let layers = self.layers_mut()?;
        layers.next_layer += 1;
        layers.sealing = Some(Sealing {
            capture: id.clone(),
            layer,
            sealed,
        });
        self.write_record().await
    }

    /// The part in which the sandbox stands still. It goes on afterwards, also after a failure.
    async fn freeze_and_save(
        &mut self,
        agent: &AgentClient,
        slot: &Slot,
        id: &SnapshotId,
        afterwards: Afterwards,
        room: CaptureRoom,
    ) -> Result<Taken, NodeError> {
        let mut nonce = [0; copy_mark::NONCE_BYTES];
        getrandom::fill(&mut nonce)
            .map_err(|_| NodeError::internal("no randomness could be had"))?;
        self.guard = self
            .vm
            .as_ref()
            .map(|vm| self.parts.pause_guard.watch(slot, vm.process()));
        let frozen = Instant::now();
        let frozen_at = self.parts.clock.wall();
        let spec = QuiesceSpec {
            lease: Some(limits::QUIESCE_LEASE),
            mark: Some(nonce),
        };
        let quiesced = self
            .parts
            .effects
            .around_async(Effect::GuestQuiesce, agent.quiesce(spec));
        if let Err(error) = quiesced.await {
            let waits = self.is_out_of_room().await;
            // It may have frozen and not answered in time.
            self.let_go(agent).await;
            if waits {
                return Err(super::waits_for_room());
            }
            let text = format!("{WHAT}: the guest's processes could not be frozen: {error}");
            return Err(NodeError::new(ErrorCode::GuestUnavailable, text));
        }
        let saved = in_time(self.pause_and_save(slot, id, &nonce, afterwards, room)).await;
        if afterwards == Afterwards::GoesOn || saved.is_err() {
            self.let_go(agent).await;
        }
        let mut taken = saved?;
        taken.cost.frozen_us = micros(frozen.elapsed());
        taken.frozen_at = Some(frozen_at);
        taken.cost.disk_bytes = in_time(self.take_files(slot, id, afterwards)).await?;
        Ok(taken)
    }

    /// Lets the engine and the user's processes run. Both may be running already.
    pub(super) async fn let_go(&mut self, agent: &AgentClient) {
        let id = self.record.id.clone();
        if let Some(vm) = self.vm.as_mut()
            && let Err(error) = vm.resume().await
        {
            tracing::error!(sandbox_id = %id, error = crate::error_chain(&error), "cannot resume");
        }
        let now = unix_nanos(self.parts.clock.as_ref());
        let thawed = self
            .parts
            .effects
            .around_async(Effect::GuestThaw, agent.thaw_at(now));
        if let Err(error) = thawed.await {
            // The conversation is given up: a new one finds out how the guest is and lets it go.
            tracing::warn!(sandbox_id = %id, error = crate::error_chain(&error), "cannot thaw");
            self.agent = None;
            self.publish_now();
        }
        self.release_guard().await;
    }

    /// The engine is not left standing still by us any more.
    pub(super) async fn release_guard(&mut self) {
        if let Some(guard) = self.guard.take() {
            guard.release().await;
        }
    }

    async fn pause_and_save(
        &mut self,
        slot: &Slot,
        id: &SnapshotId,
        nonce: &[u8; copy_mark::NONCE_BYTES],
        afterwards: Afterwards,
        room: CaptureRoom,
    ) -> Result<Taken, NodeError> {
        let mark = PagePatch {
            prefix: copy_mark::page_prefix(nonce).to_vec(),
            offset: copy_mark::FLAG_OFFSET,
            value: copy_mark::FLAG_COPY,
        };
        let spec = CaptureSpec {
            device_state: slot.run_directory.join(slot_files::DEVICE_STATE),
            memory: Some(self.memory_of_capture(id, &room, Some(mark))),
            afterwards,
        };
        let state = self.record.state();
        let vm = self.vm.as_mut().ok_or_else(|| wrong_state(state))?;
        let failed = |error: &(dyn std::error::Error + 'static)| node_error(WHAT, error);
        let paused = Instant::now();
        vm.pause().await.map_err(|error| failed(&error))?;
        let stopped = paused.elapsed();
        let captured = vm.capture(&spec).await;
        let captured = match captured {
            Ok(captured) => captured,
            Err(error) => return Err(self.not_captured(WHAT, &error).await),
        };
        // The kernel may have left a former frame of the page behind, which is then marked too.
        if captured.patched_pages == 0 {
            let text = format!("{WHAT}: its copy mark was not found");
            return Err(NodeError::new(ErrorCode::GuestUnavailable, text));
        }
        let seal = Instant::now();
        if afterwards == Afterwards::GoesOn {
            self.switch_disk(id).await?;
        }
        let disk_time = seal.elapsed();
        if afterwards == Afterwards::GoesOn
            && let Some(vm) = self.vm.as_mut()
        {
            vm.resume().await.map_err(|error| failed(&error))?;
        }
        let pause = paused.elapsed();
        let memory_bytes = captured.extents.iter().map(|extent| extent.bytes()).sum();
        let cost = CaptureCost {
            pause_us: micros(pause),
            device_us: micros(stopped + captured.device_time),
            memory_us: micros(captured.memory_time),
            disk_us: micros(disk_time),
            memory_bytes,
            ..CaptureCost::default()
        };
        Ok(Taken {
            captured,
            cost,
            frozen_at: None,
            room,
        })
    }

    /// Gives the guest a new disk layer. What became of the old one is in doubt in the journal until
    /// [`Self::take_files`] has ended.
    async fn switch_disk(&mut self, id: &SnapshotId) -> Result<(), NodeError> {
        let state = self.record.state();
        let sealing = self.layers()?.sealing.clone();
        let sealing = sealing.ok_or_else(|| wrong_state(state))?;
        let vm = self.vm.as_mut().ok_or_else(|| wrong_state(state))?;
        vm.seal_disk(&sealing.layer)
            .await
            .map_err(|error| node_error(WHAT, &error))?;
        // From here on the machine cannot do without the sealed file.
        self.layers_mut()?.sealed.push(id.clone());
        Ok(())
    }

    /// Brings what the engine wrote to the capture. Answers the size of the disk. Who goes on does so
    /// already: moving files may wait for the disk of the host.
    async fn take_files(
        &mut self,
        slot: &Slot,
        id: &SnapshotId,
        afterwards: Afterwards,
    ) -> Result<u64, NodeError> {
        let disk = match afterwards {
            Afterwards::GoesOn => self.take_sealed(slot, id).await?,
            Afterwards::Ends => self.link_disk(slot, id).await?,
        };
        let from = slot.run_directory.join(slot_files::DEVICE_STATE);
        let take =
            move |captures: &Captures, id: &_| captures.take(id, &from, file_names::DEVICE_STATE);
        let taken = self.on_captures(id, take).await;
        taken.map_err(|error| capture_error(WHAT, &error))?;
        Ok(disk)
    }

    async fn take_sealed(&mut self, slot: &Slot, id: &SnapshotId) -> Result<u64, NodeError> {
        let state = self.record.state();
        let sealing = self.layers()?.sealing.clone();
        let sealing = sealing.ok_or_else(|| wrong_state(state))?;
        let from = slot.run_directory.join(&sealing.sealed);
        let take = move |captures: &Captures, id: &_| captures.take_layer(id, &from);
        let bytes = self.on_captures(id, take).await;
        let bytes = bytes.map_err(|error| capture_error(WHAT, &error))?;
        self.layers_mut()?.sealing = None;
        self.write_record().await?;
        Ok(bytes)
    }

    /// Gives the capture a second name of the disk.
    async fn link_disk(&mut self, slot: &Slot, id: &SnapshotId) -> Result<u64, NodeError> {
        let state = self.record.state();
        let vm = self.vm.as_mut().ok_or_else(|| wrong_state(state))?;
        let name = vm.writable_disk().await;
        let name = name.map_err(|error| node_error(WHAT, &error))?;
        let from = slot.run_directory.join(name);
        let link = move |captures: &Captures, id: &_| captures.link_disk(id, &from);
        let linked = self.on_captures(id, link).await;
        linked.map_err(|error| node_error(WHAT, &error))
    }

    async fn publish_capture(
        &self,
        wish: &CaptureWish,
        taken: Taken,
        start: Instant,
    ) -> Result<Arc<CaptureManifest>, NodeError> {
        let Drafted { draft, room, .. } = self.draft(wish, taken, start)?;
        let captures = Arc::clone(&self.parts.captures);
        let publish = move || {
            let published = captures.publish(draft);
            drop(room);
            published
        };
        let published = blocking(publish).await;
        published.map(|manifest| with_total_time(&manifest, start.elapsed()))
    }

    pub(super) fn draft(
        &self,
        wish: &CaptureWish,
        taken: Taken,
        start: Instant,
    ) -> Result<Drafted, NodeError> {
        let (record, layers) = (&self.record, self.layers()?);
        // The capture's own layer is not below itself.
        let sealed: Vec<SnapshotId> = (layers.sealed.iter())
            .filter(|id| **id != wish.id)
            .cloned()
            .collect();
        let below = self.parts.captures.below(&layers.origin, &sealed);
        let below = below.map_err(|error| capture_error(WHAT, &error))?;
        let mut cost = taken.cost;
        cost.total_us = micros(start.elapsed());
        let draft = CaptureDraft {
            id: wish.id.clone(),
            purpose: wish.purpose,
            project: record.project.clone(),
            sandbox: record.id.clone(),
            template: record.template.clone(),
            template_version: record.template_version.clone(),
            name: wish.name.clone(),
            created_at: self.parts.clock.wall(),
            frozen_at: taken.frozen_at,
            expires_at: wish.expires_at,
            machine: record.machine.clone(),
            disk_mib: record.disk.unwrap_or(record.machine.disk).into(),
            engine: engine_of(&self.parts, record),
            memory_base: below.memory_base,
            memory_below: below.memory,
            disk_below: below.disks,
            extents: taken.captured.extents,
            cost,
        };
        Ok(Drafted {
            draft,
            sealed,
            room: taken.room,
        })
    }
}

/// The manifest for the caller, with the time that it took to make it durable, which it could not
/// hold itself.
pub(super) fn with_total_time(manifest: &CaptureManifest, took: Duration) -> Arc<CaptureManifest> {
    let mut manifest = manifest.clone();
    manifest.cost.total_us = micros(took);
    Arc::new(manifest)
}

async fn in_time<T>(work: impl Future<Output = Result<T, NodeError>>) -> Result<T, NodeError> {
    let done = tokio::time::timeout(limits::CAPTURE_DEADLINE, work).await;
    done.unwrap_or_else(|_| Err(NodeError::internal(format!("{WHAT}: it took too long"))))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Runs blocking work on captures to its end, whether or not the caller still waits.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CaptureError> + Send + 'static,
) -> Result<T, NodeError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| capture_error(WHAT, &error)),
        Err(error) => Err(node_error(WHAT, &error)),
    }
}
