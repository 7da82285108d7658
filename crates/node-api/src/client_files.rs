//! [`NodeFiles`] over HTTP.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use dayfly_types::SandboxId;
use futures::StreamExt;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::FileBytes;
use crate::client::{NodeClient, WAKING_DEADLINE, collect, head_record, json_body, within};
use crate::error::NodeError;
use crate::files::{
    ChangeMode, Changes, FileChanges, FileRead, FileWrite, FileWritten, GuestPath, ListChanges,
    ListDirectory, MakeDirectory, MoveFile, NodeFiles, RemoveFile, WatchFiles,
};
use crate::receive;
use crate::record::RecordKind;
use crate::stream::{Outgoing, RecordReader, SILENCE_MAX, body_of_records, parse_json};
use dayfly_types::file::{DirectoryPage, FileStat, OpenedFile};

impl NodeClient {
    /// A question about files that has one answer.
    async fn ask_files<T: DeserializeOwned>(
        &self,
        id: &SandboxId,
        what: &str,
        request: &(impl Serialize + Sync),
    ) -> Result<T, NodeError> {
        let path = format!("/sandboxes/{id}/files/{what}");
        self.call(Method::POST, &path, json_body(request), WAKING_DEADLINE)
            .await
    }

    /// Opens a stream of the node.
    async fn open_files(
        &self,
        id: &SandboxId,
        what: &str,
        request: &(impl Serialize + Sync),
    ) -> Result<RecordReader, NodeError> {
        let path = format!("/sandboxes/{id}/files/{what}");
        let response = self.open(Method::POST, &path, json_body(request)).await?;
        Ok(RecordReader::new(response.into_body()))
    }

    /// Sends bytes for as long as they move.
    async fn send_files(
        &self,
        id: &SandboxId,
        what: &str,
        request: &(impl Serialize + Sync),
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        let progress = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&progress);
        let content = content
            .map(move |piece| {
                seen.fetch_add(1, Ordering::Relaxed);
                match piece {
                    Ok(bytes) => Outgoing::More(RecordKind::Data, bytes),
                    Err(error) => Outgoing::error(error),
                }
            })
            .chain(futures::stream::once(async {
                Outgoing::Last(RecordKind::End, bytes::Bytes::new())
            }));
        let body = body_of_records(head_record(request), Box::pin(content));
        let path = format!("/sandboxes/{id}/files/{what}");
        let answer = async {
            let response = self.open(Method::POST, &path, body).await?;
            parse_json::<FileWritten>(&collect(response.into_body()).await?)
        };
        Ok(while_moving(&progress, answer).await?.bytes)
    }
}

#[async_trait]
impl NodeFiles for NodeClient {
    async fn read_file(
        &self,
        id: &SandboxId,
        request: FileRead,
    ) -> Result<(OpenedFile, FileBytes), NodeError> {
        let open = async {
            let mut reader = self.open_files(id, "read", &request).await?;
            let info = receive::head(&mut reader).await?;
            Ok((info, receive::file_bytes(reader)))
        };
        within(WAKING_DEADLINE, open).await
    }

    async fn write_file(
        &self,
        id: &SandboxId,
        request: FileWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        self.send_files(id, "write", &request, content).await
    }

    async fn list_directory(
        &self,
        id: &SandboxId,
        request: ListDirectory,
    ) -> Result<DirectoryPage, NodeError> {
        self.ask_files(id, "list", &request).await
    }

    async fn stat(&self, id: &SandboxId, request: GuestPath) -> Result<FileStat, NodeError> {
        self.ask_files(id, "stat", &request).await
    }

    async fn make_directory(
        &self,
        id: &SandboxId,
        request: MakeDirectory,
    ) -> Result<(), NodeError> {
        self.ask_files(id, "mkdir", &request).await
    }

    async fn move_file(&self, id: &SandboxId, request: MoveFile) -> Result<(), NodeError> {
        self.ask_files(id, "move", &request).await
    }

    async fn change_mode(&self, id: &SandboxId, request: ChangeMode) -> Result<(), NodeError> {
        self.ask_files(id, "chmod", &request).await
    }

    async fn remove_file(&self, id: &SandboxId, request: RemoveFile) -> Result<(), NodeError> {
        self.ask_files(id, "remove", &request).await
    }

    async fn watch_files(
        &self,
        id: &SandboxId,
        request: WatchFiles,
    ) -> Result<FileChanges, NodeError> {
        let open = self.open_files(id, "watch", &request);
        let reader = within(WAKING_DEADLINE, open).await?;
        Ok(receive::file_changes(reader))
    }

    async fn pack_tree(&self, id: &SandboxId, request: GuestPath) -> Result<FileBytes, NodeError> {
        let open = async {
            let mut reader = self.open_files(id, "pack", &request).await?;
            receive::head::<()>(&mut reader).await?;
            Ok(receive::file_bytes(reader))
        };
        within(WAKING_DEADLINE, open).await
    }

    async fn unpack_tree(
        &self,
        id: &SandboxId,
        request: GuestPath,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        self.send_files(id, "unpack", &request, content).await
    }

    async fn list_changes(
        &self,
        id: &SandboxId,
        request: ListChanges,
    ) -> Result<Changes, NodeError> {
        self.ask_files(id, "changes", &request).await
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
