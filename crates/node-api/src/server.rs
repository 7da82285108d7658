//! A node's [`NodeApi`] as an HTTP server. Translates, and nothing else.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use dayfly_types::{ErrorCode, SandboxId};
use futures::StreamExt;
use http::StatusCode;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::api::NodeApi;
use crate::error::NodeError;
use crate::record::{self, RecordKind};
use crate::stream::{Outgoing, RecordReader, body_of_lines, body_of_records};
use crate::types::{
    EnsureSandbox, ExecEvent, ExecRequest, FileRead, FileWrite, FileWritten, PathQuestion,
    WatchLine,
};
use crate::{receive, unread};

pub(crate) type Node = State<Arc<dyn NodeApi>>;
pub(crate) type Answer = Result<Response, Refusal>;

/// The largest call: a command, its environment and its standard input.
const CALL_BYTES_MAX: usize = 4 << 20;
/// What one connection may hold of what its peer does not read.
const WRITE_BUFFER_BYTES: usize = 64 << 10;
const CONNECTIONS_MAX: usize = 8192;
/// How long open calls may take to end after the stop was asked for.
const STOP_DEADLINE: Duration = Duration::from_secs(2);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The routes of a node.
pub fn router(api: Arc<dyn NodeApi>) -> Router {
    Router::new()
        .route("/status", get(status))
        .route("/templates", get(templates))
        .route("/watch", get(watch))
        .route("/sandboxes", get(sandboxes))
        .route(
            "/sandboxes/{id}",
            put(ensure_sandbox).get(sandbox).delete(delete_sandbox),
        )
        .route("/sandboxes/{id}/exec", post(exec))
        .route("/sandboxes/{id}/files/read", post(read_file))
        .route("/sandboxes/{id}/files/write", post(write_file))
        .route("/sandboxes/{id}/files/list", post(list_directory))
        .route("/sandboxes/{id}/files/stat", post(stat))
        .merge(crate::server_state::routes())
        .layer(DefaultBodyLimit::max(CALL_BYTES_MAX))
        .layer(axum::middleware::from_fn(unread::drain_unread))
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
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    // Streams have no end of their own; dropping the connection drops them.
    let _ = tokio::time::timeout(STOP_DEADLINE, connection).await;
}

async fn status(State(node): Node) -> Answer {
    json(&node.status().await?)
}

async fn templates(State(node): Node) -> Answer {
    json(&node.templates().await?)
}

async fn sandboxes(State(node): Node) -> Answer {
    json(&node.sandboxes().await?)
}

async fn sandbox(State(node): Node, Path(id): Path<SandboxId>) -> Answer {
    json(&node.sandbox(&id).await?)
}

async fn ensure_sandbox(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    let wanted: EnsureSandbox = parse(&body)?;
    if wanted.id != id {
        return Err(NodeError::new(ErrorCode::InvalidRequest, "two ids in one call").into());
    }
    json(&node.ensure_sandbox(wanted).await?)
}

async fn delete_sandbox(State(node): Node, Path(id): Path<SandboxId>) -> Answer {
    json(&node.delete_sandbox(&id).await?)
}

async fn watch(State(node): Node) -> Answer {
    let reports = node.watch().await?;
    let lines = reports.map(|report| {
        let line = match report {
            Ok(report) => WatchLine::Report(Box::new(report)),
            Err(error) => WatchLine::Error(error),
        };
        serde_json::to_vec(&line).unwrap_or_default()
    });
    Ok(body_of_lines(lines).into_response())
}

async fn exec(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    let request: ExecRequest = parse(&body)?;
    let events = node.exec(&id, request).await?;
    let records = events.map(|event| match event {
        Ok(ExecEvent::Stdout(bytes)) => Outgoing::More(RecordKind::Stdout, bytes),
        Ok(ExecEvent::Stderr(bytes)) => Outgoing::More(RecordKind::Stderr, bytes),
        Ok(ExecEvent::Exited(exit)) => Outgoing::json(RecordKind::Exit, &exit),
        Err(error) => Outgoing::error(error),
    });
    Ok(body_of_records(Default::default(), records).into_response())
}

async fn read_file(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    let request: FileRead = parse(&body)?;
    let (info, content) = node.read_file(&id, request).await?;
    let mut first = Default::default();
    let head = serde_json::to_vec(&info).unwrap_or_default();
    record::encode(RecordKind::Head, head.into(), &mut first);
    let records = content
        .map(|piece| match piece {
            Ok(bytes) => Outgoing::More(RecordKind::Data, bytes),
            Err(error) => Outgoing::error(error),
        })
        .chain(futures::stream::iter([Outgoing::Last(
            RecordKind::End,
            Bytes::new(),
        )]));
    Ok(body_of_records(first, records).into_response())
}

async fn write_file(State(node): Node, Path(id): Path<SandboxId>, body: Body) -> Answer {
    let mut reader = RecordReader::new(body);
    let request: FileWrite = receive::head(&mut reader).await?;
    let bytes = node
        .write_file(&id, request, receive::file_bytes(reader))
        .await?;
    json(&FileWritten { bytes })
}

async fn list_directory(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    let question: PathQuestion = parse(&body)?;
    json(&node.list_directory(&id, &question.path).await?)
}

async fn stat(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    let question: PathQuestion = parse(&body)?;
    json(&node.stat(&id, &question.path).await?)
}

/// A node's refusal on its way out.
pub(crate) struct Refusal(NodeError);

impl From<NodeError> for Refusal {
    fn from(error: NodeError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.code.http_status());
        (
            status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            axum::Json(self.0),
        )
            .into_response()
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
