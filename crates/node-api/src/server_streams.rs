//! The part of the server whose answers or requests are streams.

use std::collections::VecDeque;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use dayfly_types::exec::ExecEvent;
use dayfly_types::{ErrorCode, SandboxId};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http::{HeaderMap, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;

use crate::api::{ExecEvents, FileBytes};
use crate::error::NodeError;
use crate::receive;
use crate::record::StreamRecordKind;
use crate::server::{Answer, Node, check_protocol, json, parse};
use crate::stream::{Outgoing, RecordReader, body_of_records, head_record};
use crate::stream_call::{NodeStream, NodeTransfer, PORT_PROTOCOL};

pub(crate) async fn open(State(node): Node, headers: HeaderMap, body: Bytes) -> Answer {
    check_protocol(&headers)?;
    match parse(&body)? {
        NodeStream::Watch {} => Ok(items(node.watch().await?)),
        NodeStream::Exec { id, request } => {
            let events = node.exec(&id, *request).await?;
            Ok(records(VecDeque::new(), exec_records(events)))
        }
        NodeStream::AttachExec { id, request } => {
            let (info, events) = node.attach_exec(&id, request).await?;
            Ok(records(head_record(&info), exec_records(events)))
        }
        NodeStream::Context { id, line } => {
            let lines = node.context(&id, line).await?;
            Ok(records(
                VecDeque::new(),
                ended(lines.map(|line| line.map(Outgoing::Item))),
            ))
        }
        NodeStream::ReadFile { id, request } => {
            let (opened, content) = node.read_file(&id, request).await?;
            Ok(records(head_record(&opened), content_records(content)))
        }
        NodeStream::WatchFiles { id, request } => Ok(items(node.watch_files(&id, request).await?)),
        NodeStream::PackTree { id, request } => {
            let content = node.pack_tree(&id, request).await?;
            Ok(records(head_record(&()), content_records(content)))
        }
    }
}

fn records(
    first: VecDeque<Bytes>,
    source: impl Stream<Item = Outgoing> + Send + Unpin + 'static,
) -> Response {
    body_of_records(first, source).into_response()
}

/// A stream of things that are JSON each.
fn items<T: Serialize + Send + 'static>(
    source: BoxStream<'static, Result<T, NodeError>>,
) -> Response {
    let source = source.map(|item| item.map(|item| Outgoing::item(&item)));
    records(VecDeque::new(), ended(source))
}

/// Says that the stream is complete, or why it is not.
fn ended(
    source: impl Stream<Item = Result<Outgoing, NodeError>> + Send + Unpin + 'static,
) -> impl Stream<Item = Outgoing> + Send + Unpin {
    let end = futures::stream::iter([Outgoing::Last(StreamRecordKind::End, Bytes::new())]);
    source
        .map(|outgoing| outgoing.unwrap_or_else(Outgoing::error))
        .chain(end)
}

fn content_records(content: FileBytes) -> impl Stream<Item = Outgoing> + Send + Unpin {
    ended(content.map(|piece| piece.map(|bytes| Outgoing::More(StreamRecordKind::Data, bytes))))
}

fn exec_records(events: ExecEvents) -> impl Stream<Item = Outgoing> + Send + Unpin {
    events.map(|event| match event {
        Ok(ExecEvent::Stdout(bytes)) => Outgoing::More(StreamRecordKind::Stdout, bytes),
        Ok(ExecEvent::Stderr(bytes)) => Outgoing::More(StreamRecordKind::Stderr, bytes),
        Ok(ExecEvent::Gap(gap)) => {
            let bytes = serde_json::to_vec(&gap).unwrap_or_default();
            Outgoing::More(StreamRecordKind::Gap, bytes.into())
        }
        Ok(ExecEvent::Exited(end)) => Outgoing::json(StreamRecordKind::Exit, &end),
        Err(error) => Outgoing::error(error),
    })
}

pub(crate) async fn take(State(node): Node, headers: HeaderMap, body: Body) -> Answer {
    check_protocol(&headers)?;
    let mut reader = RecordReader::new(body);
    let transfer: NodeTransfer = receive::head(&mut reader).await?;
    let content = receive::file_bytes(reader);
    let bytes = match transfer {
        NodeTransfer::WriteStdin { id, request } => node.write_stdin(&id, request, content).await,
        NodeTransfer::WriteFile { id, request } => node.write_file(&id, request, content).await,
        NodeTransfer::UnpackTree { id, request } => node.unpack_tree(&id, request, content).await,
    };
    json(&bytes?)
}

/// Answers `101` once somebody in the sandbox has accepted, and is a plain connection from then on.
pub(crate) async fn connect_port(
    State(node): Node,
    Path((id, port)): Path<(SandboxId, u16)>,
    mut request: Request,
) -> Answer {
    check_protocol(request.headers())?;
    let is_ours = |value: &http::HeaderValue| value.as_bytes() == PORT_PROTOCOL.as_bytes();
    if !request.headers().get(header::UPGRADE).is_some_and(is_ours) {
        return Err(NodeError::new(ErrorCode::InvalidRequest, "this call is an upgrade").into());
    }
    let mut inside = node.connect_port(&id, port).await?;
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        match upgrade.await {
            Ok(outside) => {
                // Whichever side breaks off ends both; there is nobody to tell.
                let mut outside = TokioIo::new(outside);
                let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
            }
            Err(error) => tracing::debug!(%error, "nobody took a connection to a port"),
        }
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, PORT_PROTOCOL)
        .body(Body::empty())
        .map_err(|_| NodeError::internal("cannot form an answer").into())
}
