//! Giving back the bytes of captures that nothing needs.
//!
//! Two passes: what nothing needs is noted, and removed by the next pass if nothing needs it then
//! either. So a capture that is published between the two, or a machine that is about to be
//! restored, cannot lose what it lies on by an unlucky moment.
//!
//! A damaged capture stops collecting: what it lies on is not known, and somebody may repair it, or
//! start a newer program that can read it. It goes when it is hidden and nothing visible names it,
//! and collecting goes on after that.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use dayfly_types::SnapshotId;

use super::error::CaptureError;
use super::store::CaptureStore;

/// Remembers between passes.
#[derive(Debug, Default)]
pub struct Collector {
    candidates: Mutex<HashSet<SnapshotId>>,
}

impl Collector {
    /// Removes what was unneeded in the last pass and is so in this one. `roots` names the captures
    /// that machines and sleeping sandboxes use; visible snapshots count by themselves.
    ///
    /// # Errors
    /// [`CaptureError::File`] at the first that cannot be removed; the others wait for a later pass.
    pub fn pass(
        &self,
        store: &CaptureStore,
        roots: &HashSet<SnapshotId>,
    ) -> Result<Vec<SnapshotId>, CaptureError> {
        let unneeded = unneeded(store, roots);
        let mut doomed: Vec<SnapshotId> = {
            let mut candidates = self
                .candidates
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let doomed = unneeded.intersection(&candidates).cloned().collect();
            *candidates = unneeded;
            doomed
        };
        // The store keeps what another names, so those on top go first.
        doomed.sort_by_key(|id| Reverse(store.get(id).map_or(0, |it| it.below().count())));
        let mut removed = Vec::new();
        for id in doomed {
            let is_gone = match store.get(&id) {
                Some(_) => store.remove(&id)?,
                None => store.remove_damaged(&id).map(|()| true)?,
            };
            if is_gone {
                removed.push(id);
            }
        }
        Ok(removed)
    }
}

fn unneeded(store: &CaptureStore, roots: &HashSet<SnapshotId>) -> HashSet<SnapshotId> {
    let all = store.all();
    let mut needed: HashSet<SnapshotId> = roots.clone();
    for manifest in &all {
        if manifest.is_snapshot() || roots.contains(&manifest.id) {
            needed.insert(manifest.id.clone());
            needed.extend(manifest.below().cloned());
        }
    }
    let hidden: Vec<SnapshotId> = {
        let state = store.state();
        if state.damaged.is_empty() {
            drop(state);
            let ids = all.iter().map(|manifest| manifest.id.clone());
            return ids.filter(|id| !needed.contains(id)).collect();
        }
        let hidden = state.damaged.iter().filter(|(_, it)| it.is_hidden);
        hidden.map(|(id, _)| id.clone()).collect()
    };
    tracing::warn!("a damaged capture keeps all others from being collected");
    let hidden = hidden.into_iter();
    hidden.filter(|id| !needed.contains(id)).collect()
}
