//! The store of captures with a point around each effect.

use std::collections::HashSet;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use dayfly_snapshots::CaptureStore;
use dayfly_snapshots::capture::{
    CaptureDraft, CaptureError, CaptureManifest, Collector, FlattenError, file_names,
};
use dayfly_types::SnapshotId;

use super::{Effect, Effects};

/// Captures that are observed. Questions go to the store itself; what changes something is here,
/// under the same name.
#[derive(Debug)]
pub(crate) struct Captures {
    store: Arc<CaptureStore>,
    effects: Effects,
}

impl Deref for Captures {
    type Target = CaptureStore;

    fn deref(&self) -> &CaptureStore {
        &self.store
    }
}

impl Captures {
    pub(crate) fn new(store: Arc<CaptureStore>, effects: Effects) -> Self {
        Self { store, effects }
    }

    pub(crate) fn store(&self) -> Arc<CaptureStore> {
        Arc::clone(&self.store)
    }

    pub(crate) fn begin(&self, id: &SnapshotId) -> Result<(), CaptureError> {
        self.effects
            .around(Effect::CaptureBegin, || self.store.begin(id).map(drop))
    }

    pub(crate) fn take(
        &self,
        id: &SnapshotId,
        from: &Path,
        name: &str,
    ) -> Result<(), CaptureError> {
        self.effects
            .around(Effect::CaptureTake, || self.store.take(id, from, name))
    }

    /// Takes the disk layer that a machine has sealed. Answers its size.
    pub(crate) fn take_layer(&self, id: &SnapshotId, from: &Path) -> Result<u64, CaptureError> {
        let bytes = std::fs::metadata(from).map_or(0, |metadata| metadata.len());
        self.take(id, from, file_names::DISK_LAYER)?;
        Ok(bytes)
    }

    /// The same for one that an earlier attempt may have taken.
    pub(crate) fn take_if_there(&self, id: &SnapshotId, from: &Path) -> Result<(), CaptureError> {
        if from.exists() {
            self.take(id, from, file_names::DISK_LAYER)?;
        }
        Ok(())
    }

    /// Gives the capture a second name of a disk that its machine still has.
    pub(crate) fn link_disk(&self, id: &SnapshotId, from: &Path) -> io::Result<u64> {
        let to = self.store.unfinished(id).join(file_names::DISK_LAYER);
        self.effects.around(Effect::CaptureLink, || {
            dayfly_host::files::link_regular(from, &to)
        })
    }

    /// Lets engines of other users read the files of an unfinished capture, and nobody write them.
    pub(crate) fn hand_out(&self, id: &SnapshotId) -> Result<(), CaptureError> {
        self.effects
            .around(Effect::CaptureTake, || self.store.hand_out(id))
    }

    /// Drops what an unfinished capture has beside its disk.
    pub(crate) fn keep_disk_only(&self, id: &SnapshotId) {
        let directory = self.store.unfinished(id);
        self.effects.around(Effect::CaptureTake, || {
            for name in [file_names::MEMORY_LAYER, file_names::DEVICE_STATE] {
                // What is not there need not go; what cannot go is only a waste.
                let _ = std::fs::remove_file(directory.join(name));
            }
        });
    }

    pub(crate) fn publish(
        &self,
        draft: CaptureDraft,
    ) -> Result<Arc<CaptureManifest>, CaptureError> {
        self.effects
            .around(Effect::CapturePublish, || self.store.publish(draft))
    }

    /// As [`Captures::publish`]; takes its name only after `wait`.
    pub(crate) fn publish_when(
        &self,
        draft: CaptureDraft,
        wait: impl FnOnce(),
    ) -> Result<Arc<CaptureManifest>, CaptureError> {
        self.effects.around(Effect::CapturePublish, || {
            self.store.publish_when(draft, wait)
        })
    }

    pub(crate) fn abandon(&self, id: &SnapshotId) -> Result<(), CaptureError> {
        self.effects
            .around(Effect::CaptureAbandon, || self.store.abandon(id))
    }

    pub(crate) fn hide(&self, id: &SnapshotId) -> Result<(), CaptureError> {
        self.effects
            .around(Effect::CaptureHide, || self.store.hide(id))
    }

    pub(crate) fn sweep(&self, needed: impl Fn(&SnapshotId) -> bool) -> io::Result<usize> {
        self.effects
            .around(Effect::CaptureSweep, || self.store.sweep(needed))
    }

    pub(crate) fn flatten(&self, id: &SnapshotId) -> Result<bool, FlattenError> {
        self.effects
            .around(Effect::CaptureFlatten, || self.store.flatten(id))
    }

    pub(crate) fn drop_superseded(&self, id: &SnapshotId) -> Result<usize, CaptureError> {
        self.effects
            .around(Effect::CaptureDrop, || self.store.drop_superseded(id))
    }

    pub(crate) fn collect(
        &self,
        collector: &Collector,
        roots: &HashSet<SnapshotId>,
    ) -> Result<Vec<SnapshotId>, CaptureError> {
        self.effects.around(Effect::CaptureCollect, || {
            collector.pass(&self.store, roots)
        })
    }
}
