//! The client and the server of the contract, with a unix socket between them.
#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dayfly_node_api::{
    Directory, DirectoryEntry, EnsureSandbox, ExecCommand, ExecEvent, ExecEvents, ExecExit,
    ExecRequest, ExitReason, FileBytes, FileInfo, FileRead, FileWrite, NodeApi, NodeClient,
    NodeError, NodeStatus, SandboxReport, TemplateReport, Watch, server, socket,
};
use dayfly_types::{ErrorCode, ExecId, SandboxId};
use futures::StreamExt;

/// Answers just enough to see every form that the wire has.
#[derive(Debug, Default)]
struct SmallNode {
    written: AtomicU64,
    pulled: Arc<AtomicU64>,
}

fn full() -> NodeError {
    NodeError::new(ErrorCode::NoCapacity, "full")
        .retry_after(Duration::from_secs(3))
        .at_percent(7)
}

fn exit() -> ExecExit {
    ExecExit {
        exit_code: 3,
        signal: Some(9),
        reason: ExitReason::Killed,
        duration_ms: 5,
    }
}

#[async_trait]
impl NodeApi for SmallNode {
    async fn status(&self) -> Result<NodeStatus, NodeError> {
        Err(full())
    }

    async fn templates(&self) -> Result<Vec<TemplateReport>, NodeError> {
        Ok(Vec::new())
    }

    async fn ensure_sandbox(&self, _: EnsureSandbox) -> Result<SandboxReport, NodeError> {
        Err(full())
    }

    async fn delete_sandbox(&self, _: &SandboxId) -> Result<(), NodeError> {
        Ok(())
    }

    async fn sandbox(&self, _: &SandboxId) -> Result<SandboxReport, NodeError> {
        Err(NodeError::not_found("none"))
    }

    async fn sandboxes(&self) -> Result<Vec<SandboxReport>, NodeError> {
        Ok(Vec::new())
    }

    async fn watch(&self) -> Result<Watch, NodeError> {
        Ok(futures::stream::iter([Err(full())]).boxed())
    }

    async fn exec(&self, _: &SandboxId, request: ExecRequest) -> Result<ExecEvents, NodeError> {
        let stdin = request.stdin.unwrap_or_default();
        if stdin.is_empty() {
            let pulled = Arc::clone(&self.pulled);
            let endless = futures::stream::repeat_with(move || {
                pulled.fetch_add(1, Ordering::SeqCst);
                Ok(ExecEvent::Stdout(Bytes::from(vec![0; 64 << 10])))
            });
            return Ok(endless.boxed());
        }
        let events = [
            Ok(ExecEvent::Stdout(stdin.into())),
            Ok(ExecEvent::Stderr(Bytes::new())),
            Ok(ExecEvent::Exited(exit())),
        ];
        Ok(futures::stream::iter(events).boxed())
    }

    async fn read_file(
        &self,
        _: &SandboxId,
        request: FileRead,
    ) -> Result<(FileInfo, FileBytes), NodeError> {
        let info = FileInfo {
            size: 9,
            mode: 0o600,
            mtime: -1,
        };
        let mut pieces = vec![
            Ok(Bytes::from_static(b"four")),
            Ok(Bytes::from_static(b"fives")),
        ];
        if request.path == "/broken" {
            pieces[1] = Err(full());
        }
        Ok((info, futures::stream::iter(pieces).boxed()))
    }

    async fn write_file(
        &self,
        _: &SandboxId,
        request: FileWrite,
        mut content: FileBytes,
    ) -> Result<u64, NodeError> {
        if request.path == "/refused" {
            return Err(full());
        }
        while let Some(piece) = content.next().await {
            self.written
                .fetch_add(piece?.len() as u64, Ordering::SeqCst);
        }
        Ok(self.written.load(Ordering::SeqCst))
    }

    async fn list_directory(&self, _: &SandboxId, _: &str) -> Result<Directory, NodeError> {
        Ok(Directory {
            entries: Vec::new(),
            truncated: true,
        })
    }

    async fn stat(&self, _: &SandboxId, path: &str) -> Result<DirectoryEntry, NodeError> {
        Err(NodeError::not_found(format!("no {path}")))
    }
}

