//! The node's side of the conversation.
//!
//! A [`EgressClient`] is one connection. When it is over every call fails, and the node dials again: the
//! answer to the greeting says what is still open there.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dayfly_types::egress::EgressPolicy;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::packet::PacketSocket;
use crate::protocol::{
    EgressAnswer, EgressCall, EgressMessage, EgressRequest, OPEN_DESCRIPTORS, PACKET_BYTES_MAX,
    PROTOCOL, RunRecord, SandboxRun,
};
use crate::records::Outbox;

/// A call is answered by then: what it has to wait for is bounded by one second.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// What the process tells without being asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EgressEvent {
    /// Their sequence is 0; the node counts.
    Records(Vec<RunRecord>),
    /// So many records of a lifecycle are gone for good.
    Lost { lifecycle: SandboxRun, count: u64 },
}

/// What came with the greeting.
#[derive(Debug)]
pub struct Connected {
    pub client: EgressClient,
    pub events: Events,
    /// What is being served, with the epoch of each policy.
    pub open: Vec<(SandboxRun, u64)>,
}

/// What the process tells, up to a bound; beyond it the oldest go first and are counted. So whoever
/// takes nothing for a while does not hold up the answers to calls.
#[derive(Debug)]
pub struct Events {
    shared: Arc<Shared>,
}

impl Events {
    /// The next one. None when the connection is over and all that came has been taken.
    ///
    /// # Cancel safety
    /// No event is lost.
    pub async fn recv(&mut self) -> Option<EgressEvent> {
        tokio::select! {
            biased;
            waiting = self.shared.inbox.next() => match waiting.taken()? {
                EgressMessage::Records(records) => Some(EgressEvent::Records(records)),
                EgressMessage::Lost { lifecycle, count } => Some(EgressEvent::Lost { lifecycle, count }),
                EgressMessage::Answer { .. } => None,
            },
            () = self.shared.over.cancelled() => None,
        }
    }
}

