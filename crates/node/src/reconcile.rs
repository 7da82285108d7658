//! What a fresh process does with what an earlier one left: adopt, finish, or remove.
//!
//! Takes no input but the journal and kernel facts. Everything it does may be repeated.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dayfly_core::admission::Demand;
use dayfly_types::SandboxState;
use dayfly_vmm::{AdoptError, SlotError, SlotIndex, Vm};

use crate::journal::{Entry, JournalError, SandboxRecord};
use crate::parts::Parts;
use crate::sandbox::owner::Owner;

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
    Ok(found)
}

async fn take_over(parts: &Arc<Parts>, mut record: SandboxRecord, found: &mut Reconciled) {
    keep_deadline(parts, &mut record);
    let vm = match record.state {
        SandboxState::Running => adopt(parts, &record).await,
        SandboxState::Failed => None,
        // Nobody was told that a half-made sandbox exists, so it goes. The rest was on its way out
        // or cannot have been written by this version.
        SandboxState::Creating
        | SandboxState::Pausing
        | SandboxState::Paused
        | SandboxState::Resuming
        | SandboxState::Hibernating
        | SandboxState::Hibernated
        | SandboxState::Waking
        | SandboxState::Deleting
        | SandboxState::Deleted => {
            record.state = SandboxState::Deleting;
            None
        }
    };
    if record.state == SandboxState::Running && vm.is_none() {
        fail(parts, &mut record).await;
    }
    let promise = (record.state == SandboxState::Running).then(|| {
        let machine = &record.machine;
        parts
            .ledger
            .book(Demand::of_guest(machine.memory.into(), machine.disk.into()))
    });
    if record.state == SandboxState::Running {
        found.adopted += 1;
    } else if record.state == SandboxState::Failed {
        found.failed += 1;
    } else {
        found.removed += 1;
    }
    let (owner, handle, incoming) = Owner::new(Arc::clone(parts), record, promise);
    parts.sandboxes().insert(handle.id.clone(), handle);
    tokio::spawn(owner.adopt_and_run(vm, incoming));
}

/// The engine died while nobody watched: its resources go, the reason stays.
async fn fail(parts: &Arc<Parts>, record: &mut SandboxRecord) {
    if let Some(slot) = record.slot {
        match parts.slots.release(slot).await {
            Ok(()) => record.slot = None,
            Err(error) => {
                tracing::error!(sandbox_id = %record.id, error = %crate::error_chain(&error), "cannot release the slot");
            }
        }
    }
    record.process = None;
    record.state = SandboxState::Failed;
    record.generation = record.generation.next();
    record.reason = Some("the engine ended while the node was down".to_owned());
    if let Err(error) = parts.journal.write(record) {
        tracing::error!(sandbox_id = %record.id, error = %crate::error_chain(&error), "cannot write the journal");
    }
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
