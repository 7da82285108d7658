//! Connections from outside to services in sandboxes, through the guest's agent.
//!
//! Nothing of the sandbox's network is open for it: no address of the host leads inside.

use std::time::Duration;

use bytes::BytesMut;
use dayfly_guest_client::{GuestSocket, GuestSocketWriter, StreamError};
use dayfly_node_api::{NodeError, NodeListeners, PortStream, WaitPort};
use dayfly_types::port::Listener;
use dayfly_types::{ErrorCode, SandboxId};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;

use crate::calls::{agent_for_visitor, call_failed};
use crate::node::Node;
use crate::port_wait;
use crate::sandbox::SandboxHandle;

/// What waits between a caller and the guest's own window, each way.
const BUFFER_BYTES: usize = 64 << 10;
/// How long a service may be silent after its caller has said all.
const LAST_ANSWER_LIMIT: Duration = Duration::from_secs(30);

impl NodeListeners for Node {
    async fn ports(&self, id: &SandboxId) -> Result<Vec<Listener>, NodeError> {
        let handle = self.find(id)?;
        if handle.is_asleep() {
            return Ok(Vec::new());
        }
        let agent = agent_for_visitor(&handle).await?;
        agent.list_ports().await.map_err(call_failed)
    }

    async fn wait_port(&self, id: &SandboxId, request: WaitPort) -> Result<Listener, NodeError> {
        port_wait::wait(&self.find(id)?, request).await
    }
}

/// Connects to a TCP port of the sandbox, and wakes it for that.
pub(crate) async fn connect(handle: &SandboxHandle, port: u16) -> Result<PortStream, NodeError> {
    // Before the look whether it sleeps: from here on it does not for others.
    let visit = handle.activity.visit();
    let agent = agent_for_visitor(handle).await?;
    let socket = agent.connect_port(port).await.map_err(|error| {
        let refusal = call_failed(error);
        if refusal.code != ErrorCode::NotFound {
            return refusal;
        }
        let text = format!("nothing listens on port {port} in the sandbox");
        NodeError::new(ErrorCode::NotFound, text)
    })?;
    let (outside, inside) = tokio::io::duplex(BUFFER_BYTES);
    tokio::spawn(async move {
        join(socket, inside).await;
        drop(visit);
    });
    Ok(Box::new(outside))
}

/// Moves bytes until both directions have ended or one has broken. The two do not wait for each
/// other: who sends much and reads late must not stop the service from speaking.
async fn join(socket: GuestSocket, stream: DuplexStream) {
    let (from_caller, to_caller) = tokio::io::split(stream);
    let left = CancellationToken::new();
    let inward = send_in(from_caller, socket.writer(), &left);
    let _ = tokio::try_join!(inward, send_out(socket, to_caller, &left));
}

/// A caller that said its last word may wait for an answer, but one that is gone must not leave a
/// connection behind in a guest that has few.
async fn quiet_after(left: &CancellationToken) {
    left.cancelled().await;
    tokio::time::sleep(LAST_ANSWER_LIMIT).await;
}

async fn send_in(
    mut from_caller: ReadHalf<DuplexStream>,
    service: GuestSocketWriter,
    left: &CancellationToken,
) -> Result<(), StreamError> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(BUFFER_BYTES);
        match from_caller.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => {
                left.cancel();
                return service.end().await;
            }
            Ok(_) => service.send(buffer.split().freeze()).await?,
        }
    }
}

async fn send_out(
    mut socket: GuestSocket,
    mut to_caller: WriteHalf<DuplexStream>,
    left: &CancellationToken,
) -> Result<(), StreamError> {
    loop {
        let next = tokio::select! {
            next = socket.next() => next?,
            () = quiet_after(left) => return Err(StreamError::Ended),
        };
        let Some(bytes) = next else {
            break;
        };
        // A caller that left ends the connection.
        let written = to_caller.write_all(&bytes).await;
        written.map_err(|_| StreamError::Ended)?;
    }
    to_caller.shutdown().await.map_err(|_| StreamError::Ended)
}
