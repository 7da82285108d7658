//! One sandbox: one owner task, which alone changes its state.
//!
//! Requests come in through a bounded queue; the state goes out through a `watch` with a
//! generation that only grows. The bytes of execs and files never pass through the owner: callers
//! take the agent handle from the published state and talk to the guest themselves.
//!
//! ```text
//!   ensure ──> owner: create ──> serve ──(delete, expiry)──> teardown ──> gone
//!                       │           └──(engine died)──> failed ──(delete, expiry)──┘
//!                       └──(any step failed)──> teardown, and the caller is told why
//! ```
//!
//! `core::lifecycle` decides which changes are legal. Start reading at [`owner`].

pub(crate) mod create;
pub(crate) mod owner;
pub(crate) mod stages;

use std::sync::Arc;

use dayfly_core::expiry;
use dayfly_guest_client::AgentClient;
use dayfly_node_api::{NodeError, SandboxReport};
use dayfly_types::{Moment, SandboxId, SandboxState};
use tokio::sync::{mpsc, oneshot, watch};

/// What can be asked of an owner.
#[derive(Debug)]
pub(crate) enum Request {
    /// Answered once nothing of the sandbox is left.
    Delete { done: oneshot::Sender<()> },
}

/// What an owner shows.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) report: Arc<SandboxReport>,
    /// There while the guest answers.
    pub(crate) agent: Option<AgentClient>,
    /// Why the creation was refused, when it was.
    pub(crate) refusal: Option<NodeError>,
    /// When the node deletes it; the report counts down from here.
    pub(crate) expires: Option<Moment>,
}

/// How the rest of the node reaches one owner.
#[derive(Debug, Clone)]
pub(crate) struct SandboxHandle {
    pub(crate) id: SandboxId,
    pub(crate) requests: mpsc::Sender<Request>,
    pub(crate) published: watch::Receiver<Published>,
}

impl SandboxHandle {
    pub(crate) fn report(&self) -> Arc<SandboxReport> {
        Arc::clone(&self.published.borrow().report)
    }

    /// The report with the time left as of `now`.
    pub(crate) fn report_at(&self, now: Moment) -> SandboxReport {
        let published = self.published.borrow();
        let mut report = (*published.report).clone();
        report.expires_in_seconds = published
            .expires
            .map(|deadline| expiry::seconds_left(now, deadline));
        report
    }

    /// Waits until the creation has ended, well or not.
    pub(crate) async fn created(&self) -> Result<Arc<SandboxReport>, NodeError> {
        let mut published = self.published.clone();
        let seen = published
            .wait_for(|now| now.refusal.is_some() || now.report.state != SandboxState::Creating)
            .await;
        match seen {
            Ok(now) => match &now.refusal {
                Some(refusal) => Err(refusal.clone()),
                None => Ok(Arc::clone(&now.report)),
            },
            Err(_) => Err(NodeError::internal(
                "the sandbox's owner ended in the middle",
            )),
        }
    }
}
