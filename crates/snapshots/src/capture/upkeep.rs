//! Which captures should be flattened, and what a merge leaves to be dropped.
//!
//! A node's background loop asks here. This file must not know how a merge is done.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, TryLockError};

use dayfly_host::files::remove_tree;
use dayfly_types::SnapshotId;
use dayfly_types::limits::SNAPSHOT_LAYERS_MAX;

use super::error::{CaptureError, file_error};
use super::file_names;
use super::manifest::{CaptureManifest, CapturePurpose};
use super::store::{CaptureStore, State};

impl CaptureStore {
    /// Captures that should be flattened, those with the shortest chains first: what they become
    /// serves those that lie on them. These are the ones whose chain is longer than half of what is
    /// allowed, and those that lie on a deleted capture, whose bytes would come back.
    ///
    /// Left out are deleted captures and layers alone, which nobody restores; those that could not
    /// be flattened and never can; and a fork's source on a deleted capture: its children link the
    /// files of both for as long as it is kept, so no byte would come back.
    #[must_use]
    pub fn needs_flatten(&self) -> Vec<SnapshotId> {
        let state = self.state();
        let mut found: Vec<&Arc<CaptureManifest>> = state
            .known
            .values()
            .map(|known| &known.manifest)
            .filter(|manifest| should_flatten(&state, manifest))
            .collect();
        found.sort_by_key(|manifest| manifest.below().count());
        found
            .into_iter()
            .map(|manifest| manifest.id.clone())
            .collect()
    }

    /// Captures that have superseded files.
    #[must_use]
    pub fn superseded(&self) -> Vec<SnapshotId> {
        self.state().superseded.iter().cloned().collect()
    }

    /// Removes the files of a capture that its manifest does not name, and answers how many these
    /// were. Call it some seconds after [`CaptureStore::flatten`], so that no restore that was told
    /// their paths is still about to link them. While a merge runs nothing happens. An absent
    /// capture is a success.
    ///
    /// # Errors
    /// [`CaptureError::File`].
    pub fn drop_superseded(&self, id: &SnapshotId) -> Result<usize, CaptureError> {
        let _no_merge = match self.flattening.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poison)) => poison.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(0),
        };
        // The half-written text of a new manifest is not named either.
        let _alone = self.changing();
        let removed = match self.get(id) {
            Some(manifest) => self.drop_unnamed(&manifest)?,
            None => 0,
        };
        self.state().superseded.remove(id);
        Ok(removed)
    }

    pub(super) fn drop_unnamed(&self, manifest: &CaptureManifest) -> Result<usize, CaptureError> {
        let directory = self.path(&manifest.id);
        let failed = |source| file_error(&directory, source);
        let named: BTreeSet<&str> = manifest
            .files
            .iter()
            .map(|entry| entry.name.as_str())
            .chain([file_names::MANIFEST])
            .collect();
        let mut removed = 0;
        for entry in std::fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if name.to_str().is_some_and(|name| named.contains(name)) {
                continue;
            }
            remove_tree(&entry.path()).map_err(|error| failed(io::Error::other(error)))?;
            removed += 1;
        }
        Ok(removed)
    }
}

fn should_flatten(state: &State, manifest: &CaptureManifest) -> bool {
    let (memory, disks) = (&manifest.memory_below, &manifest.disk_below);
    let is_wanted = !manifest.deleted
        && match manifest.purpose {
            CapturePurpose::Snapshot | CapturePurpose::Hibernation => {
                has_reason(state, memory, disks)
            }
            CapturePurpose::Fork => is_long(memory) || is_long(disks),
            CapturePurpose::Layer => false,
        };
    is_wanted && is_possible(state, manifest)
}

/// Whether all that has to be read is there.
fn is_possible(state: &State, manifest: &CaptureManifest) -> bool {
    let mut needed = state.uncovered_memory(&manifest.memory_below);
    needed.extend(state.uncovered_disks(&manifest.disk_below));
    let is_there = needed.iter().all(|id| state.known.contains_key(id));
    is_there && !state.given_up.contains(&manifest.id)
}

/// Whether a capture on these should be flattened.
pub(super) fn has_reason(state: &State, memory: &[SnapshotId], disks: &[SnapshotId]) -> bool {
    let is_deleted = |id: &SnapshotId| {
        let known = state.known.get(id);
        known.is_some_and(|known| known.manifest.deleted)
    };
    is_long(memory) || is_long(disks) || memory.iter().chain(disks).any(is_deleted)
}

/// Whether a capture on these is one of a long chain.
fn is_long(below: &[SnapshotId]) -> bool {
    below.len() + 1 > SNAPSHOT_LAYERS_MAX / 2
}
