//! [`NodeApi`] over HTTP/1.1 on a unix socket.
//!
//! Connections are kept and used again, so a call pays for a connect only when all are busy.
//! Every call has a deadline; streams have a limit of silence instead. Dropping a stream closes
//! its connection, and the node drops its end.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use dayfly_types::{ExecId, ProjectId, SandboxId, SnapshotId, TemplateName, VolumeName, limits};
use futures::StreamExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::{ContextLines, ExecEvents, FileBytes, NodeApi, Watch};
use crate::connector::Connector;
use crate::error::NodeError;
use crate::exec::{AttachExec, EnsureExec, SignalExec, StdinWrite, StdinWritten};
use crate::receive;
use crate::record::{self, RecordKind};
use crate::state::{
    EnsureVolume, ForkReport, ForkRequest, LifecycleChange, LifecycleReport, SnapshotReport,
    SnapshotRequest, VolumeReport,
};
use crate::stream::{LineReader, Outgoing, RecordReader, body_of_records, parse_json};
use crate::types::{EnsureSandbox, NodeStatus, SandboxLoad, SandboxReport, TemplateReport};
use dayfly_types::exec::{ExecInfo, TerminalSize};

/// Questions that the node answers from memory.
pub(crate) const QUESTION_DEADLINE: Duration = Duration::from_secs(5);
/// Calls that ask the guest's agent.
const GUEST_DEADLINE: Duration = limits::AGENT_CALL_DEADLINE.saturating_add(QUESTION_DEADLINE);
/// The node undoes a create at its own deadline; this leaves it time to say so.
const CREATE_DEADLINE: Duration = limits::CREATE_DEADLINE.saturating_add(QUESTION_DEADLINE);
/// Calls that ask the guest's agent of a sandbox that may have to be woken first.
pub(crate) const WAKING_DEADLINE: Duration = GUEST_DEADLINE.saturating_add(CREATE_DEADLINE);
const DELETE_DEADLINE: Duration = Duration::from_secs(25);
/// A capture, the write to disk behind it, and a restore.
const STATE_DEADLINE: Duration = limits::CAPTURE_DEADLINE.saturating_add(CREATE_DEADLINE);
/// A capture and as many restores as a fork may have.
const FORK_DEADLINE: Duration = Duration::from_secs(300);

const IDLE_CONNECTIONS_MAX: usize = 64;
const IDLE_DEADLINE: Duration = Duration::from_secs(60);
/// What one connection reads ahead of its stream's reader.
const READ_BUFFER_BYTES: usize = 64 << 10;
/// A full directory listing with long names.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A node behind a unix socket.
#[derive(Debug, Clone)]
pub struct NodeClient {
    http: Client<Connector, Body>,
}

impl NodeClient {
    /// Makes a client; nothing is dialled before the first call.
    #[must_use]
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        let http = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_DEADLINE)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .http1_max_buf_size(READ_BUFFER_BYTES)
            .build(Connector::new(socket.into()));
        Self { http }
    }

    /// Sends a request and waits for the head of its answer; a refusal becomes an error.
    pub(crate) async fn open(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Response<Body>, NodeError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://node{path}"))
            .body(body)
            .map_err(|_| NodeError::internal("cannot form a request to the node"))?;
        self.send(request).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<Body>, NodeError> {
        let response = self.http.request(request).await.map_err(|error| {
            tracing::debug!(%error, cause = ?std::error::Error::source(&error), "no answer from the node");
            NodeError::unavailable("the node cannot be reached")
        })?;
        let response = response.map(Body::new);
        let status = response.status();
        if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response);
        }
        let bytes = collect(response.into_body()).await?;
        Err(serde_json::from_slice(&bytes).unwrap_or_else(|_| {
            NodeError::internal(format!("the node refused with status {}", status.as_u16()))
        }))
    }

    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Body,
        deadline: Duration,
    ) -> Result<T, NodeError> {
        let answer = async {
            let response = self.open(method, path, body).await?;
            parse_json(&collect(response.into_body()).await?)
        };
        within(deadline, answer).await
    }
}

impl NodeClient {
    async fn question<T: DeserializeOwned>(&self, path: &str) -> Result<T, NodeError> {
        self.call(Method::GET, path, Body::empty(), QUESTION_DEADLINE)
            .await
    }

    /// Asks for another state of a sandbox.
    async fn change(&self, id: &SandboxId, to: &str) -> Result<SandboxReport, NodeError> {
        let path = format!("/sandboxes/{id}/{to}");
        self.call(Method::POST, &path, Body::empty(), STATE_DEADLINE)
            .await
    }
}

pub(crate) async fn collect(body: Body) -> Result<bytes::Bytes, NodeError> {
    match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(_) => Err(NodeError::unavailable("the node's answer broke off")),
    }
}

pub(crate) async fn within<T>(
    deadline: Duration,
    work: impl Future<Output = Result<T, NodeError>>,
) -> Result<T, NodeError> {
    tokio::time::timeout(deadline, work)
        .await
        .unwrap_or_else(|_| Err(NodeError::unavailable("the node did not answer in time")))
}

