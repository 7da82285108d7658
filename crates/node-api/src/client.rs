//! [`NodeApi`](crate::NodeApi) over HTTP/1.1 on a unix socket.
//!
//! Connections are kept and used again, so a call pays for a connect only when all are busy.
//! Every call has a deadline; streams have a limit of silence instead. Dropping a stream closes
//! its connection, and the node drops its end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use http::{Method, Request, Response, StatusCode, request};
use http_body_util::{BodyExt, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Serialize;

use crate::call::{NodeCall, NodeReply};
use crate::connector::Connector;
use crate::error::NodeError;
use crate::greeting::{Greeting, PROTOCOL_HEADER};
use crate::stream::parse_json;
use crate::traced;

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
    /// The protocol of this node, once it was asked.
    agreed: Arc<Mutex<Option<u16>>>,
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
        let agreed = Arc::default();
        Self { http, agreed }
    }

    fn agreed(&self) -> MutexGuard<'_, Option<u16>> {
        // One number, written whole.
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The protocol that both ends speak, asked for before anything else.
    async fn protocol(&self) -> Result<u16, NodeError> {
        if let Some(protocol) = *self.agreed() {
            return Ok(protocol);
        }
        let ours = Greeting::ours(BTreeMap::new());
        let call = NodeCall::Hello { peer: ours.clone() };
        let request = request(Method::POST, "/call").body(json_body(&call));
        let response = self.exchange(request).await?;
        let NodeReply::Hello(theirs) = parse_json(&collect(response.into_body()).await?)? else {
            return Err(NodeError::internal("the node answered another question"));
        };
        let protocol = ours.agree(&theirs)?;
        *self.agreed() = Some(protocol);
        Ok(protocol)
    }

    /// Sends a request and waits for the head of its answer; a refusal becomes an error.
    pub(crate) async fn open(&self, path: &str, body: Body) -> Result<Response<Body>, NodeError> {
        self.send(request(Method::POST, path), body).await
    }

    /// Sends a request in the protocol that both ends speak.
    pub(crate) async fn send(
        &self,
        request: request::Builder,
        body: Body,
    ) -> Result<Response<Body>, NodeError> {
        let request = request.header(PROTOCOL_HEADER, self.protocol().await?);
        self.exchange(request.body(body)).await
    }

    async fn exchange(
        &self,
        request: Result<Request<Body>, http::Error>,
    ) -> Result<Response<Body>, NodeError> {
        let mut request =
            request.map_err(|_| NodeError::internal("cannot form a request to the node"))?;
        traced::name_parent(request.headers_mut());
        let response = self.http.request(request).await.map_err(|error| {
            tracing::debug!(%error, cause = ?std::error::Error::source(&error), "no answer from the node");
            NodeError::unavailable("the node cannot be reached")
        })?;
        traced::note_timing(response.headers());
        let response = response.map(Body::new);
        let status = response.status();
        if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response);
        }
        if status == StatusCode::UPGRADE_REQUIRED {
            // Another program answers at this socket now.
            *self.agreed() = None;
        }
        let bytes = collect(response.into_body()).await?;
        Err(serde_json::from_slice(&bytes).unwrap_or_else(|_| {
            NodeError::internal(format!("the node refused with status {}", status.as_u16()))
        }))
    }
}

pub(crate) fn request(method: Method, path: &str) -> request::Builder {
    Request::builder()
        .method(method)
        .uri(format!("http://node{path}"))
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

pub(crate) fn json_body<T: Serialize>(value: &T) -> Body {
    // Plain data with string keys always serialises.
    Body::from(serde_json::to_vec(value).unwrap_or_default())
}