/// Why the process could not be talked to.
#[derive(Debug, thiserror::Error)]
pub enum EgressConnectError {
    #[error("cannot dial the egress process at {path}")]
    Dial {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the egress process did not greet")]
    Greet(#[source] EgressCallError),
    #[error("the egress process speaks protocol {theirs} and this node {PROTOCOL}")]
    Protocol { theirs: u32 },
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum EgressCallError {
    #[error("the egress process refused: {why}")]
    Refused { why: String },
    #[error("the connection to the egress process is gone")]
    Gone,
    #[error("the egress process did not answer within {} s", ANSWER_LIMIT.as_secs())]
    TimedOut,
    #[error("the call does not fit in a packet of {PACKET_BYTES_MAX} bytes")]
    TooLarge,
    #[error("cannot send to the egress process")]
    Send(#[source] io::Error),
}

/// One connection to the egress process. Clones share it; the last one to go closes it.
#[derive(Debug, Clone)]
pub struct EgressClient {
    shared: Arc<Shared>,
    _guard: Arc<DropGuard>,
}

#[derive(Debug)]
struct Shared {
    socket: PacketSocket,
    calls: Mutex<Calls>,
    inbox: Outbox,
    over: CancellationToken,
}

#[derive(Debug, Default)]
struct Calls {
    next: u64,
    waiting: HashMap<u64, oneshot::Sender<EgressAnswer>>,
}

impl EgressClient {
    /// Dials the socket and greets.
    ///
    /// # Errors
    /// [`EgressConnectError`].
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn connect(path: &Path) -> Result<Connected, EgressConnectError> {
        let socket = PacketSocket::connect(path).map_err(|source| EgressConnectError::Dial {
            path: path.to_owned(),
            source,
        })?;
        let over = CancellationToken::new();
        let shared = Arc::new(Shared {
            socket,
            calls: Mutex::default(),
            inbox: Outbox::default(),
            over: over.clone(),
        });
        let events = Events {
            shared: Arc::clone(&shared),
        };
        let reading = Arc::clone(&shared);
        tokio::spawn(async move {
            let over = reading.over.clone();
            let read = over.run_until_cancelled(reading.read()).await;
            if let Some(Err(error)) = read {
                tracing::warn!(%error, "the egress process's connection ended");
            }
            over.cancel();
            // Whoever waits hears that there will be no answer.
            reading.calls().waiting.clear();
        });
        let client = Self {
            shared,
            _guard: Arc::new(over.drop_guard()),
        };
        let greeting = EgressRequest::Hello { protocol: PROTOCOL };
        let answer = client.call(greeting, &[]).await;
        match answer.map_err(EgressConnectError::Greet)? {
            EgressAnswer::Hello { protocol, open } if protocol == PROTOCOL => Ok(Connected {
                client,
                events,
                open,
            }),
            EgressAnswer::Hello { protocol, .. } => {
                Err(EgressConnectError::Protocol { theirs: protocol })
            }
            EgressAnswer::Done { .. } | EgressAnswer::Refused { .. } => {
                Err(EgressConnectError::Greet(EgressCallError::Gone))
            }
        }
    }

    /// Has a lifecycle served on sockets of its namespace: all TCP, questions by UDP, questions by
    /// TCP. Returns how many connections of the slot's former holder that ended.
    ///
    /// # Errors
    /// [`EgressCallError`]. After [`EgressCallError::Refused`] nothing has changed; after the others it may
    /// have, and the call may be repeated.
    ///
    /// # Cancel safety
    /// Dropping the future does not take the call back.
    pub async fn open(
        &self,
        lifecycle: SandboxRun,
        epoch: u64,
        policy: EgressPolicy,
        sockets: [BorrowedFd<'_>; OPEN_DESCRIPTORS],
    ) -> Result<u32, EgressCallError> {
        let request = EgressRequest::Open {
            lifecycle,
            epoch,
            policy,
        };
        self.change(request, &sockets).await
    }

    /// Puts a policy in force. Connections that it does not allow have ended when this returns;
    /// it says how many.
    ///
    /// # Errors
    /// As [`EgressClient::open`].
    ///
    /// # Cancel safety
    /// Dropping the future does not take the call back.
    pub async fn set_policy(
        &self,
        lifecycle: SandboxRun,
        epoch: u64,
        policy: EgressPolicy,
    ) -> Result<u32, EgressCallError> {
        let request = EgressRequest::SetPolicy {
            lifecycle,
            epoch,
            policy,
        };
        self.change(request, &[]).await
    }

    /// Ends everything of a lifecycle. One that is not open is no error.
    ///
    /// # Errors
    /// As [`EgressClient::open`].
    ///
    /// # Cancel safety
    /// Dropping the future does not take the call back.
    pub async fn close(&self, lifecycle: SandboxRun) -> Result<u32, EgressCallError> {
        self.change(EgressRequest::Close { lifecycle }, &[]).await
    }

    /// Resolves when the connection is over.
    pub async fn over(&self) {
        self.shared.over.cancelled().await;
    }

    async fn change(
        &self,
        request: EgressRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<u32, EgressCallError> {
        match self.call(request, descriptors).await? {
            EgressAnswer::Done { cut } => Ok(cut),
            EgressAnswer::Refused { why } => Err(EgressCallError::Refused { why }),
            EgressAnswer::Hello { .. } => Err(EgressCallError::Gone),
        }
    }

    async fn call(
        &self,
        request: EgressRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<EgressAnswer, EgressCallError> {
        let (id, answer) = self.shared.expect()?;
        let called = timeout(ANSWER_LIMIT, async {
            let packet = serde_json::to_vec(&EgressCall { id, request });
            let packet = packet.map_err(|error| EgressCallError::Send(error.into()))?;
            if packet.len() > PACKET_BYTES_MAX {
                return Err(EgressCallError::TooLarge);
            }
            let sent = self.shared.socket.send(&packet, descriptors).await;
            sent.map_err(EgressCallError::Send)?;
            answer.await.map_err(|_| EgressCallError::Gone)
        });
        let called = called.await.unwrap_or(Err(EgressCallError::TimedOut));
        self.shared.calls().waiting.remove(&id);
        called
    }
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect(&self) -> Result<(u64, oneshot::Receiver<EgressAnswer>), EgressCallError> {
        let (sender, receiver) = oneshot::channel();
        let mut calls = self.calls();
        // Looked at under the lock: the reader empties the list after it has said that it is over.
        if self.over.is_cancelled() {
            return Err(EgressCallError::Gone);
        }
        let id = calls.next;
        calls.next += 1;
        calls.waiting.insert(id, sender);
        Ok((id, receiver))
    }

    async fn read(&self) -> io::Result<()> {
        while let Some(packet) = self.socket.receive().await? {
            match serde_json::from_slice(&packet.bytes)? {
                EgressMessage::Answer { id, answer } => {
                    let waiting = self.calls().waiting.remove(&id);
                    // Whoever asked may have gone.
                    let _ = waiting.map(|sender| sender.send(answer));
                }
                EgressMessage::Records(records) => {
                    for RunRecord { lifecycle, record } in records {
                        self.inbox.push(&lifecycle, record);
                    }
                }
                EgressMessage::Lost { lifecycle, count } => self.inbox.count_lost(lifecycle, count),
            }
        }
        Ok(())
    }
}
