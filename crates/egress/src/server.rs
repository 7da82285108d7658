//! The egress process's side of the conversation with the node.
//!
//! One node is connected at a time; a new connection replaces the old one. Without a node what is
//! open stays open, with the policies that it has.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

pub use crate::options::Options;
use crate::outlets::{Outlets, RefusedCall};
pub use crate::packet::PacketListener;
use crate::packet::{Packet, PacketSocket};
use crate::protocol::{EgressAnswer, EgressCall, EgressMessage, EgressRequest, PROTOCOL};
use crate::records::Outbox;

/// Answers that wait for the node to take them. Calls are answered in order, so that is one for
/// each call that it sent ahead.
const ANSWERS_MAX: usize = 64;
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop`. Then everything that is open ends.
///
/// # Cancel safety
/// Dropping the future ends the conversation; what is open ends with the runtime.
pub async fn serve(listener: PacketListener, options: Options, stop: CancellationToken) {
    let outbox = Arc::new(Outbox::default());
    let outlets = Arc::new(Mutex::new(Outlets::new(Arc::clone(&outbox), options)));
    let mut current: Option<Link> = None;
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, uid)) if is_trusted(uid) => {
                if let Some(link) = current.take() {
                    link.end().await;
                }
                current = Some(Link::start(socket, &outlets, &outbox));
            }
            Ok(_) => tracing::warn!("somebody else than the node dialled the control socket"),
            Err(error) => {
                tracing::warn!(%error, "cannot accept the node");
                sleep(PAUSE).await;
            }
        }
    }
    if let Some(link) = current {
        link.end().await;
    }
    outlets.lock().await.close_all().await;
}

/// The node is root, or whoever runs this process in a test.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// The connection of one node.
struct Link {
    stop: CancellationToken,
    tasks: [JoinHandle<()>; 2],
}

impl Link {
    fn start(socket: PacketSocket, outlets: &Arc<Mutex<Outlets>>, outbox: &Arc<Outbox>) -> Self {
        let stop = CancellationToken::new();
        let socket = Arc::new(socket);
        let (answers, waiting) = mpsc::channel(ANSWERS_MAX);
        let reader = read(Arc::clone(&socket), Arc::clone(outlets), answers);
        let writer = write(socket, Arc::clone(outbox), waiting);
        let run = |stop: &CancellationToken, what: &'static str, task: Task| {
            let stop = stop.clone();
            tokio::spawn(async move {
                if let Some(Err(error)) = stop.run_until_cancelled(task).await {
                    tracing::info!(%error, what, "the node's connection ended");
                }
                stop.cancel();
            })
        };
        let tasks = [
            run(&stop, "calls", Box::pin(reader)),
            run(&stop, "messages", Box::pin(writer)),
        ];
        Self { stop, tasks }
    }

    async fn end(self) {
        self.stop.cancel();
        for task in self.tasks {
            // It ends at the latest with the call that it is at.
            let _ = task.await;
        }
    }
}

type Task = std::pin::Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

async fn read(
    socket: Arc<PacketSocket>,
    outlets: Arc<Mutex<Outlets>>,
    answers: mpsc::Sender<EgressMessage>,
) -> io::Result<()> {
    while let Some(Packet { bytes, descriptors }) = socket.receive().await? {
        let EgressCall { id, request } = serde_json::from_slice(&bytes)?;
        // In a task of its own, so that a node that goes away leaves no call half done.
        let outlets = Arc::clone(&outlets);
        let answering = tokio::spawn(async move {
            let mut outlets = outlets.lock().await;
            answer(&mut outlets, request, descriptors).await
        });
        let answer = answering.await.map_err(io::Error::other)?;
        if answers
            .send(EgressMessage::Answer { id, answer })
            .await
            .is_err()
        {
            break;
        }
    }
    Ok(())
}

async fn write(
    socket: Arc<PacketSocket>,
    outbox: Arc<Outbox>,
    mut answers: mpsc::Receiver<EgressMessage>,
) -> io::Result<()> {
    loop {
        tokio::select! {
            biased;
            answer = answers.recv() => match answer {
                Some(answer) => socket.send(&serde_json::to_vec(&answer)?, &[]).await?,
                None => return Ok(()),
            },
            outgoing = outbox.next() => {
                if let Some(message) = outgoing.message() {
                    socket.send(&serde_json::to_vec(message)?, &[]).await?;
                }
                outgoing.sent();
            }
        }
    }
}

async fn answer(
    outlets: &mut Outlets,
    request: EgressRequest,
    descriptors: Vec<OwnedFd>,
) -> EgressAnswer {
    let done = match request {
        EgressRequest::Hello { protocol } if protocol != PROTOCOL => {
            return EgressAnswer::Refused {
                why: format!("this process speaks protocol {PROTOCOL}, not {protocol}"),
            };
        }
        EgressRequest::Hello { .. } => {
            return EgressAnswer::Hello {
                protocol: PROTOCOL,
                open: outlets.list(),
            };
        }
        EgressRequest::Open {
            lifecycle,
            epoch,
            policy,
        } => {
            tracing::debug!(sandbox_id = %lifecycle.sandbox, slot = lifecycle.slot, epoch, "open");
            outlets.open(lifecycle, epoch, policy, descriptors).await
        }
        EgressRequest::SetPolicy {
            lifecycle,
            epoch,
            policy,
        } => {
            tracing::debug!(sandbox_id = %lifecycle.sandbox, epoch, "set policy");
            outlets.set_policy(&lifecycle, epoch, policy).await
        }
        EgressRequest::Close { lifecycle } => {
            tracing::debug!(sandbox_id = %lifecycle.sandbox, slot = lifecycle.slot, "close");
            Ok(outlets.close(&lifecycle).await)
        }
    };
    match done {
        Ok(cut) => EgressAnswer::Done { cut },
        Err(refused) => EgressAnswer::Refused {
            why: explain(&refused),
        },
    }
}

fn explain(refused: &RefusedCall) -> String {
    match std::error::Error::source(refused) {
        Some(source) => format!("{refused}: {source}"),
        None => refused.to_string(),
    }
}
