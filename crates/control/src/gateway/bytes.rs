//! What passes between a visitor and a service.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use dayfly_node_api::PortStream;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::connection::{Activity, ProxiedConnection};

/// A connection to a service that notes when a byte passes.
pub(super) struct NotedStream {
    stream: PortStream,
    activity: Arc<Activity>,
}

impl NotedStream {
    pub(super) fn new(stream: PortStream, activity: Arc<Activity>) -> Self {
        Self { stream, activity }
    }
}

impl AsyncRead for NotedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.activity.note();
        }
        read
    }
}

impl AsyncWrite for NotedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if written.is_ready() {
            self.activity.note();
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

/// Why a service's answer broke off.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    #[error("the visitor's leave is over")]
    Cut,
    #[error("the service broke off")]
    Broken(#[source] hyper::Error),
}

/// The body of a service's answer. Fails when the visit is cut, so that the visitor's connection
/// breaks instead of looking complete.
pub(super) struct AnswerBody {
    inner: Incoming,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    _connection: ProxiedConnection,
}

impl AnswerBody {
    pub(super) fn new(inner: Incoming, connection: ProxiedConnection) -> Self {
        Self {
            inner,
            cut: Box::pin(connection.cut()),
            _connection: connection,
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = AnswerError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnswerError>>> {
        // First, because a connection that was cut looks like one that has ended.
        if self.cut.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(AnswerError::Cut)));
        }
        let frame = Pin::new(&mut self.inner).poll_frame(context);
        frame.map_err(AnswerError::Broken)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
