//! The capture under a fork, from which children can be made while it is still being made durable.
//!
//! The files of a capture are complete when the source goes on; what follows is hashing and
//! syncing. Children that die with the host anyway need not wait for that. The capture takes its
//! final name only after the first of them have their links, because a name that changes in the
//! middle would be a name that is not found.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use dayfly_node_api::NodeError;
use dayfly_snapshots::capture::{CaptureDraft, CaptureManifest, StackedFiles};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::CaptureWish;
use super::capture::{Drafted, keep_layer, with_total_time};
use super::owner::Owner;
use crate::effects::Captures;
use crate::failure::{capture_error, node_error};

const WHAT: &str = "the sandbox could not be forked";
/// How long the first children may keep a capture from its name.
const FIRST_CHILDREN_LIMIT: Duration = Duration::from_secs(60);

/// What children are made from.
#[derive(Debug)]
pub(crate) enum ForkSource {
    /// By an earlier call of the same id.
    Published(Arc<CaptureManifest>),
    Early(Box<EarlyCapture>),
}

/// A capture whose files are complete and not yet durable.
#[derive(Debug)]
pub(crate) struct EarlyCapture {
    pub(crate) draft: CaptureDraft,
    pub(crate) files: StackedFiles,
    first_children: SyncSender<()>,
    publishing: JoinHandle<Result<Arc<CaptureManifest>, NodeError>>,
}

impl EarlyCapture {
    /// The first children have their files: the capture may take its name. Waits until it has.
    pub(crate) async fn publish(self) -> Result<Arc<CaptureManifest>, NodeError> {
        // A publisher that has failed already does not listen.
        let _ = self.first_children.try_send(());
        match self.publishing.await {
            Ok(published) => published,
            Err(error) => Err(node_error(WHAT, &error)),
        }
    }
}

impl Owner {
    /// Captures the sandbox for a fork. The source runs again when this answers.
    pub(super) async fn capture_for_fork(
        &mut self,
        wish: &CaptureWish,
    ) -> Result<ForkSource, NodeError> {
        let start = Instant::now();
        let _pin = self.parts.pins.pin(&wish.id);
        if let Some(published) = self.settled_capture(&wish.id).await? {
            return Ok(ForkSource::Published(published));
        }
        let early = self.take_early(wish, start).await;
        if early.is_err() {
            self.keep_layer_if_sealed(&wish.id).await;
        }
        early
    }

    async fn take_early(
        &mut self,
        wish: &CaptureWish,
        start: Instant,
    ) -> Result<ForkSource, NodeError> {
        let taken = self.take_capture(wish).await?;
        let Drafted {
            draft,
            sealed,
            room,
        } = self.draft(wish, taken, start)?;
        let early = draft.clone();
        let hand_out = move |captures: &Captures, id: &_| {
            captures.hand_out(id)?;
            captures.stack_unfinished(&early)
        };
        let files = self.on_captures(&wish.id, hand_out).await;
        let files = files.map_err(|error| capture_error(WHAT, &error))?;
        let (first_children, have_links) = sync_channel(1);
        let (is_over, publication) = watch::channel(false);
        self.publication = Some(publication);
        let (parts, record) = (Arc::clone(&self.parts), self.record.clone());
        let unpublished = draft.clone();
        let publishing = tokio::task::spawn_blocking(move || {
            let id = unpublished.id.clone();
            // Nobody at the other end means that nobody makes children.
            let mut durable = None;
            let wait = || {
                durable = Some(start.elapsed());
                let _ = have_links.recv_timeout(FIRST_CHILDREN_LIMIT);
            };
            let published = parts.captures.publish_when(unpublished, wait);
            drop(room);
            // Waiting for children is not part of what the capture took.
            let took = durable.unwrap_or_else(|| start.elapsed());
            if published.is_err()
                && let Err(error) = keep_layer(&parts, &record, &id, &sealed)
            {
                let error = crate::error_chain(&error);
                tracing::warn!(capture = %id, error, "cannot publish a disk layer yet");
            }
            is_over.send_replace(true);
            published
                .map(|manifest| with_total_time(&manifest, took))
                .map_err(|error| capture_error(WHAT, &error))
        });
        Ok(ForkSource::Early(Box::new(EarlyCapture {
            draft,
            files,
            first_children,
            publishing,
        })))
    }
}
