//! A node that answers calls as it was told to, and whose streams show what they were asked.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use dayfly_node_api::{
    AttachExec, ContextLines, EnsureExec, ExecEvents, FileBytes, FileChanges, FileRead, FileWrite,
    Greeting, GuestPath, NodeApi, NodeCall, NodeError, NodeReply, PortStream, StdinWrite, Watch,
    WatchFiles,
};
use dayfly_types::exec::{ExecEvent, ExecInfo, OutputGap, OutputStream};
use dayfly_types::file::{FileMode, OpenedFile};
use dayfly_types::{ErrorCode, SandboxId};
use futures::StreamExt;
use tokio::io::AsyncWriteExt;

use crate::samples;

#[derive(Debug, Default)]
pub(crate) struct EchoNode {
    /// What calls are answered with, in order.
    pub(crate) replies: Mutex<VecDeque<Result<NodeReply, NodeError>>>,
    pub(crate) asked: Mutex<Vec<NodeCall>>,
    /// What it says of itself, when not the usual.
    pub(crate) greeting: Mutex<Option<Greeting>>,
    /// Pieces that were taken of an endless exec.
    pub(crate) pulled: Arc<AtomicU64>,
}

/// A stream of these pieces.
fn pieces<T: Send + 'static>(
    pieces: Vec<Result<T, NodeError>>,
) -> futures::stream::BoxStream<'static, Result<T, NodeError>> {
    futures::stream::iter(pieces).boxed()
}

async fn count(mut content: FileBytes) -> Result<u64, NodeError> {
    let mut bytes = 0;
    while let Some(piece) = content.next().await {
        bytes += piece?.len() as u64;
    }
    Ok(bytes)
}

#[async_trait]
impl NodeApi for EchoNode {
    async fn call(&self, call: NodeCall) -> Result<NodeReply, NodeError> {
        let is_greeting = matches!(call, NodeCall::Hello { .. });
        self.asked.lock().unwrap().push(call);
        if is_greeting {
            let greeting = self.greeting.lock().unwrap().clone();
            return Ok(NodeReply::Hello(greeting.unwrap_or_else(samples::greeting)));
        }
        self.replies.lock().unwrap().pop_front().unwrap()
    }

    async fn watch(&self) -> Result<Watch, NodeError> {
        let mut long = samples::report();
        long.reason = Some("é".repeat(100_000));
        Ok(pieces(vec![
            Ok(samples::report()),
            Ok(long),
            Err(samples::full()),
        ]))
    }

    /// Says what it was given; without input it never ends.
    async fn exec(&self, _: &SandboxId, request: EnsureExec) -> Result<ExecEvents, NodeError> {
        let input = request.input.unwrap_or_default();
        if input.is_empty() {
            let pulled = Arc::clone(&self.pulled);
            let endless = futures::stream::repeat_with(move || {
                pulled.fetch_add(1, Ordering::SeqCst);
                Ok(ExecEvent::Stdout(Bytes::from(vec![0; 64 << 10])))
            });
            return Ok(endless.boxed());
        }
        Ok(pieces(vec![
            Ok(ExecEvent::Stdout(input.into())),
            Ok(ExecEvent::Stderr(Bytes::new())),
            Ok(ExecEvent::Exited(samples::end())),
        ]))
    }

    async fn attach_exec(
        &self,
        _: &SandboxId,
        request: AttachExec,
    ) -> Result<(ExecInfo, ExecEvents), NodeError> {
        let gap = OutputGap {
            stream: OutputStream::Stdout,
            bytes: request.stdout_offset.unwrap_or(0),
        };
        let events = vec![
            Ok(ExecEvent::Gap(gap)),
            Ok(ExecEvent::Exited(samples::end())),
        ];
        Ok((samples::exec_info(), pieces(events)))
    }

    async fn write_stdin(
        &self,
        _: &SandboxId,
        request: StdinWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        Ok(request.offset.unwrap_or(0) + count(content).await?)
    }

    async fn context(&self, _: &SandboxId, line: String) -> Result<ContextLines, NodeError> {
        Ok(pieces(vec![
            Ok(Bytes::from(vec![b'x'; 200_000])),
            Ok(Bytes::new()),
            Ok(Bytes::from(line)),
        ]))
    }

    async fn read_file(
        &self,
        _: &SandboxId,
        request: FileRead,
    ) -> Result<(OpenedFile, FileBytes), NodeError> {
        let opened = OpenedFile {
            size: 9,
            mode: FileMode::of(0o600),
            mtime: -1,
        };
        let second = match request.path.as_str() {
            "/broken" => Err(samples::full()),
            _ => Ok(Bytes::from_static(b"fives")),
        };
        let content = vec![Ok(Bytes::from_static(b"four")), second];
        Ok((opened, pieces(content)))
    }

    async fn write_file(
        &self,
        _: &SandboxId,
        request: FileWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        if request.path == "/refused" {
            return Err(samples::full());
        }
        count(content).await
    }

    async fn watch_files(
        &self,
        _: &SandboxId,
        request: WatchFiles,
    ) -> Result<FileChanges, NodeError> {
        let mut changes: Vec<_> = (0..5).map(|number| Ok(samples::change(number))).collect();
        if request.path == "/broken" {
            changes.push(Err(samples::full()));
        }
        Ok(pieces(changes))
    }

    async fn pack_tree(&self, _: &SandboxId, request: GuestPath) -> Result<FileBytes, NodeError> {
        Ok(pieces(vec![
            Ok(Bytes::from(request.path)),
            Ok(Bytes::from(vec![7; 200_000])),
        ]))
    }

    async fn unpack_tree(
        &self,
        _: &SandboxId,
        _: GuestPath,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        count(content).await
    }

    /// An echo on one port, nobody on the others.
    async fn connect_port(&self, _: &SandboxId, port: u16) -> Result<PortStream, NodeError> {
        if port != 8080 {
            return Err(NodeError::new(ErrorCode::NotFound, "nobody listens"));
        }
        let (here, there) = tokio::io::duplex(1024);
        tokio::spawn(async move {
            let (mut input, mut output) = tokio::io::split(there);
            tokio::io::copy(&mut input, &mut output).await.unwrap();
            output.shutdown().await.unwrap();
        });
        Ok(Box::new(here))
    }
}
