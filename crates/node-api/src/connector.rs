//! Connections to a node's unix socket, for the HTTP client's pool.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use crate::socket;

const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// Between attempts while the listener's queue is full, which the kernel reports at once.
const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(5);

/// Dials one socket, whatever the address asked for.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    socket: Arc<PathBuf>,
}

impl Connector {
    pub(crate) fn new(socket: PathBuf) -> Self {
        Self {
            socket: Arc::new(socket),
        }
    }
}

impl tower::Service<Uri> for Connector {
    type Response = NodeStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<NodeStream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let socket = Arc::clone(&self.socket);
        Box::pin(async move {
            tokio::time::timeout(CONNECT_DEADLINE, dial(&socket))
                .await
                .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
        })
    }
}

async fn dial(socket: &std::path::Path) -> io::Result<NodeStream> {
    loop {
        match socket::connect(socket).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                tokio::time::sleep(QUEUE_FULL_PAUSE).await;
            }
            other => return other.map(|stream| NodeStream(TokioIo::new(stream))),
        }
    }
}

/// One connection to a node.
#[derive(Debug)]
pub(crate) struct NodeStream(TokioIo<UnixStream>);

impl Connection for NodeStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for NodeStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for NodeStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, pieces)
    }
}