pub(crate) fn head_record<T: Serialize>(value: &T) -> VecDeque<bytes::Bytes> {
    let mut first = VecDeque::new();
    let head = serde_json::to_vec(value).unwrap_or_default();
    record::encode(RecordKind::Head, head.into(), &mut first);
    first
}

pub(crate) fn json_body<T: Serialize>(value: &T) -> Body {
    // Plain data with string keys always serialises.
    Body::from(serde_json::to_vec(value).unwrap_or_default())
}

#[async_trait]
impl NodeApi for NodeClient {
    async fn status(&self) -> Result<NodeStatus, NodeError> {
        self.call(Method::GET, "/status", Body::empty(), QUESTION_DEADLINE)
            .await
    }

    async fn templates(&self) -> Result<Vec<TemplateReport>, NodeError> {
        self.call(Method::GET, "/templates", Body::empty(), QUESTION_DEADLINE)
            .await
    }

    async fn find_template(&self, name: &TemplateName) -> Result<TemplateReport, NodeError> {
        self.question(&format!("/templates/{name}")).await
    }

    async fn ensure_template(&self, name: &TemplateName) -> Result<TemplateReport, NodeError> {
        let path = format!("/templates/{name}");
        self.call(Method::PUT, &path, Body::empty(), QUESTION_DEADLINE)
            .await
    }

    async fn ensure_sandbox(&self, wanted: EnsureSandbox) -> Result<SandboxReport, NodeError> {
        let path = format!("/sandboxes/{}", wanted.id);
        self.call(Method::PUT, &path, json_body(&wanted), CREATE_DEADLINE)
            .await
    }

    async fn delete_sandbox(&self, id: &SandboxId) -> Result<(), NodeError> {
        let path = format!("/sandboxes/{id}");
        self.call(Method::DELETE, &path, Body::empty(), DELETE_DEADLINE)
            .await
    }

    async fn sandbox(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        let path = format!("/sandboxes/{id}");
        self.call(Method::GET, &path, Body::empty(), QUESTION_DEADLINE)
            .await
    }

    async fn sandboxes(&self) -> Result<Vec<SandboxReport>, NodeError> {
        self.call(Method::GET, "/sandboxes", Body::empty(), QUESTION_DEADLINE)
            .await
    }

    async fn loads(&self, project: &ProjectId) -> Result<Vec<SandboxLoad>, NodeError> {
        let path = format!("/loads/{project}");
        self.call(Method::GET, &path, Body::empty(), QUESTION_DEADLINE)
            .await
    }

    async fn watch(&self) -> Result<Watch, NodeError> {
        let open = self.open(Method::GET, "/watch", Body::empty());
        let response = within(QUESTION_DEADLINE, open).await?;
        Ok(receive::reports(LineReader::new(response.into_body())))
    }

    async fn exec(&self, id: &SandboxId, request: EnsureExec) -> Result<ExecEvents, NodeError> {
        let path = format!("/sandboxes/{id}/exec");
        let open = self.open(Method::POST, &path, json_body(&request));
        let response = within(WAKING_DEADLINE, open).await?;
        Ok(receive::exec_events(RecordReader::new(
            response.into_body(),
        )))
    }

    async fn attach_exec(
        &self,
        id: &SandboxId,
        request: AttachExec,
    ) -> Result<(ExecInfo, ExecEvents), NodeError> {
        let path = format!("/sandboxes/{id}/attach");
        let open = async {
            let response = self.open(Method::POST, &path, json_body(&request)).await?;
            let mut reader = RecordReader::new(response.into_body());
            let report = receive::head(&mut reader).await?;
            Ok((report, receive::exec_events(reader)))
        };
        within(WAKING_DEADLINE, open).await
    }

    async fn describe_exec(&self, id: &SandboxId, exec: &ExecId) -> Result<ExecInfo, NodeError> {
        let path = format!("/sandboxes/{id}/execs/{exec}");
        self.call(Method::GET, &path, Body::empty(), WAKING_DEADLINE)
            .await
    }

    async fn list_execs(&self, id: &SandboxId) -> Result<Vec<ExecInfo>, NodeError> {
        let path = format!("/sandboxes/{id}/execs");
        self.call(Method::GET, &path, Body::empty(), WAKING_DEADLINE)
            .await
    }

    async fn signal_exec(
        &self,
        id: &SandboxId,
        exec: &ExecId,
        signal: i32,
    ) -> Result<(), NodeError> {
        let path = format!("/sandboxes/{id}/execs/{exec}/signal");
        let body = json_body(&SignalExec { signal });
        self.call(Method::POST, &path, body, WAKING_DEADLINE).await
    }

    async fn resize_exec(
        &self,
        id: &SandboxId,
        exec: &ExecId,
        size: TerminalSize,
    ) -> Result<(), NodeError> {
        let path = format!("/sandboxes/{id}/execs/{exec}/resize");
        self.call(Method::POST, &path, json_body(&size), WAKING_DEADLINE)
            .await
    }

