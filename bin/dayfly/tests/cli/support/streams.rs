//! Streams of the fake server that say nothing and do not end.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::server::{Shared, begin};

const STREAMS: [&str; 4] = ["/logs", "/events", "/network/log", "/fs/watch"];

/// Holds every stream open once the world says so.
pub(super) async fn hold(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let is_stream = STREAMS
        .iter()
        .any(|end| request.uri().path().ends_with(end));
    let holds = shared
        .world
        .lock()
        .expect("no test panics with the lock")
        .holds_streams;
    if !(is_stream && holds) {
        return next.run(request).await;
    }
    begin(&shared, "stream");
    let silence = futures::stream::pending::<Result<Bytes, std::io::Error>>();
    let kind = [("content-type", "text/event-stream; charset=utf-8")];
    (kind, Body::from_stream(silence)).into_response()
}
