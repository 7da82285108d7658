//! Who is inside: how many at once, and when they must leave.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use dayfly_types::SandboxId;
use tokio::sync::broadcast;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use super::error::GatewayError;
use crate::admission::limit::TooMany;
use crate::tenancy::key_ends::KeyEnd;

/// Revocations of one sandbox that a visitor has not looked at yet.
const REVOCATIONS_MAX: usize = 64;

/// The visitors of all sandboxes.
#[derive(Debug, Default)]
pub(super) struct ProxiedConnections {
    sandboxes: Mutex<HashMap<SandboxId, SandboxConnections>>,
}

#[derive(Debug)]
struct SandboxConnections {
    /// Who holds a [`PendingConnection`]. This is there for as long as somebody does.
    waiting: usize,
    /// Who was let in.
    inside: usize,
    revoked: broadcast::Sender<Arc<str>>,
}

/// A visitor at the door: not let in yet, but told of every link that is revoked from now on. So a
/// link that is revoked while it is being looked up still cuts who came by it.
#[derive(Debug)]
pub(super) struct PendingConnection {
    connections: Arc<ProxiedConnections>,
    sandbox: SandboxId,
    revoked: broadcast::Receiver<Arc<str>>,
    is_inside: bool,
}

/// By what a visitor came, which must not outlast it.
#[derive(Debug, Clone)]
pub(super) enum Grant {
    Key(KeyEnd),
    Link(LinkGrant),
}

/// The link by which a visitor came.
#[derive(Debug, Clone)]
pub(super) struct LinkGrant {
    pub(super) link: Arc<str>,
    pub(super) expires_in: Duration,
}

/// What ends a visit.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    pub(super) connections_max: usize,
    pub(super) idle_max: Duration,
}

/// Why a visit was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The link or the key was revoked or has expired.
    LinkEnded,
    Idle,
    Stopping,
}

#[derive(Debug, Default)]
struct Ending {
    signal: CancellationToken,
    reason: OnceLock<Cut>,
}

/// A visitor inside. Clones are one visit, which is over when the last of them is dropped.
#[derive(Debug, Clone)]
pub(super) struct ProxiedConnection {
    ending: Arc<Ending>,
    activity: Arc<Activity>,
    idle_max: Duration,
    _over: Arc<DropGuard>,
}

/// When a byte passed last.
#[derive(Debug)]
pub(super) struct Activity {
    since: Instant,
    last_ms: AtomicU64,
}

impl ProxiedConnections {
    // Every change below leaves the map whole, so a panic elsewhere does not spoil it.
    fn sandboxes(&self) -> MutexGuard<'_, HashMap<SandboxId, SandboxConnections>> {
        self.sandboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn pending(self: &Arc<Self>, sandbox: &SandboxId) -> PendingConnection {
        let mut sandboxes = self.sandboxes();
        let sandbox_connections =
            sandboxes
                .entry(sandbox.clone())
                .or_insert_with(|| SandboxConnections {
                    waiting: 0,
                    inside: 0,
                    revoked: broadcast::channel(REVOCATIONS_MAX).0,
                });
        sandbox_connections.waiting += 1;
        PendingConnection {
            connections: Arc::clone(self),
            sandbox: sandbox.clone(),
            revoked: sandbox_connections.revoked.subscribe(),
            is_inside: false,
        }
    }

    /// Cuts everybody who came by a link. The link must be gone from the database already.
    pub(super) fn revoke(&self, sandbox: &SandboxId, link: &str) {
        if let Some(sandbox_connections) = self.sandboxes().get(sandbox) {
            // Nobody may be listening just now.
            let _ = sandbox_connections.revoked.send(Arc::from(link));
        }
    }
}

impl PendingConnection {
    /// Lets the visitor in, for as long as `grant` lasts.
    ///
    /// # Errors
    /// [`TooMany`].
    pub(super) fn enter(
        mut self,
        grant: Grant,
        limits: ConnectionLimits,
        stop: CancellationToken,
    ) -> Result<ProxiedConnection, TooMany> {
        if let Some(sandbox_connections) = self.connections.sandboxes().get_mut(&self.sandbox) {
            if sandbox_connections.inside >= limits.connections_max {
                let what = "connections to one sandbox";
                return Err(TooMany { what });
            }
            sandbox_connections.inside += 1;
        }
        self.is_inside = true;
        let ending = Arc::<Ending>::default();
        let activity = Arc::new(Activity::new());
        let over = CancellationToken::new();
        let connection = ProxiedConnection {
            ending: Arc::clone(&ending),
            activity: Arc::clone(&activity),
            idle_max: limits.idle_max,
            _over: Arc::new(over.clone().drop_guard()),
        };
        // Ends with the connection, whose drop it waits for.
        tokio::spawn(async move {
            let reason = tokio::select! {
                () = over.cancelled() => return,
                () = stop.cancelled() => Cut::Stopping,
                () = grant_ended(&mut self.revoked, grant) => Cut::LinkEnded,
                () = activity.idle(limits.idle_max) => Cut::Idle,
            };
            let _ = ending.reason.set(reason);
            ending.signal.cancel();
            // The place is free when the visitor is gone, not when it is told to go.
            over.cancelled().await;
        });
        Ok(connection)
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        let mut sandboxes = self.connections.sandboxes();
        let Some(sandbox_connections) = sandboxes.get_mut(&self.sandbox) else {
            return;
        };
        sandbox_connections.waiting -= 1;
        sandbox_connections.inside -= usize::from(self.is_inside);
        if sandbox_connections.waiting == 0 {
            sandboxes.remove(&self.sandbox);
        }
    }
}

async fn grant_ended(revoked: &mut broadcast::Receiver<Arc<str>>, grant: Grant) {
    let grant = match grant {
        Grant::Key(end) => return end.reached().await,
        Grant::Link(grant) => grant,
    };
    let expired = tokio::time::sleep(grant.expires_in);
    tokio::pin!(expired);
    loop {
        let news = tokio::select! {
            () = &mut expired => return,
            news = revoked.recv() => news,
        };
        match news {
            Ok(link) if link != grant.link => {}
            // Having missed some, it may have missed its own.
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return,
            // The sender outlives every receiver.
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

impl ProxiedConnection {
    /// Waits until the visitor must leave.
    pub(super) fn cut(&self) -> WaitForCancellationFutureOwned {
        self.ending.signal.clone().cancelled_owned()
    }

    /// Why it was cut, as an answer; `None` when it was not.
    pub(super) fn refusal(&self) -> Option<GatewayError> {
        let limit = self.idle_max;
        self.ending.reason.get().map(|reason| match reason {
            Cut::LinkEnded => GatewayError::Closed,
            Cut::Idle => GatewayError::Idle { limit },
            Cut::Stopping => GatewayError::Stopping,
        })
    }

    pub(super) fn activity(&self) -> Arc<Activity> {
        Arc::clone(&self.activity)
    }
}

impl Activity {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            last_ms: AtomicU64::new(0),
        }
    }

    /// A byte passed.
    pub(super) fn note(&self) {
        let milliseconds = self.since.elapsed().as_millis();
        let milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
        self.last_ms.store(milliseconds, Ordering::Relaxed);
    }

    /// Waits until nothing has passed for this long.
    async fn idle(&self, limit: Duration) {
        loop {
            let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            let deadline = self.since + last + limit;
            if Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    }
}
