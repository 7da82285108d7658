//! A node's [`NodeApi`] as an HTTP server. Translates, and nothing else.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use dayfly_types::ErrorCode;
use dayfly_types::limits::CONTEXT_LINE_BYTES_MAX;
use http::{HeaderMap, StatusCode};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::api::NodeApi;
use crate::call::NodeCall;
use crate::error::NodeError;
use crate::greeting::{self, PROTOCOL_HEADER};
use crate::server_streams;
use crate::{traced, unread};

pub(crate) type Node = State<Arc<dyn NodeApi>>;
pub(crate) type Answer = Result<Response, Refusal>;

/// The largest call: a line for a context, whose characters may need two bytes each.
const CALL_BYTES_MAX: usize = (2 * CONTEXT_LINE_BYTES_MAX) + (1 << 20);
/// What one connection may hold of what its peer does not read.
const WRITE_BUFFER_BYTES: usize = 64 << 10;
const CONNECTIONS_MAX: usize = 8192;
/// How long open calls may take to end after the stop was asked for.
const STOP_DEADLINE: Duration = Duration::from_secs(2);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The routes of a node.
pub fn router(api: Arc<dyn NodeApi>) -> Router {
    Router::new()
        .route("/call", post(call))
        .route("/open", post(server_streams::open))
        .route("/take", post(server_streams::take))
        .route("/ports/{id}/{port}", get(server_streams::connect_port))
        .layer(DefaultBodyLimit::max(CALL_BYTES_MAX))
        .layer(axum::middleware::from_fn(unread::drain_unread))
        .layer(axum::middleware::from_fn(traced::time_call))
        .with_state(api)
}

/// Serves `api` until `shutdown`, then gives open calls a moment to end. Dropping the future drops
/// every connection.
pub async fn serve(
    listener: UnixListener,
    api: Arc<dyn NodeApi>,
    shutdown: impl Future<Output = ()>,
) {
    let router = router(api);
    let stop = CancellationToken::new();
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(serve_connection(stream, router.clone(), stop.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    stop.cancel();
    let _ = tokio::time::timeout(STOP_DEADLINE, connections.join_all()).await;
}

async fn serve_connection(stream: tokio::net::UnixStream, router: Router, stop: CancellationToken) {
    let connection = http1::Builder::new()
        .max_buf_size(WRITE_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    // Streams have no end of their own; dropping the connection drops them.
    let _ = tokio::time::timeout(STOP_DEADLINE, connection).await;
}

async fn call(State(node): Node, headers: HeaderMap, body: Bytes) -> Answer {
    let call = match check_protocol(&headers) {
        Ok(()) => parse(&body)?,
        // Only the greeting is the same in all of them.
        Err(refusal) => match parse(&body) {
            Ok(call @ NodeCall::Hello { .. }) => call,
            _ => return Err(refusal),
        },
    };
    json(&node.call(call).await?)
}

/// Refuses a request of a protocol that this end does not speak, before anything of it is read.
pub(crate) fn check_protocol(headers: &HeaderMap) -> Result<(), Refusal> {
    if greeting::is_spoken(headers.get(PROTOCOL_HEADER)) {
        return Ok(());
    }
    let text = "the request is of a protocol that this node does not speak";
    Err(Refusal {
        error: NodeError::unavailable(text),
        status: StatusCode::UPGRADE_REQUIRED,
    })
}

/// A node's refusal on its way out.
pub(crate) struct Refusal {
    error: NodeError,
    status: StatusCode,
}

impl From<NodeError> for Refusal {
    fn from(error: NodeError) -> Self {
        let status = StatusCode::from_u16(error.code.http_status());
        Self {
            error,
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, axum::Json(self.error)).into_response()
    }
}

pub(crate) fn json<T: Serialize>(value: &T) -> Answer {
    let bytes = serde_json::to_vec(value)
        .map_err(|_| NodeError::internal("the node cannot write its answer"))?;
    Ok(Body::from(bytes).into_response())
}

pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        tracing::warn!(%error, "cannot read a call");
        NodeError::new(ErrorCode::InvalidRequest, "the node cannot read this call").into()
    })
}
