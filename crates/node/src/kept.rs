//! Sandboxes that cannot be taken over now. What cannot be read is kept.
//!
//! A record that this program cannot read, or an engine that does not answer, is a fault of the
//! moment: the next look may succeed, and so may a newer program. Until then nothing that such a
//! sandbox may name is touched: no slot without an owner is released, no capture is collected, no
//! lease of its is taken back. It is looked at again with every round of housekeeping. Nothing of
//! this is written down; every start finds it out anew. `docs/adr/0017-kept.md`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_core::lifecycle::LifecycleEvent;
use dayfly_node_api::{KeptSandbox, NodeError};
use dayfly_types::{ErrorCode, ProjectId, SandboxClass, SandboxId};

use crate::capacity::Promise;
use crate::disk_lane::off_runtime;
use crate::glimpse::{Glimpse, GlimpsedSlot};
use crate::journal::{Entry, JournalError, SandboxRecord};
use crate::parts::Parts;
use crate::reconcile::{Reconciled, take_over};

/// What to do about a record that stays unreadable.
const REMEDY: &str = "start a program that can read it, put the file back, or give it up with \
                      `dayflyd forget --unreadable`";

/// Every sandbox that is kept.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<BTreeMap<SandboxId, Entrusted>>);

#[derive(Debug)]
struct Entrusted {
    project: Option<ProjectId>,
    slot: GlimpsedSlot,
    reason: String,
    /// What its machine may use, as far as that is known.
    _promise: Option<Promise>,
    /// Somebody is about to take it over or to give it up.
    is_claimed: bool,
}

/// The right to settle what becomes of one kept sandbox. Dropping it leaves the sandbox kept.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    kept: &'a Kept,
    id: SandboxId,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(entrusted) = self.kept.lock().get_mut(&self.id) {
            entrusted.is_claimed = false;
        }
    }
}

impl Claim<'_> {
    /// It has an owner again, or is gone.
    fn settle(self) {
        self.kept.lock().remove(&self.id);
    }
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SandboxId, Entrusted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(crate) fn contains(&self, id: &SandboxId) -> bool {
        self.lock().contains_key(id)
    }

    /// The slots that must stay, or `None` when that may be any.
    pub(crate) fn slots(&self) -> Option<Vec<dayfly_vmm::SlotIndex>> {
        let kept = self.lock();
        let mut named = Vec::new();
        for entrusted in kept.values() {
            match entrusted.slot {
                GlimpsedSlot::Unknown => return None,
                GlimpsedSlot::None => {}
                GlimpsedSlot::Named(index) => named.push(index),
            }
        }
        Some(named)
    }

    pub(crate) fn reports(&self) -> Vec<KeptSandbox> {
        let kept = self.lock();
        kept.iter()
            .map(|(id, entrusted)| KeptSandbox {
                id: id.clone(),
                project: entrusted.project.clone(),
                reason: entrusted.reason.clone(),
            })
            .collect()
    }

    /// The refusal of a call to a sandbox that is kept.
    pub(crate) fn refusal(&self, id: &SandboxId) -> Option<NodeError> {
        let kept = self.lock();
        let reason = &kept.get(id)?.reason;
        let text = format!("the sandbox is unavailable and is kept as it is: {reason}");
        Some(NodeError::new(ErrorCode::WrongState, text))
    }

    fn claim(&self, id: &SandboxId) -> Option<Claim<'_>> {
        let mut kept = self.lock();
        let entrusted = kept.get_mut(id).filter(|found| !found.is_claimed)?;
        entrusted.is_claimed = true;
        Some(Claim {
            kept: self,
            id: id.clone(),
        })
    }

    fn ids(&self) -> Vec<SandboxId> {
        self.lock().keys().cloned().collect()
    }

    fn insert(&self, id: SandboxId, entrusted: Entrusted) {
        self.lock().insert(id, entrusted);
    }
}

