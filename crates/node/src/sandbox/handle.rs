//! How the rest of the node reaches one owner.

use std::sync::Arc;

use dayfly_core::expiry;
use dayfly_guest_client::AgentClient;
use dayfly_host::net;
use dayfly_host::process::{self, ProcessIdentity};
use dayfly_node_api::{LifecycleReport, NodeError, ResourceUse, SandboxReport};
use dayfly_types::{ErrorCode, Moment, SandboxId, SandboxState, SnapshotId};
use dayfly_vmm::EngineProcess;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::{Activity, Reply, Request};
use crate::capacity::{Ledger, PromiseNumber};

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
    /// Its engine, while there is one.
    pub(crate) process: Option<EngineProcess>,
    /// What its disk was promised, while there is an engine.
    pub(crate) promise: Option<PromiseNumber>,
    /// Captures that must stay for it.
    pub(crate) captures: Vec<SnapshotId>,
    /// How often it began to sleep for others since this process knows it.
    pub(crate) sleeps_for_others: u64,
    /// It sleeps for others with a command under way.
    pub(crate) is_restless: bool,
}

/// A handle. Clones reach the same owner.
#[derive(Debug, Clone)]
pub(crate) struct SandboxHandle {
    pub(crate) id: SandboxId,
    pub(crate) requests: mpsc::Sender<Request>,
    pub(crate) published: watch::Receiver<Published>,
    /// Cuts short whatever the owner is busy with.
    pub(crate) doomed: CancellationToken,
    pub(crate) activity: Arc<Activity>,
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

    /// What it costs the host, while its engine runs. Blocks.
    pub(crate) fn load(&self, ledger: &Ledger) -> Option<ResourceUse> {
        // Taken out first: whoever publishes must not wait for files.
        let (engine, promise) = {
            let published = self.published.borrow();
            (published.process?, published.promise)
        };
        let identity = ProcessIdentity {
            pid: engine.pid,
            start_time_ticks: engine.start_time_ticks,
        };
        let memory_bytes = process::own_memory_bytes(engine.pid).ok()?;
        let traffic = net::guest_traffic(engine.pid).ok()?;
        // Last, because it also says that all of this was about the same process.
        let cpu = identity.cpu_time().ok()?;
        Some(ResourceUse {
            id: self.id.clone(),
            cpu_micros: u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX),
            memory_bytes,
            disk_bytes: promise.map_or(0, |promise| ledger.used_mib(promise) << 20),
            network_in_bytes: traffic.received_bytes,
            network_out_bytes: traffic.sent_bytes,
            machine: format!("{}.{}", engine.pid, engine.start_time_ticks),
        })
    }

    pub(crate) fn lifecycle_at(&self, now: Moment) -> LifecycleReport {
        let report = self.report_at(now);
        LifecycleReport {
            lifecycle: report.lifecycle,
            expires_in_seconds: report.expires_in_seconds,
            idle_for_seconds: self.activity.idle_for(now).as_secs(),
        }
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

    /// Asks the owner and waits for its answer.
    pub(crate) async fn ask<T>(
        &self,
        request: impl FnOnce(Reply<T>) -> Request,
    ) -> Result<T, NodeError> {
        let gone = || NodeError::not_found(format!("no sandbox {}", self.id));
        let (reply, answer) = oneshot::channel();
        let sent = self.requests.send(request(reply)).await;
        sent.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Wakes it if it sleeps. Many callers at once wake it once.
    pub(crate) async fn wake_if_asleep(&self) -> Result<(), NodeError> {
        if self.is_asleep() {
            self.ask(Request::Wake).await?;
        }
        Ok(())
    }

    pub(crate) fn is_asleep(&self) -> bool {
        matches!(
            self.report().state,
            SandboxState::Hibernating | SandboxState::Hibernated | SandboxState::Waking
        )
    }
}

/// The refusal of a call that this state does not allow.
pub(crate) fn wrong_state(state: SandboxState) -> NodeError {
    let hint = if state == SandboxState::Paused {
        "; resume it first"
    } else if state == SandboxState::Failed {
        "; it can only be deleted"
    } else {
        ""
    };
    let text = format!("the sandbox is {}{hint}", state.as_str());
    NodeError::new(ErrorCode::WrongState, text)
}