    async fn forget_exec(&self, id: &SandboxId, exec: &ExecId) -> Result<(), NodeError> {
        let path = format!("/sandboxes/{id}/execs/{exec}");
        self.call(Method::DELETE, &path, Body::empty(), WAKING_DEADLINE)
            .await
    }

    async fn write_stdin(
        &self,
        id: &SandboxId,
        request: StdinWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        let content = content
            .map(|piece| match piece {
                Ok(bytes) => Outgoing::More(RecordKind::Data, bytes),
                Err(error) => Outgoing::error(error),
            })
            .chain(futures::stream::once(async {
                Outgoing::Last(RecordKind::End, bytes::Bytes::new())
            }));
        let body = body_of_records(head_record(&request), Box::pin(content));
        let path = format!("/sandboxes/{id}/stdin");
        // Without a deadline: input may come from a person, who thinks. Signs of life tell each
        // side that the other is there.
        let response = self.open(Method::POST, &path, body).await?;
        Ok(parse_json::<StdinWritten>(&collect(response.into_body()).await?)?.bytes)
    }

    async fn context(
        &self,
        id: &SandboxId,
        request: bytes::Bytes,
    ) -> Result<ContextLines, NodeError> {
        let path = format!("/sandboxes/{id}/context");
        let open = self.open(Method::POST, &path, Body::from(request));
        let response = within(WAKING_DEADLINE, open).await?;
        Ok(receive::context_lines(RecordReader::new(
            response.into_body(),
        )))
    }

    async fn pause(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.change(id, "pause").await
    }

    async fn resume(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.change(id, "resume").await
    }

    async fn hibernate(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.change(id, "hibernate").await
    }

    async fn wake(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.change(id, "wake").await
    }

    async fn rollback(
        &self,
        id: &SandboxId,
        snapshot: &SnapshotId,
    ) -> Result<SandboxReport, NodeError> {
        self.change(id, &format!("rollback/{snapshot}")).await
    }

    async fn lifecycle(&self, id: &SandboxId) -> Result<LifecycleReport, NodeError> {
        let path = format!("/sandboxes/{id}/lifecycle");
        self.call(Method::GET, &path, Body::empty(), QUESTION_DEADLINE)
            .await
    }

    async fn set_lifecycle(
        &self,
        id: &SandboxId,
        change: LifecycleChange,
    ) -> Result<LifecycleReport, NodeError> {
        let path = format!("/sandboxes/{id}/lifecycle");
        self.call(Method::PATCH, &path, json_body(&change), STATE_DEADLINE)
            .await
    }

    async fn snapshot(
        &self,
        id: &SandboxId,
        request: SnapshotRequest,
    ) -> Result<SnapshotReport, NodeError> {
        let path = format!("/sandboxes/{id}/snapshots");
        self.call(Method::POST, &path, json_body(&request), STATE_DEADLINE)
            .await
    }

    async fn snapshots(&self) -> Result<Vec<SnapshotReport>, NodeError> {
        self.call(Method::GET, "/snapshots", Body::empty(), QUESTION_DEADLINE)
            .await
    }

    async fn snapshots_of(&self, project: &ProjectId) -> Result<Vec<SnapshotReport>, NodeError> {
        self.question(&format!("/projects/{project}/snapshots"))
            .await
    }

    async fn find_snapshot(&self, id: &SnapshotId) -> Result<SnapshotReport, NodeError> {
        self.question(&format!("/snapshots/{id}")).await
    }

    async fn delete_snapshot(&self, id: &SnapshotId) -> Result<(), NodeError> {
        let path = format!("/snapshots/{id}");
        self.call(Method::DELETE, &path, Body::empty(), DELETE_DEADLINE)
            .await
    }

    async fn fork(&self, id: &SandboxId, request: ForkRequest) -> Result<ForkReport, NodeError> {
        let path = format!("/sandboxes/{id}/fork");
        self.call(Method::POST, &path, json_body(&request), FORK_DEADLINE)
            .await
    }

    async fn ensure_volume(&self, wanted: EnsureVolume) -> Result<VolumeReport, NodeError> {
        self.call(Method::PUT, "/volumes", json_body(&wanted), STATE_DEADLINE)
            .await
    }

    async fn volumes(&self) -> Result<Vec<VolumeReport>, NodeError> {
        self.call(Method::GET, "/volumes", Body::empty(), QUESTION_DEADLINE)
            .await
    }

    async fn volumes_of(&self, project: &ProjectId) -> Result<Vec<VolumeReport>, NodeError> {
        self.question(&format!("/projects/{project}/volumes")).await
    }

    async fn find_volume(
        &self,
        project: &ProjectId,
        name: &VolumeName,
    ) -> Result<VolumeReport, NodeError> {
        self.question(&format!("/volumes/{project}/{name}")).await
    }

    async fn delete_volume(&self, project: &ProjectId, name: &VolumeName) -> Result<(), NodeError> {
        let path = format!("/volumes/{project}/{name}");
        self.call(Method::DELETE, &path, Body::empty(), DELETE_DEADLINE)
            .await
    }
}
