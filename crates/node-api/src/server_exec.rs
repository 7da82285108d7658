//! The part of the server that serves execs and contexts.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use dayfly_types::{ExecId, SandboxId};
use futures::StreamExt;

use crate::api::{ExecEvents, NodeApi};
use crate::error::NodeError;
use crate::exec::{AttachExec, EnsureExec, SignalExec, StdinWrite, StdinWritten};
use crate::receive;
use crate::record::{self, RecordKind};
use crate::server::{Answer, Node, json, parse};
use crate::stream::{Outgoing, RecordReader, body_of_records};
use dayfly_types::exec::{ExecEvent, TerminalSize};

pub(crate) fn routes() -> Router<Arc<dyn NodeApi>> {
    Router::new()
        .route("/sandboxes/{id}/exec", post(exec))
        .route("/sandboxes/{id}/attach", post(attach))
        .route("/sandboxes/{id}/stdin", post(write_stdin))
        .route("/sandboxes/{id}/execs", get(list))
        .route("/sandboxes/{id}/execs/{exec}", get(describe).delete(forget))
        .route("/sandboxes/{id}/execs/{exec}/signal", post(signal))
        .route("/sandboxes/{id}/execs/{exec}/resize", post(resize))
        .route("/sandboxes/{id}/context", post(context))
}

fn records(events: ExecEvents) -> impl futures::Stream<Item = Outgoing> + Send + Unpin {
    events.map(|event| match event {
        Ok(ExecEvent::Stdout(bytes)) => Outgoing::More(RecordKind::Stdout, bytes),
        Ok(ExecEvent::Stderr(bytes)) => Outgoing::More(RecordKind::Stderr, bytes),
        Ok(ExecEvent::Gap(gap)) => {
            let bytes = serde_json::to_vec(&gap).unwrap_or_default();
            Outgoing::More(RecordKind::Gap, bytes.into())
        }
        Ok(ExecEvent::Exited(exit)) => Outgoing::json(RecordKind::Exit, &exit),
        Err(error) => Outgoing::error(error),
    })
}

async fn exec(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    let request: EnsureExec = parse(&body)?;
    let events = node.exec(&id, request).await?;
    Ok(body_of_records(Default::default(), records(events)).into_response())
}

async fn attach(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    let request: AttachExec = parse(&body)?;
    let (report, events) = node.attach_exec(&id, request).await?;
    let mut first = Default::default();
    let head = serde_json::to_vec(&report).unwrap_or_default();
    record::encode(RecordKind::Head, head.into(), &mut first);
    Ok(body_of_records(first, records(events)).into_response())
}

async fn write_stdin(State(node): Node, Path(id): Path<SandboxId>, body: Body) -> Answer {
    let mut reader = RecordReader::new(body);
    let request: StdinWrite = receive::head(&mut reader).await?;
    let bytes = node
        .write_stdin(&id, request, receive::file_bytes(reader))
        .await?;
    json(&StdinWritten { bytes })
}

async fn list(State(node): Node, Path(id): Path<SandboxId>) -> Answer {
    json(&node.list_execs(&id).await?)
}

async fn describe(State(node): Node, Path((id, exec)): Path<(SandboxId, ExecId)>) -> Answer {
    json(&node.describe_exec(&id, &exec).await?)
}

async fn forget(State(node): Node, Path((id, exec)): Path<(SandboxId, ExecId)>) -> Answer {
    json(&node.forget_exec(&id, &exec).await?)
}

async fn signal(
    State(node): Node,
    Path((id, exec)): Path<(SandboxId, ExecId)>,
    body: Bytes,
) -> Answer {
    let SignalExec { signal } = parse(&body)?;
    json(&node.signal_exec(&id, &exec, signal).await?)
}

async fn resize(
    State(node): Node,
    Path((id, exec)): Path<(SandboxId, ExecId)>,
    body: Bytes,
) -> Answer {
    let size: TerminalSize = parse(&body)?;
    json(&node.resize_exec(&id, &exec, size).await?)
}

/// Each line of the bridge is one or more `Data` records, closed by an empty `Head`.
async fn context(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    let lines = node.context(&id, body).await?;
    let records = lines
        .flat_map(|line: Result<Bytes, NodeError>| {
            let outgoing = match line {
                Ok(bytes) => vec![
                    Outgoing::More(RecordKind::Data, bytes),
                    Outgoing::More(RecordKind::Head, Bytes::new()),
                ],
                Err(error) => vec![Outgoing::error(error)],
            };
            futures::stream::iter(outgoing)
        })
        .chain(futures::stream::iter([Outgoing::Last(
            RecordKind::End,
            Bytes::new(),
        )]));
    Ok(body_of_records(Default::default(), Box::pin(records)).into_response())
}
