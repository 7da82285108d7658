//! Following a command over a restart of its node.
//!
//! The command lives in its guest and its output in the guest's log, so a node process that dies
//! costs a reader nothing: it asks the next one for the bytes behind those that it has.

use std::sync::Arc;
use std::time::Duration;

use dayfly_node_api::{AttachExec, ExecEvents, NodeApi, NodeError};
use dayfly_types::exec::ReadOffsets;
use dayfly_types::{Backoff, ErrorCode, ExecId, SandboxId};
use futures::StreamExt;
use tokio::time::Instant;

/// How long a node may be away before its readers are told.
const PATIENCE: Duration = Duration::from_secs(30);
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// A command and how far it was read.
#[derive(Debug, Clone)]
pub struct Position {
    pub sandbox: SandboxId,
    pub exec: ExecId,
    pub offsets: ReadOffsets,
}

impl Position {
    /// A command that has just been started.
    #[must_use]
    pub const fn start(sandbox: SandboxId, exec: ExecId) -> Self {
        Self {
            sandbox,
            exec,
            offsets: ReadOffsets::BEGINNING,
        }
    }

    fn attach(&self) -> AttachExec {
        AttachExec {
            exec: self.exec.clone(),
            stdout_offset: self.offsets.stdout,
            stderr_offset: self.offsets.stderr,
        }
    }
}

/// The same events, without an error for a node that comes back in time.
#[must_use]
pub fn follow(node: Arc<dyn NodeApi>, position: Position, events: ExecEvents) -> ExecEvents {
    let start = Some((node, position, events));
    futures::stream::unfold(start, |state| async move {
        let (node, mut position, mut events) = state?;
        loop {
            match events.next().await? {
                Ok(event) => {
                    position.offsets.advance(&event);
                    return Some((Ok(event), Some((node, position, events))));
                }
                Err(error) if error.code == ErrorCode::NodeUnavailable => {
                    match attach_again(node.as_ref(), &position).await {
                        Some(again) => events = again,
                        None => return Some((Err(error), None)),
                    }
                }
                Err(error) => return Some((Err(error), None)),
            }
        }
    })
    .boxed()
}

/// Asks until the node is back, or for as long as there is patience.
async fn attach_again(node: &dyn NodeApi, position: &Position) -> Option<ExecEvents> {
    let end = Instant::now() + PATIENCE;
    let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MAX);
    loop {
        match node.attach_exec(&position.sandbox, position.attach()).await {
            Ok((_, events)) => return Some(events),
            Err(error) if may_pass(&error) && Instant::now() + backoff.peek() < end => {
                tokio::time::sleep(backoff.pause()).await;
            }
            Err(error) => {
                tracing::debug!(%error, "cannot go on reading a command");
                return None;
            }
        }
    }
}

/// A node that has just started may not know its sandboxes or their guests yet.
fn may_pass(error: &NodeError) -> bool {
    matches!(
        error.code,
        ErrorCode::NodeUnavailable | ErrorCode::GuestUnavailable
    )
}
