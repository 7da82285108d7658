//! Bodies that end with the key of their request, in both directions.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use dayfly_node_api::{FileBytes, NodeError};
use dayfly_types::ErrorCode;
use futures::StreamExt;
use hyper::body::{Frame, SizeHint};

use crate::tenancy::key_ends::KeyEnd;

/// Why a body was cut off.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the key of this request was revoked or has expired")]
struct KeyEnded;

/// A body that fails when its key ends.
struct BoundBody {
    /// Absent after the end.
    body: Option<Body>,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl hyper::body::Body for BoundBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.body.is_none() {
            return Poll::Ready(None);
        }
        // First, so that nothing passes that arrived after the end.
        if self.ended.as_mut().poll(context).is_ready() {
            self.body = None;
            return Poll::Ready(Some(Err(axum::Error::new(KeyEnded))));
        }
        match self.body.as_mut() {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body
            .as_ref()
            .is_none_or(hyper::body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map(hyper::body::Body::size_hint)
            .unwrap_or_default()
    }
}

/// Whether a body could not be read because its key has ended.
pub(crate) fn is_key_end(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<KeyEnded>())
}

fn bound(body: Body, end: KeyEnd) -> Body {
    Body::new(BoundBody {
        body: Some(body),
        ended: Box::pin(async move { end.reached().await }),
    })
}

/// What a caller sends, until its key ends.
pub(crate) fn bound_body(body: Body, end: KeyEnd) -> Body {
    if hyper::body::Body::is_end_stream(&body) {
        return body;
    }
    bound(body, end)
}

/// An answer that is still under way when its key ends is cut off. The connection breaks, so that
/// nobody takes a part for the whole.
pub(crate) fn bound_answer(response: Response, end: KeyEnd) -> Response {
    response.map(|body| {
        if hyper::body::Body::size_hint(&body).exact().is_some() {
            return body;
        }
        bound(body, end)
    })
}

/// Bytes for a node, until the key ends of whoever sends them.
pub(crate) fn bound_bytes(content: FileBytes, end: KeyEnd) -> FileBytes {
    futures::stream::unfold(Some((content, end)), async |state| {
        let (mut content, end) = state?;
        tokio::select! {
            biased;
            () = end.reached() => {
                let error = NodeError::new(ErrorCode::Unauthorized, KeyEnded.to_string());
                Some((Err(error), None))
            }
            piece = content.next() => Some((piece?, Some((content, end)))),
        }
    })
    .boxed()
}