/// Keeps a sandbox whose record cannot be read.
pub(crate) fn keep_unreadable(
    parts: &Parts,
    id: SandboxId,
    error: &JournalError,
    glimpse: Glimpse,
) {
    let text = crate::error_chain(error);
    tracing::error!(sandbox_id = %id, error = text, remedy = REMEDY,
        "a record cannot be read; it is kept with all that it may name, and nothing is collected");
    let machine = glimpse
        .machine
        .filter(|_| glimpse.slot != GlimpsedSlot::None);
    let entrusted = Entrusted {
        project: glimpse.project,
        slot: glimpse.slot,
        reason: format!("its record cannot be read: {}", error.without_path()),
        _promise: machine.map(|machine| parts.book(SandboxClass::Reserved, &machine, None)),
        is_claimed: false,
    };
    parts.kept.insert(id, entrusted);
}

/// Keeps a sandbox whose machine runs and cannot be spoken to.
pub(crate) fn keep_unadopted(parts: &Parts, record: &SandboxRecord, reason: &str) {
    if !parts.kept.contains(&record.id) {
        tracing::error!(sandbox_id = %record.id, reason,
            "a machine cannot be taken over now; it is kept and tried again");
    }
    let entrusted = Entrusted {
        project: Some(record.project.clone()),
        slot: (record.phase.slot()).map_or(GlimpsedSlot::None, GlimpsedSlot::Named),
        reason: format!("its machine cannot be taken over now: {reason}"),
        _promise: Some(parts.book(record.class, &record.machine, record.disk)),
        is_claimed: false,
    };
    parts.kept.insert(record.id.clone(), entrusted);
}

/// Looks again at everything that is kept, and takes over what can be.
pub(crate) async fn look_again(parts: &Arc<Parts>) {
    for id in parts.kept.ids() {
        let Some(claim) = parts.kept.claim(&id) else {
            continue;
        };
        if let Entry::Record(record) = look(parts, &id).await
            && take_over(parts, *record, &mut Reconciled::default()).await
        {
            tracing::info!(sandbox_id = %id, "a sandbox that was kept is there again");
            claim.settle();
        }
    }
}

/// What the journal says of one sandbox now.
async fn look(parts: &Arc<Parts>, id: &SandboxId) -> Entry {
    let (journal, id) = (parts.journal.clone(), id.clone());
    off_runtime(move || journal.look(id)).await
}

fn busy(id: &SandboxId) -> NodeError {
    NodeError::unavailable(format!("sandbox {id} is being looked at; ask again"))
}

/// Deletes a sandbox that is kept, when its record says what there is to delete.
///
/// # Errors
/// [`NodeError`] when it does not: what belongs to it is not known.
pub(crate) async fn delete(parts: &Arc<Parts>, id: &SandboxId) -> Result<(), NodeError> {
    let refusal = || parts.kept.refusal(id).unwrap_or_else(|| busy(id));
    let claim = parts.kept.claim(id).ok_or_else(refusal)?;
    let Entry::Record(mut record) = look(parts, id).await else {
        return Err(refusal());
    };
    let ended = record.advance(LifecycleEvent::Delete);
    ended.map_err(|error| NodeError::new(ErrorCode::WrongState, error.to_string()))?;
    take_over(parts, *record, &mut Reconciled::default()).await;
    claim.settle();
    Ok(())
}

/// Gives up a sandbox whose record cannot be read, because an operator says so. What it may have
/// used is given back by the next start, which then knows that it is nobody's.
///
/// # Errors
/// [`NodeError`] when there is none, or its record can be read after all.
pub(crate) async fn forget(parts: &Arc<Parts>, id: &SandboxId) -> Result<(), NodeError> {
    let Some(claim) = parts.kept.claim(id) else {
        if parts.kept.contains(id) {
            return Err(busy(id));
        }
        let text = format!("no sandbox {id} whose record cannot be read");
        return Err(NodeError::not_found(text));
    };
    if matches!(look(parts, id).await, Entry::Record(_)) {
        let text = format!("the record of {id} can be read; delete it like any other");
        return Err(NodeError::new(ErrorCode::WrongState, text));
    }
    let (journal, sandbox) = (parts.journal.clone(), id.clone());
    let removed = off_runtime(move || journal.remove(&sandbox)).await;
    removed.map_err(|error| crate::failure::node_error("the record stays", &error))?;
    tracing::warn!(sandbox_id = %id, "given up by the operator");
    claim.settle();
    Ok(())
}
