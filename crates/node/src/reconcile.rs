//! What a fresh process does with what an earlier one left: adopt, finish, remove, or keep.
//!
//! Takes no input but the journal and kernel facts. Everything it does may be repeated. What cannot
//! be read is kept, see [`crate::kept`].

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dayfly_core::lifecycle::{LifecycleEvent, Sealing};
use dayfly_snapshots::capture::{CaptureManifest, CapturePurpose, file_names};
use dayfly_types::{SandboxId, SandboxState, limits};
use dayfly_vmm::{AdoptError, CpuWeight, SlotError, SlotIndex, Vm};

use crate::journal::{Entry, JournalError, SandboxRecord};
use crate::kept;
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
    /// Could not be read or taken over, and stay as they are.
    pub kept: usize,
    pub orphan_slots: usize,
}

/// Repairs what a crash left. Returns once every record has an owner and no slot is unaccounted.
///
/// # Errors
/// [`ReconcileError`] when the facts themselves cannot be read.
pub(crate) async fn reconcile(parts: &Arc<Parts>) -> Result<Reconciled, ReconcileError> {
    let mut found = Reconciled::default();
    if let Err(error) = parts.journal.sweep() {
        tracing::warn!(error = %crate::error_chain(&error), "something of a removed sandbox stays");
    }
    let mut named: HashSet<SlotIndex> = HashSet::new();
    for entry in parts.journal.entries().map_err(ReconcileError::Journal)? {
        match entry {
            Entry::Record(record) => {
                named.extend(record.phase.slot());
                take_over(parts, *record, &mut found).await;
            }
            Entry::Unreadable { id, error, glimpse } => {
                kept::keep_unreadable(parts, id, &error, glimpse);
            }
            Entry::Empty { id } => {
                if let Err(error) = parts.journal.remove(&id) {
                    tracing::error!(sandbox_id = %id, error = %crate::error_chain(&error), "cannot remove an empty entry");
                }
                found.removed += 1;
            }
        }
    }
    found.kept = parts.kept.reports().len();
    found.orphan_slots = release_orphans(parts, named).await?;
    release_leftovers(parts);
    Ok(found)
}

/// Releases every slot that nobody can have. While it is not known which slots a kept sandbox has,
/// that is none.
async fn release_orphans(
    parts: &Arc<Parts>,
    mut named: HashSet<SlotIndex>,
) -> Result<usize, ReconcileError> {
    let slots = parts.slots.list().await.map_err(ReconcileError::Slots)?;
    match parts.kept.slots() {
        Some(kept) => named.extend(kept),
        None => named.extend(&slots),
    }
    let mut orphans = 0;
    for index in slots.into_iter().filter(|index| !named.contains(index)) {
        orphans += 1;
        if let Err(error) = parts.slots.release(index).await {
            tracing::error!(slot = index.0, error = %crate::error_chain(&error), "cannot release an orphan slot");
        }
    }
    Ok(orphans)
}

/// Takes back leases of sandboxes that are gone, and what captures that were cut short have left.
fn release_leftovers(parts: &Arc<Parts>) {
    // Every engine without an entry in the journal is dead now, so nobody writes under a lease
    // without one. An entry names its sandbox, whether or not it can be read.
    let exists = |id: &SandboxId| parts.sandboxes().contains_key(id) || parts.kept.contains(id);
    parts.volumes.release_absent(exists);
    if !parts.kept.is_empty() {
        return;
    }
    let mut needed = crate::housekeeping::roots(parts);
    needed.extend(parts.captures.all().iter().flat_map(|capture| {
        let below: Vec<_> = capture.below().cloned().collect();
        below
    }));
    if let Err(error) = parts.captures.sweep(|id| needed.contains(id)) {
        tracing::warn!(%error, "cannot sweep unfinished captures");
    }
}

/// Gives a record an owner. `false`: it is kept without one, because its machine cannot be reached.
pub(crate) async fn take_over(
    parts: &Arc<Parts>,
    mut record: SandboxRecord,
    found: &mut Reconciled,
) -> bool {
    let is_of_this_boot = record.boot_id == parts.boot_id;
    let on_disk = record.clone();
    keep_deadline(parts, &mut record);
    undo_older_failure(&mut record);
    let vm = match record.state() {
        SandboxState::Running
        | SandboxState::Pausing
        | SandboxState::Paused
        | SandboxState::Resuming
        | SandboxState::Hibernating => {
            match take_over_machine(parts, &mut record, is_of_this_boot).await {
                Ok(vm) => vm,
                Err(reason) => {
                    kept::keep_unadopted(parts, &record, &reason);
                    return false;
                }
            }
        }
        // A restore that was cut short: whatever there is of a machine goes, the capture stays.
        SandboxState::Hibernated | SandboxState::Waking => {
            sleep_on(parts, &mut record, &on_disk).await;
            None
        }
        SandboxState::Failed => {
            if record.phase.slot().is_some() {
                release(parts, &mut record).await;
                write(parts, &record);
            }
            None
        }
        SandboxState::Deleting | SandboxState::Deleted => None,
        // Nobody was told that a half-made sandbox exists, so it goes.
        SandboxState::Creating => {
            advance(&mut record, LifecycleEvent::Delete);
            None
        }
    };
    let has_machine = vm.is_some();
    let promise = has_machine.then(|| parts.book(record.class, &record.machine, record.disk));
    if record.state() == SandboxState::Failed {
        found.failed += 1;
    } else if record.state() == SandboxState::Deleting {
        found.removed += 1;
    } else {
        found.adopted += 1;
    }
    if let (true, Some(slot)) = (has_machine, record.phase.slot()) {
        parts.egress.adopt(permit_of(&record, slot));
    }
    let (owner, handle, incoming) = Owner::new(Arc::clone(parts), record, promise);
    parts.sandboxes().insert(handle.id.clone(), handle);
    tokio::spawn(owner.adopt_and_run(vm, incoming));
    true
}

