//! The part of the server that serves files.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::routing::post;
use dayfly_types::SandboxId;
use futures::StreamExt;
use serde::Serialize;

use crate::api::{FileBytes, NodeApi};
use crate::files::{FileRead, FileWrite, FileWritten, GuestPath};
use crate::receive;
use crate::record::{self, RecordKind};
use crate::server::{Answer, Node, json, parse};
use crate::stream::{Outgoing, RecordReader, body_of_records};

pub(crate) fn routes() -> Router<Arc<dyn NodeApi>> {
    let route = |name: &str| format!("/sandboxes/{{id}}/files/{name}");
    Router::new()
        .route(&route("read"), post(read_file))
        .route(&route("write"), post(write_file))
        .route(&route("list"), post(list_directory))
        .route(&route("stat"), post(stat))
        .route(&route("mkdir"), post(make_directory))
        .route(&route("move"), post(move_file))
        .route(&route("chmod"), post(change_mode))
        .route(&route("remove"), post(remove_file))
        .route(&route("watch"), post(watch_files))
        .route(&route("pack"), post(pack_tree))
        .route(&route("unpack"), post(unpack_tree))
        .route(&route("changes"), post(list_changes))
}

async fn read_file(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    let request: FileRead = parse(&body)?;
    let (info, content) = node.read_file(&id, request).await?;
    content_of(&info, content)
}

async fn pack_tree(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    let request: GuestPath = parse(&body)?;
    let content = node.pack_tree(&id, request).await?;
    content_of(&(), content)
}

/// A head, then the bytes, then the end.
fn content_of(head: &impl Serialize, content: FileBytes) -> Answer {
    let mut first = Default::default();
    let head = serde_json::to_vec(head).unwrap_or_default();
    record::encode(RecordKind::Head, head.into(), &mut first);
    let records = content.map(|piece| match piece {
        Ok(bytes) => Outgoing::More(RecordKind::Data, bytes),
        Err(error) => Outgoing::error(error),
    });
    Ok(body_of_records(first, records.chain(end())).into_response())
}

async fn watch_files(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    let changes = node.watch_files(&id, parse(&body)?).await?;
    let records = changes.map(|change| match change {
        Ok(change) => {
            let bytes = serde_json::to_vec(&change).unwrap_or_default();
            Outgoing::More(RecordKind::Data, bytes.into())
        }
        Err(error) => Outgoing::error(error),
    });
    Ok(body_of_records(Default::default(), records.chain(end())).into_response())
}

fn end() -> impl futures::Stream<Item = Outgoing> + Unpin {
    futures::stream::iter([Outgoing::Last(RecordKind::End, Bytes::new())])
}

async fn write_file(State(node): Node, Path(id): Path<SandboxId>, body: Body) -> Answer {
    let mut reader = RecordReader::new(body);
    let request: FileWrite = receive::head(&mut reader).await?;
    let content = receive::file_bytes(reader);
    let bytes = node.write_file(&id, request, content).await?;
    json(&FileWritten { bytes })
}

async fn unpack_tree(State(node): Node, Path(id): Path<SandboxId>, body: Body) -> Answer {
    let mut reader = RecordReader::new(body);
    let request: GuestPath = receive::head(&mut reader).await?;
    let content = receive::file_bytes(reader);
    let bytes = node.unpack_tree(&id, request, content).await?;
    json(&FileWritten { bytes })
}

async fn list_directory(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    json(&node.list_directory(&id, parse(&body)?).await?)
}

async fn stat(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    json(&node.stat(&id, parse(&body)?).await?)
}

async fn make_directory(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    json(&node.make_directory(&id, parse(&body)?).await?)
}

async fn move_file(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    json(&node.move_file(&id, parse(&body)?).await?)
}

async fn change_mode(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    json(&node.change_mode(&id, parse(&body)?).await?)
}

async fn remove_file(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    json(&node.remove_file(&id, parse(&body)?).await?)
}

async fn list_changes(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    json(&node.list_changes(&id, parse(&body)?).await?)
}