struct World {
    node: Arc<SmallNode>,
    client: NodeClient,
    id: SandboxId,
    _directory: tempfile::TempDir,
}

fn start() -> World {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node.sock");
    let node = Arc::new(SmallNode::default());
    let listener = socket::listen(&path).unwrap();
    tokio::spawn(server::serve(
        listener,
        Arc::clone(&node) as _,
        std::future::pending(),
    ));
    let id = SandboxId::parse("sb-local-x").unwrap();
    World {
        node,
        client: NodeClient::new(&path),
        id,
        _directory: directory,
    }
}

fn command(stdin: &[u8]) -> ExecRequest {
    ExecRequest {
        id: ExecId::parse("ex-1").unwrap(),
        command: ExecCommand::Shell("cat".to_owned()),
        cwd: None,
        env: Default::default(),
        user: None,
        timeout_ms: None,
        stdin: Some(stdin.to_vec()),
    }
}

#[tokio::test]
async fn a_refusal_arrives_with_all_its_parts() {
    let world = start();
    assert_eq!(world.client.status().await, Err(full()));
    let mut watch = world.client.watch().await.unwrap();
    assert_eq!(watch.next().await, Some(Err(full())));
    assert_eq!(watch.next().await, None);
    let stat = world.client.stat(&world.id, "/é").await;
    assert_eq!(stat, Err(NodeError::not_found("no /é")));
}

#[tokio::test]
async fn nobody_at_the_socket_is_unavailable() {
    let client = NodeClient::new(Path::new("/nonexistent/node.sock"));
    let error = client.templates().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NodeUnavailable);
    assert!(error.retry_after_ms.is_some());
}

#[tokio::test]
async fn an_exec_carries_bytes_and_its_end() {
    let world = start();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let mut events = world.client.exec(&world.id, command(&bytes)).await.unwrap();
    let mut stdout = Vec::new();
    let last = loop {
        match events.next().await.unwrap().unwrap() {
            ExecEvent::Stdout(piece) => stdout.extend_from_slice(&piece),
            ExecEvent::Stderr(piece) => assert!(piece.is_empty()),
            ExecEvent::Exited(exit) => break exit,
        }
    };
    assert!(stdout == bytes);
    assert_eq!(last, exit());
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_stream_that_is_not_read_stands_still() {
    let world = start();
    let mut events = world.client.exec(&world.id, command(b"")).await.unwrap();
    assert!(events.next().await.is_some());
    let mut before = 0;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = world.node.pulled.load(Ordering::SeqCst);
        if now == before {
            break;
        }
        before = now;
    }
    assert!(
        before * (64 << 10) < 1 << 20,
        "{before} pieces are in flight"
    );
}

#[tokio::test]
async fn a_file_that_breaks_in_the_middle_is_an_error() {
    let world = start();
    let read = async |path: &str| {
        let request = FileRead {
            path: path.to_owned(),
            user: None,
        };
        let (info, content) = world.client.read_file(&world.id, request).await.unwrap();
        assert_eq!((info.size, info.mtime), (9, -1));
        content.collect::<Vec<_>>().await
    };
    let whole: Vec<Bytes> = read("/whole")
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(whole.concat(), b"fourfives");
    assert_eq!(read("/broken").await.last(), Some(&Err(full())));
}

#[tokio::test]
async fn an_upload_is_whole_or_an_error() {
    let world = start();
    let write = async |path: &str, pieces: Vec<Result<Bytes, NodeError>>| {
        let request = FileWrite {
            path: path.to_owned(),
            user: None,
            mode: None,
        };
        world
            .client
            .write_file(&world.id, request, futures::stream::iter(pieces).boxed())
            .await
    };
    let piece = Ok(Bytes::from(vec![1; 200_000]));
    assert_eq!(
        write("/a", vec![piece.clone(), piece.clone()]).await,
        Ok(400_000)
    );
    assert_eq!(
        write("/a", vec![piece.clone(), Err(full())]).await,
        Err(full())
    );
    // More than every buffer, so that the answer comes while the client still sends.
    assert_eq!(write("/refused", vec![piece; 100]).await, Err(full()));
}
