//! The part of the client whose answers or requests are streams.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use axum::body::Body;
use dayfly_types::SandboxId;
use dayfly_types::exec::ExecInfo;
use dayfly_types::file::OpenedFile;
use futures::StreamExt;
use http::{Method, StatusCode, header};
use hyper_util::rt::TokioIo;

use crate::api::{ContextLines, ExecEvents, FileBytes, FileChanges, NodeApi, PortStream, Watch};
use crate::call::{NodeCall, NodeReply, QUESTION, WAKING};
use crate::client::{NodeClient, collect, json_body, request, within};
use crate::error::NodeError;
use crate::exec::{AttachExec, EnsureExec, StdinWrite};
use crate::files::{FileRead, FileWrite, GuestPath, WatchFiles};
use crate::receive;
use crate::record::StreamRecordKind;
use crate::stream::{
    Outgoing, RecordReader, SILENCE_MAX, body_of_records, head_record, parse_json,
};
use crate::stream_call::{NodeStream, NodeTransfer, PORT_PROTOCOL};

impl NodeClient {
    /// Opens a stream of the node.
    async fn stream(&self, stream: &NodeStream) -> Result<RecordReader, NodeError> {
        let response = self.open("/open", json_body(stream)).await?;
        Ok(RecordReader::new(response.into_body()))
    }

    /// Sends bytes to the node. `progress` counts the pieces.
    async fn transfer(
        &self,
        transfer: &NodeTransfer,
        content: FileBytes,
        progress: &Arc<AtomicU64>,
    ) -> Result<u64, NodeError> {
        let seen = Arc::clone(progress);
        let content = content
            .map(move |piece| {
                seen.fetch_add(1, Ordering::Relaxed);
                match piece {
                    Ok(bytes) => Outgoing::More(StreamRecordKind::Data, bytes),
                    Err(error) => Outgoing::error(error),
                }
            })
            .chain(futures::stream::once(async {
                Outgoing::Last(StreamRecordKind::End, bytes::Bytes::new())
            }));
        let body = body_of_records(head_record(transfer), Box::pin(content));
        let response = self.open("/take", body).await?;
        parse_json(&collect(response.into_body()).await?)
    }

    /// Sends bytes for as long as they move.
    async fn transfer_moving(
        &self,
        transfer: NodeTransfer,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        let progress = Arc::new(AtomicU64::new(0));
        let work = self.transfer(&transfer, content, &progress);
        while_moving(&progress, work).await
    }
}

#[async_trait]
impl NodeApi for NodeClient {
    async fn call(&self, call: NodeCall) -> Result<NodeReply, NodeError> {
        let answer = async {
            let response = self.open("/call", json_body(&call)).await?;
            parse_json(&collect(response.into_body()).await?)
        };
        within(call.deadline(), answer).await
    }

    async fn watch(&self) -> Result<Watch, NodeError> {
        let reader = within(QUESTION, self.stream(&NodeStream::Watch {})).await?;
        Ok(receive::reports(reader))
    }

    async fn exec(&self, id: &SandboxId, request: EnsureExec) -> Result<ExecEvents, NodeError> {
        let stream = NodeStream::Exec {
            id: id.clone(),
            request: Box::new(request),
        };
        let reader = within(WAKING, self.stream(&stream)).await?;
        Ok(receive::exec_events(reader))
    }

    async fn attach_exec(
        &self,
        id: &SandboxId,
        request: AttachExec,
    ) -> Result<(ExecInfo, ExecEvents), NodeError> {
        let id = id.clone();
        let stream = NodeStream::AttachExec { id, request };
        let open = async {
            let mut reader = self.stream(&stream).await?;
            let info = receive::head(&mut reader).await?;
            Ok((info, receive::exec_events(reader)))
        };
        within(WAKING, open).await
    }

    async fn write_stdin(
        &self,
        id: &SandboxId,
        request: StdinWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        let id = id.clone();
        // Without a deadline: input may come from a person, who thinks. Signs of life tell each
        // side that the other is there.
        let transfer = NodeTransfer::WriteStdin { id, request };
        self.transfer(&transfer, content, &Arc::default()).await
    }

    async fn context(&self, id: &SandboxId, line: String) -> Result<ContextLines, NodeError> {
        let id = id.clone();
        let stream = NodeStream::Context { id, line };
        let reader = within(WAKING, self.stream(&stream)).await?;
        Ok(receive::context_lines(reader))
    }

    async fn read_file(
        &self,
        id: &SandboxId,
        request: FileRead,
    ) -> Result<(OpenedFile, FileBytes), NodeError> {
        let id = id.clone();
        let stream = NodeStream::ReadFile { id, request };
        let open = async {
            let mut reader = self.stream(&stream).await?;
            let opened = receive::head(&mut reader).await?;
            Ok((opened, receive::file_bytes(reader)))
        };
        within(WAKING, open).await
    }

    async fn write_file(
        &self,
        id: &SandboxId,
        request: FileWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        let id = id.clone();
        let transfer = NodeTransfer::WriteFile { id, request };
        self.transfer_moving(transfer, content).await
    }

    async fn watch_files(
        &self,
        id: &SandboxId,
        request: WatchFiles,
    ) -> Result<FileChanges, NodeError> {
        let id = id.clone();
        let stream = NodeStream::WatchFiles { id, request };
        let reader = within(WAKING, self.stream(&stream)).await?;
        Ok(receive::file_changes(reader))
    }

    async fn pack_tree(&self, id: &SandboxId, request: GuestPath) -> Result<FileBytes, NodeError> {
        let id = id.clone();
        let stream = NodeStream::PackTree { id, request };
        let open = async {
            let mut reader = self.stream(&stream).await?;
            receive::head::<()>(&mut reader).await?;
            Ok(receive::file_bytes(reader))
        };
        within(WAKING, open).await
    }

    async fn unpack_tree(
        &self,
        id: &SandboxId,
        request: GuestPath,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        let id = id.clone();
        let transfer = NodeTransfer::UnpackTree { id, request };
        self.transfer_moving(transfer, content).await
    }

    async fn connect_port(&self, id: &SandboxId, port: u16) -> Result<PortStream, NodeError> {
        let request = request(Method::GET, &format!("/ports/{id}/{port}"))
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, PORT_PROTOCOL);
        let connect = async {
            let response = self.send(request, Body::empty()).await?;
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                return Err(NodeError::internal("the node did not open a connection"));
            }
            let upgraded = hyper::upgrade::on(response).await;
            upgraded.map_err(|_| NodeError::unavailable("the node's connection broke off"))
        };
        let upgraded = within(WAKING, connect).await?;
        Ok(Box::new(TokioIo::new(upgraded)))
    }
}

/// Waits for as long as `progress` grows at least once in each limit of silence.
async fn while_moving<T>(
    progress: &AtomicU64,
    work: impl Future<Output = Result<T, NodeError>>,
) -> Result<T, NodeError> {
    let mut work = std::pin::pin!(work);
    let mut before = progress.load(Ordering::Relaxed);
    loop {
        if let Ok(result) = tokio::time::timeout(SILENCE_MAX, work.as_mut()).await {
            return result;
        }
        let now = progress.load(Ordering::Relaxed);
        if now == before {
            return Err(NodeError::unavailable(
                "the transfer to the node stands still",
            ));
        }
        before = now;
    }
}