/// An older program wrote that a sleeping sandbox failed when its capture could not be read once.
/// Nothing happened to it, so it sleeps.
fn undo_older_failure(record: &mut SandboxRecord) {
    let is_that = record.phase.reason() == Some(OLDER_CAPTURE_FAILURE);
    if record.state() == SandboxState::Failed && is_that && record.phase.asleep_in().is_some() {
        advance(record, LifecycleEvent::StillAsleep);
    }
}

/// What this module asks for is drawn in the lifecycle; if not, the record stays where it is.
fn advance(record: &mut SandboxRecord, event: LifecycleEvent) {
    if let Err(error) = record.advance(event) {
        tracing::error!(sandbox_id = %record.id, %error, "a record was not brought on");
    }
}

/// Finds the machine of a sandbox that has one, and brings it out of whatever was cut short. An
/// error is the reason why nobody can tell now whether there is one.
async fn take_over_machine(
    parts: &Arc<Parts>,
    record: &mut SandboxRecord,
    is_of_this_boot: bool,
) -> Result<Option<Box<dyn Vm>>, String> {
    // No process outlives the boot of its host.
    let found = if is_of_this_boot {
        adopt(parts, record).await?
    } else {
        None
    };
    let Some(mut vm) = found else {
        fail(parts, record).await;
        return Ok(None);
    };
    if let Err(reason) = settle_disk(parts, record, vm.as_mut()).await {
        tracing::error!(sandbox_id = %record.id, reason, "a capture that was cut short is in doubt");
    }
    if record.state() != SandboxState::Paused {
        // A capture or a sleep may have left it stopped. Its guest, if frozen, is let go by the
        // owner's next conversation.
        if let Err(error) = vm.resume().await {
            tracing::warn!(sandbox_id = %record.id, error = %crate::error_chain(&error), "cannot resume");
        }
    }
    if !matches!(record.state(), SandboxState::Paused | SandboxState::Running) {
        advance(record, LifecycleEvent::TakenOver);
    }
    write(parts, record);
    Ok(Some(vm))
}

/// Decides what a capture that was cut short has become: if the machine writes to the new layer
/// already, the old one is part of its disk; if not, nothing has happened.
async fn settle_disk(
    parts: &Arc<Parts>,
    record: &mut SandboxRecord,
    vm: &mut dyn Vm,
) -> Result<(), String> {
    let sealing = (record.phase.disk()).and_then(|layers| layers.sealing.clone());
    if let Some(sealing) = sealing {
        let now = vm.writable_disk().await;
        let now = now.map_err(|error| crate::error_chain(&error))?;
        settle_sealing(parts, record, &sealing, now == sealing.layer).await?;
        write(parts, record);
    }
    // Sealed, and not published: the disk layer alone is kept.
    let sealed = record.phase.disk().map(|layers| layers.sealed.clone());
    let sealed = sealed.unwrap_or_default();
    for (index, id) in sealed.iter().enumerate() {
        if parts.captures.get(id).is_none() {
            keep_layer(parts, record, id, &sealed[..index])
                .map_err(|error| crate::error_chain(&error))?;
        }
    }
    Ok(())
}

async fn settle_sealing(
    parts: &Arc<Parts>,
    record: &mut SandboxRecord,
    sealing: &Sealing,
    has_happened: bool,
) -> Result<(), String> {
    let index = record.phase.slot().ok_or("it has no slot")?;
    let layers = record.phase.disk_mut().ok_or("it has no disk")?;
    if has_happened && !layers.sealed.contains(&sealing.capture) {
        layers.sealed.push(sealing.capture.clone());
    }
    if layers.sealed.contains(&sealing.capture) {
        take_sealed_file(parts, index, sealing).await?;
    }
    layers.sealing = None;
    Ok(())
}

