//! What a fresh process does with what an earlier one left: adopt, finish, or remove.
//!
//! Takes no input but the journal and kernel facts. Everything it does may be repeated.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dayfly_core::admission::Demand;
use dayfly_snapshots::capture::{CaptureManifest, CapturePurpose, file_names};
use dayfly_types::{SandboxId, SandboxState};
use dayfly_vmm::{AdoptError, SlotError, SlotIndex, Vm};

use crate::journal::{Entry, JournalError, SandboxRecord, Sealing};
use crate::parts::Parts;
use crate::sandbox::capture::keep_layer;
use crate::sandbox::owner::Owner;
use crate::sandbox::permit_of;

/// Why the node could not find out what is there.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    #[error("cannot read the journal")]
    Journal(#[source] JournalError),
    #[error("cannot list the slots")]
    Slots(#[source] SlotError),
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reconciled {
    pub adopted: usize,
    pub failed: usize,
    pub removed: usize,
    pub orphan_slots: usize,
}

/// Repairs what a crash left. Returns once every record has an owner and no slot is unaccounted.
///
/// # Errors
/// [`ReconcileError`] when the facts themselves cannot be read.
pub(crate) async fn reconcile(parts: &Arc<Parts>) -> Result<Reconciled, ReconcileError> {
    let mut found = Reconciled::default();
    let mut named: HashSet<SlotIndex> = HashSet::new();
    for entry in parts.journal.entries().map_err(ReconcileError::Journal)? {
        match entry {
            Entry::Record(record) => {
                named.extend(record.slot);
                take_over(parts, *record, &mut found).await;
            }
            Entry::Unreadable { id, error } => {
                // The slot that it named, if any, is released below as nobody's.
                let text = crate::error_chain(&error);
                tracing::error!(sandbox_id = %id, error = %text, "dropping an unreadable record");
                if let Err(error) = parts.journal.remove(&id) {
                    tracing::error!(sandbox_id = %id, error = %crate::error_chain(&error), "cannot drop it");
                }
                found.removed += 1;
            }
        }
    }
    for index in parts.slots.list().await.map_err(ReconcileError::Slots)? {
        if named.contains(&index) {
            continue;
        }
        found.orphan_slots += 1;
        if let Err(error) = parts.slots.release(index).await {
            tracing::error!(slot = index.0, error = %crate::error_chain(&error), "cannot release an orphan slot");
        }
    }
    // Every engine without a record is dead now, so nobody writes under a lease without one.
    let exists = |id: &SandboxId| parts.sandboxes().contains_key(id);
    parts.volumes.release_absent(exists);
    let mut needed = crate::housekeeping::roots(parts);
    needed.extend(parts.captures.all().iter().flat_map(|capture| {
        let below: Vec<_> = capture.below().cloned().collect();
        below
    }));
    if let Err(error) = parts.captures.sweep(|id| needed.contains(id)) {
        tracing::warn!(%error, "cannot sweep unfinished captures");
    }
    Ok(found)
}

async fn take_over(parts: &Arc<Parts>, mut record: SandboxRecord, found: &mut Reconciled) {
    keep_deadline(parts, &mut record);
    let vm = match record.state {
        SandboxState::Running
        | SandboxState::Pausing
        | SandboxState::Paused
        | SandboxState::Resuming
        | SandboxState::Hibernating => take_over_machine(parts, &mut record).await,
        // A restore that was cut short: whatever there is of a machine goes, the capture stays.
        SandboxState::Hibernated | SandboxState::Waking => {
            sleep_on(parts, &mut record).await;
            None
        }
        SandboxState::Failed => None,
        // Nobody was told that a half-made sandbox exists, so it goes. The rest was on its way out.
        SandboxState::Creating | SandboxState::Deleting | SandboxState::Deleted => {
            record.state = SandboxState::Deleting;
            None
        }
    };
    let has_machine = vm.is_some();
    let promise = has_machine.then(|| {
        let machine = &record.machine;
        let disk = record.disk.unwrap_or(machine.disk);
        parts
            .ledger
            .note(Demand::of_guest(machine.memory.into(), disk.into()))
    });
    if record.state == SandboxState::Failed {
        found.failed += 1;
    } else if record.state == SandboxState::Deleting {
        found.removed += 1;
    } else {
        found.adopted += 1;
    }
    if let (true, Some(slot)) = (has_machine, record.slot) {
        parts.egress.adopt(permit_of(&record, slot));
    }
    let (owner, handle, incoming) = Owner::new(Arc::clone(parts), record, promise);
    parts.sandboxes().insert(handle.id.clone(), handle);
    tokio::spawn(owner.adopt_and_run(vm, incoming));
}

/// Finds the machine of a sandbox that has one, and brings it out of whatever was cut short.
async fn take_over_machine(parts: &Arc<Parts>, record: &mut SandboxRecord) -> Option<Box<dyn Vm>> {
    let Some(mut vm) = adopt(parts, record).await else {
        fail(parts, record).await;
        return None;
    };
    if let Err(reason) = settle_disk(parts, record, vm.as_mut()).await {
        tracing::error!(sandbox_id = %record.id, reason, "a capture that was cut short is in doubt");
    }
    if record.state != SandboxState::Paused {
        // A capture or a sleep may have left it stopped. Its guest, if frozen, is let go by the
        // owner's next conversation.
        if let Err(error) = vm.resume().await {
            tracing::warn!(sandbox_id = %record.id, error = %crate::error_chain(&error), "cannot resume");
        }
        record.state = SandboxState::Running;
    }
    record.asleep_in = None;
    write(parts, record);
    Some(vm)
}

/// Decides what a capture that was cut short has become: if the machine writes to the new layer
/// already, the old one is part of its disk; if not, nothing has happened.
async fn settle_disk(
    parts: &Arc<Parts>,
    record: &mut SandboxRecord,
    vm: &mut dyn Vm,
) -> Result<(), String> {
    if let Some(sealing) = record.sealing.clone() {
        let now = vm.writable_disk().await;
        let now = now.map_err(|error| crate::error_chain(&error))?;
        if now == sealing.layer && !record.sealed.contains(&sealing.capture) {
            record.sealed.push(sealing.capture.clone());
        }
        if record.sealed.contains(&sealing.capture) {
            take_sealed_file(parts, record, &sealing).await?;
        }
        record.sealing = None;
        write(parts, record);
    }
    // Sealed, and not published: the disk layer alone is kept.
    for (index, id) in record.sealed.iter().enumerate() {
        if parts.captures.get(id).is_none() {
            keep_layer(parts, record, id, &record.sealed[..index])
                .map_err(|error| crate::error_chain(&error))?;
        }
    }
    Ok(())
}

async fn take_sealed_file(
    parts: &Arc<Parts>,
    record: &SandboxRecord,
    sealing: &Sealing,
) -> Result<(), String> {
    let index = record.slot.ok_or("it has no slot")?;
    let slot = parts.slots.reopen(index).await;
    let slot = slot.map_err(|error| crate::error_chain(&error))?;
    let from = slot.run_directory.join(&sealing.sealed);
    if !from.exists() {
        return Ok(());
    }
    parts
        .captures
        .take(&sealing.capture, &from, file_names::DISK_LAYER)
        .map_err(|error| crate::error_chain(&error))
}

/// Leaves a sandbox asleep, with nothing of a machine.
async fn sleep_on(parts: &Arc<Parts>, record: &mut SandboxRecord) {
    // Asleep already, it keeps the slot of the machine that was captured until that is ended.
    let had_machine = record.state == SandboxState::Waking && record.process.is_some();
    release(parts, record).await;
    record.origin = None;
    record.sealed.clear();
    record.state = SandboxState::Hibernated;
    record.generation = record.generation.next();
    let capture = record.asleep_in.clone();
    let capture = capture.and_then(|id| parts.captures.get(&id));
    let is_hibernation = |capture: &CaptureManifest| capture.purpose == CapturePurpose::Hibernation;
    let writes = record.volumes.iter().any(|volume| !volume.mount.read_only);
    if capture.is_none() {
        record.state = SandboxState::Failed;
        record.reason = Some("the capture that it slept in cannot be read".to_owned());
    } else if had_machine && writes && capture.as_deref().is_some_and(is_hibernation) {
        // Its memory has the volume mounted, and the disk may have moved on without it.
        record.state = SandboxState::Failed;
        record.reason =
            Some("its wake was cut short after it may have written to a volume".to_owned());
    }
    write(parts, record);
}

fn write(parts: &Parts, record: &SandboxRecord) {
    if let Err(error) = parts.journal.write(record) {
        tracing::error!(sandbox_id = %record.id, error = %crate::error_chain(&error), "cannot write the journal");
    }
}

async fn release(parts: &Arc<Parts>, record: &mut SandboxRecord) {
    if let Some(slot) = record.slot {
        match parts.slots.release(slot).await {
            Ok(()) => record.slot = None,
            Err(error) => {
                tracing::error!(sandbox_id = %record.id, error = %crate::error_chain(&error), "cannot release the slot");
            }
        }
    }
    record.process = None;
}

/// The engine died while nobody watched: its resources go, the reason stays.
async fn fail(parts: &Arc<Parts>, record: &mut SandboxRecord) {
    release(parts, record).await;
    record.state = SandboxState::Failed;
    record.generation = record.generation.next();
    record.reason = Some("the engine ended while the node was down".to_owned());
    write(parts, record);
}

async fn adopt(parts: &Arc<Parts>, record: &SandboxRecord) -> Option<Box<dyn Vm>> {
    let (Some(index), Some(process)) = (record.slot, record.process) else {
        return None;
    };
    if record.boot_id != parts.boot_id {
        return None;
    }
    let slot = parts.slots.reopen(index).await.ok()?;
    match parts.engine.adopt(&slot, process).await {
        Ok(vm) => Some(vm),
        Err(AdoptError::Gone) => None,
        Err(error) => {
            let text = crate::error_chain(&error);
            tracing::warn!(sandbox_id = %record.id, error = %text, "cannot adopt");
            None
        }
    }
}

/// A deadline on another boot's clock means nothing on this one's; the wall clock bridges the two.
fn keep_deadline(parts: &Arc<Parts>, record: &mut SandboxRecord) {
    if record.boot_id == parts.boot_id {
        return;
    }
    record.boot_id.clone_from(&parts.boot_id);
    record.process = None;
    record.expires = record.expires_wall_ms.map(|wall_ms| {
        let now = parts
            .clock
            .wall()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let left = Duration::from_millis(wall_ms).saturating_sub(now);
        parts.clock.now().plus(left)
    });
}
