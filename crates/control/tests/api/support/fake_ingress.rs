//! What listens in the sandboxes of the node in memory: real servers of the test's own process.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use dayfly_node_api::{NodeError, NodeListeners, PortStream, WaitPort};
use dayfly_types::port::Listener;
use dayfly_types::{ErrorCode, SandboxId};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::fake_node::FakeNode;

#[derive(Debug, Default)]
pub(crate) struct FakeIngress {
    services: BTreeMap<(SandboxId, u16), SocketAddr>,
    /// Calls about ports, of any kind.
    calls: u64,
    /// Everything that services were sent.
    received: Arc<Mutex<Vec<u8>>>,
    is_deaf: bool,
    waits: Vec<WaitPort>,
    changed: Arc<Notify>,
}

impl FakeNode {
    /// Lets a server be what listens on a port of a sandbox.
    pub(crate) fn listen(&self, sandbox: &str, port: u16, service: SocketAddr) {
        let sandbox = SandboxId::parse(sandbox).unwrap();
        self.with(|inner| inner.ingress.services.insert((sandbox, port), service));
        self.look_again();
    }

    /// Lets everybody who waits for a port look again.
    pub(crate) fn look_again(&self) {
        self.with(|inner| inner.ingress.changed.notify_waiters());
    }

    /// The waits for ports that were asked for.
    pub(crate) fn port_waits(&self) -> Vec<WaitPort> {
        self.with(|inner| inner.ingress.waits.clone())
    }

    /// Lets no connection come up from now on.
    pub(crate) fn deafen(&self) {
        self.with(|inner| inner.ingress.is_deaf = true);
    }

    pub(crate) fn port_calls(&self) -> u64 {
        self.with(|inner| inner.ingress.calls)
    }

    pub(crate) fn received(&self) -> Vec<u8> {
        let received = self.with(|inner| Arc::clone(&inner.ingress.received));
        let received = received.lock().unwrap();
        received.clone()
    }
}

impl NodeListeners for FakeNode {
    async fn ports(&self, id: &SandboxId) -> Result<Vec<Listener>, NodeError> {
        self.known(id)?;
        Ok(self.with(|inner| {
            inner.ingress.calls += 1;
            let services = inner.ingress.services.keys();
            let here = services.filter(|(sandbox, _)| sandbox == id);
            here.map(|(_, port)| Listener {
                port: *port,
                address: "127.0.0.1".to_owned(),
            })
            .collect()
        }))
    }

    async fn wait_port(&self, id: &SandboxId, request: WaitPort) -> Result<Listener, NodeError> {
        let changed = self.with(|inner| {
            inner.ingress.calls += 1;
            inner.ingress.waits.push(request);
            Arc::clone(&inner.ingress.changed)
        });
        let found = async {
            loop {
                let signal = changed.notified();
                self.known(id)?;
                let is_there = |listener: &Listener| listener.port == request.port;
                if let Some(found) = self.ports(id).await?.into_iter().find(is_there) {
                    return Ok::<Listener, NodeError>(found);
                }
                signal.await;
            }
        };
        let late = NodeError::new(ErrorCode::Timeout, "timeout: nothing listens after a while");
        let found = tokio::time::timeout(request.limit, found).await;
        found.unwrap_or(Err(late))
    }
}

impl FakeNode {
    pub(super) async fn connect(&self, id: &SandboxId, port: u16) -> Result<PortStream, NodeError> {
        let (service, received, is_deaf) = self.with(|inner| {
            inner.ingress.calls += 1;
            let service = inner.ingress.services.get(&(id.clone(), port)).copied();
            let received = Arc::clone(&inner.ingress.received);
            (service, received, inner.ingress.is_deaf)
        });
        self.known(id)?;
        if is_deaf {
            std::future::pending::<()>().await;
        }
        let service = service.ok_or_else(|| NodeError::not_found("nothing listens there"))?;
        let stream = TcpStream::connect(service).await.unwrap();
        Ok(Box::new(Recorded { stream, received }))
    }
}

/// A connection whose outward bytes are kept.
struct Recorded {
    stream: TcpStream,
    received: Arc<Mutex<Vec<u8>>>,
}

impl AsyncRead for Recorded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Recorded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(length)) = written {
            let mut received = self.received.lock().unwrap();
            received.extend_from_slice(&bytes[..length]);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