async fn take_sealed_file(
    parts: &Arc<Parts>,
    index: SlotIndex,
    sealing: &Sealing,
) -> Result<(), String> {
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

/// What an older program wrote when it could not read a capture.
const OLDER_CAPTURE_FAILURE: &str = "the capture that it slept in cannot be read";

/// Leaves a sandbox asleep, with nothing of a machine. Whether its capture can be read now is not
/// written down: that is found out whenever somebody asks.
async fn sleep_on(parts: &Arc<Parts>, record: &mut SandboxRecord, on_disk: &SandboxRecord) {
    // Asleep already, it keeps the slot of the machine that was captured until that is ended.
    let had_machine = record.state() == SandboxState::Waking && record.phase.process().is_some();
    release(parts, record).await;
    let capture = record.phase.asleep_in();
    let capture = capture.and_then(|id| parts.captures.get(id));
    let writes = record.volumes.iter().any(|volume| !volume.mount.read_only);
    if had_machine && writes && capture.is_none() {
        // Whether its memory has the volume mounted is not known before the capture is there, so it
        // stays on its way, and the next start decides.
        write(parts, record);
        return;
    }
    let is_hibernation = |capture: &CaptureManifest| capture.purpose == CapturePurpose::Hibernation;
    if had_machine && writes && capture.as_deref().is_some_and(is_hibernation) {
        // Its memory has the volume mounted, and the disk may have moved on without it.
        let reason = "its wake was cut short after it may have written to a volume";
        advance(record, LifecycleEvent::Fault(reason.to_owned()));
    } else if record.state() == SandboxState::Waking {
        advance(record, LifecycleEvent::WakeUndone);
    }
    // Each write of a sleeper's record is durable, and a host may have tens of thousands.
    if record != on_disk {
        write(parts, record);
    }
}

fn write(parts: &Parts, record: &SandboxRecord) {
    if let Err(error) = parts.journal.write(record) {
        tracing::error!(sandbox_id = %record.id, error = %crate::error_chain(&error), "cannot write the journal");
    }
}

async fn release(parts: &Arc<Parts>, record: &mut SandboxRecord) {
    if let Some(slot) = record.phase.slot() {
        match parts.slots.release(slot).await {
            Ok(()) => record.phase.give_slot_back(),
            Err(error) => {
                tracing::error!(sandbox_id = %record.id, error = %crate::error_chain(&error), "cannot release the slot");
            }
        }
    }
}

/// The engine died while nobody watched: its resources go, the reason stays.
async fn fail(parts: &Arc<Parts>, record: &mut SandboxRecord) {
    let reason = "the engine ended while the node was down";
    advance(record, LifecycleEvent::Fault(reason.to_owned()));
    release(parts, record).await;
    write(parts, record);
}

/// The machine, `None` when it is provably gone, or why that cannot be told now.
async fn adopt(parts: &Arc<Parts>, record: &SandboxRecord) -> Result<Option<Box<dyn Vm>>, String> {
    let Some(machine) = record.phase.machine() else {
        return Ok(None);
    };
    let slot = match parts.slots.reopen(machine.engine.slot).await {
        Ok(slot) => slot,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(doubt(record, &error)),
    };
    match parts.engine.adopt(&slot, machine.engine.process).await {
        Ok(vm) => {
            // A capture that was cut short may have left it with less.
            let limited = parts.slots.limit_cpu(slot.index, record.cpu_limit()).await;
            if let Err(error) = limited {
                let error = crate::error_chain(&error);
                tracing::warn!(sandbox_id = %record.id, error, "cannot limit the processor time");
            }
            let weighed = parts.slots.weigh_cpu(slot.index, CpuWeight::Running).await;
            if let Err(error) = weighed {
                let error = crate::error_chain(&error);
                tracing::warn!(sandbox_id = %record.id, error, "cannot weigh the processor time");
            }
            Ok(Some(vm))
        }
        Err(AdoptError::Gone) => Ok(None),
        Err(error) => Err(doubt(record, &error)),
    }
}

/// Why it cannot be told whether there is a machine: all of it for the log, and what names no path
/// for the sandbox's project.
fn doubt(record: &SandboxRecord, error: &dyn std::error::Error) -> String {
    tracing::debug!(sandbox_id = %record.id, error = %crate::error_chain(error), "cannot adopt");
    error.to_string()
}

fn is_absent(error: &SlotError) -> bool {
    let SlotError::Step { source, .. } = error else {
        return false;
    };
    let source = source.downcast_ref::<io::Error>();
    source.is_some_and(|source| source.kind() == io::ErrorKind::NotFound)
}

/// A deadline on another boot's clock means nothing on this one's; the wall clock bridges the two.
/// One that starts wrong must not end what it cannot give back, so there is time to put it right.
fn keep_deadline(parts: &Arc<Parts>, record: &mut SandboxRecord) {
    if record.boot_id == parts.boot_id {
        return;
    }
    record.boot_id.clone_from(&parts.boot_id);
    record.expires = record.expires_wall_ms.map(|wall_ms| {
        let now = parts
            .clock
            .wall()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let left = Duration::from_millis(wall_ms).saturating_sub(now);
        parts.clock.now().plus(left.max(limits::WALL_CLOCK_HOLD))
    });
    record.expires_bridged = record.expires.is_some();
    // Whoever knows the former deadline learns of this one.
    record.generation = record.generation.next();
}
