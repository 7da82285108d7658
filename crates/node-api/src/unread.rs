//! What becomes of a request body that its handler refused to read.
//!
//! A server that answers early and closes resets the connection under a client that still writes,
//! and the client never sees the answer. So a refused body is read and thrown away first, up to
//! a limit.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::oneshot;

const DRAIN_BYTES_MAX: usize = 8 << 20;
const DRAIN_DEADLINE: Duration = Duration::from_secs(1);

/// Put on a refusal whose body is worth less waiting than others.
#[derive(Debug, Clone, Copy)]
pub struct DrainFor(pub Duration);

/// A body that comes back when it is dropped before its end.
struct Returning {
    body: Option<Body>,
    back: Option<oneshot::Sender<Body>>,
}

impl http_body::Body for Returning {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = self.body.as_mut() else {
            return Poll::Ready(None);
        };
        let frame = Pin::new(body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = frame {
            self.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body
            .as_ref()
            .is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map(http_body::Body::size_hint)
            .unwrap_or_default()
    }
}

impl Drop for Returning {
    fn drop(&mut self) {
        if let (Some(body), Some(back)) = (self.body.take(), self.back.take()) {
            // The other side may have stopped waiting; then the body just ends here.
            let _ = back.send(body);
        }
    }
}

/// Middleware: after a refusal, reads what is left of the request's body.
pub async fn drain_unread(request: Request, next: Next) -> Response {
    if http_body::Body::is_end_stream(request.body()) {
        return next.run(request).await;
    }
    let (back, mut returned) = oneshot::channel();
    let request = request.map(|body| {
        Body::new(Returning {
            body: Some(body),
            back: Some(back),
        })
    });
    let response = next.run(request).await;
    let refused = response.status().is_client_error() || response.status().is_server_error();
    if refused && let Ok(body) = returned.try_recv() {
        let wanted = response.extensions().get::<DrainFor>();
        let limit = wanted.map_or(DRAIN_DEADLINE, |wanted| wanted.0.min(DRAIN_DEADLINE));
        let _ = tokio::time::timeout(limit, drain(body)).await;
    }
    response
}

async fn drain(mut body: Body) {
    let mut left = DRAIN_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
