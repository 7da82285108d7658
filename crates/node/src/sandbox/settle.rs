//! Making sure, before anything is captured, that every layer which the machine lies on is known.
//!
//! A disk layer that is sealed is part of the machine, whatever became of its capture. Three things
//! can be in doubt: a capture whose publication is still under way, a seal whose answer never came,
//! and a sealed layer that could not be published. Each is settled here or refuses what depends on
//! it; nothing is captured on top of a doubt.

use std::sync::Arc;

use dayfly_node_api::NodeError;
use dayfly_snapshots::capture::{CaptureError, CapturePurpose};
use dayfly_types::{ErrorCode, SnapshotId};

use super::capture::keep_layer;
use super::owner::Owner;
use crate::effects::Captures;
use crate::failure::{capture_error, node_error};

const WHAT: &str = "an earlier capture is not settled";

impl Owner {
    /// Settles everything.
    ///
    /// # Errors
    /// What is still in doubt; nothing may be captured then.
    pub(super) async fn settle(&mut self) -> Result<(), NodeError> {
        if let Some(mut publication) = self.publication.take() {
            // A publisher that is gone has said all that it will.
            let _ = publication.wait_for(|is_over| *is_over).await;
        }
        self.settle_sealing().await?;
        for (index, id) in self.sealed().iter().enumerate() {
            if self.parts.captures.get(id).is_none() {
                let kept = self.publish_layer(id, index).await;
                kept.map_err(|error| capture_error(WHAT, &error))?;
            }
        }
        Ok(())
    }

    fn sealed(&self) -> &[SnapshotId] {
        (self.record.phase.disk()).map_or(&[], |layers| &layers.sealed)
    }

    /// Finds out whether a seal whose answer was lost has happened: the engine says which file the
    /// guest writes to.
    pub(super) async fn settle_sealing(&mut self) -> Result<(), NodeError> {
        let (Some(layers), Some(vm)) = (self.record.phase.disk_mut(), self.vm.as_mut()) else {
            return Ok(());
        };
        let Some(sealing) = layers.sealing.clone() else {
            return Ok(());
        };
        let now = vm.writable_disk().await;
        let now = now.map_err(|error| node_error(WHAT, &error))?;
        let id = &sealing.capture;
        if now != sealing.layer {
            self.abandon(id).await;
            return self.sealing_is_settled().await;
        }
        if !layers.sealed.contains(id) {
            layers.sealed.push(id.clone());
            self.publish_now();
        }
        let from = self.slot().await?.run_directory.join(&sealing.sealed);
        // Looked for behind an attempt to take it that was given up and may still be under way.
        let take = move |captures: &Captures, id: &_| captures.take_if_there(id, &from);
        let taken = self.on_captures(id, take).await;
        taken.map_err(|error| capture_error(WHAT, &error))?;
        self.sealing_is_settled().await
    }

    async fn sealing_is_settled(&mut self) -> Result<(), NodeError> {
        if let Some(layers) = self.record.phase.disk_mut() {
            layers.sealing = None;
        }
        self.write_record().await
    }

    /// Refuses an id under which an earlier call sealed a layer and then failed.
    pub(super) fn check_unused(&self, id: &SnapshotId) -> Result<(), NodeError> {
        let published = self.parts.captures.get(id);
        let is_spent = self.sealed().contains(id)
            || published.is_some_and(|capture| capture.purpose == CapturePurpose::Layer);
        if !is_spent {
            return Ok(());
        }
        let text = format!("the capture {id} has failed; ask again under another id");
        Err(NodeError::new(ErrorCode::WrongState, text))
    }

    /// Keeps the disk layer of a capture that failed behind its seal.
    pub(super) async fn keep_layer_if_sealed(&self, id: &SnapshotId) {
        let Some(index) = self.sealed().iter().position(|sealed| sealed == id) else {
            return;
        };
        let is_in_doubt = (self.record.phase.disk()).is_some_and(|disk| disk.sealing.is_some());
        if self.parts.captures.get(id).is_some() || is_in_doubt {
            return;
        }
        if let Err(error) = self.publish_layer(id, index).await {
            // A later start tries again; until then the file lies where it is.
            let error = crate::error_chain(&error);
            tracing::warn!(capture = %id, error, "cannot publish a disk layer yet");
        }
    }

    /// Publishes the layer that the machine has sealed at this place. It is part of the machine,
    /// also when its capture could not be published.
    async fn publish_layer(&self, id: &SnapshotId, index: usize) -> Result<(), CaptureError> {
        let (parts, record, id) = (Arc::clone(&self.parts), self.record.clone(), id.clone());
        let below = self.sealed()[..index].to_vec();
        let keep = move || keep_layer(&parts, &record, &id, &below);
        self.disk.run(keep).await
    }
}
