//! The part of the server that leads into sandboxes.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::get;
use dayfly_types::{ErrorCode, SandboxId};
use http::{StatusCode, header};
use hyper_util::rt::TokioIo;

use crate::api::NodeApi;
use crate::error::NodeError;
use crate::ingress::PROTOCOL;
use crate::server::{Answer, Node, json};

pub(crate) fn routes() -> Router<Arc<dyn NodeApi>> {
    Router::new()
        .route("/sandboxes/{id}/ports", get(ports))
        .route("/sandboxes/{id}/ports/{port}/stream", get(connect_port))
}

async fn ports(State(node): Node, Path(id): Path<SandboxId>) -> Answer {
    json(&node.ports(&id).await?)
}

/// Answers `101` once somebody in the sandbox has accepted, and is a plain connection from then on.
async fn connect_port(
    State(node): Node,
    Path((id, port)): Path<(SandboxId, u16)>,
    mut request: Request,
) -> Answer {
    let is_ours = |value: &http::HeaderValue| value.as_bytes() == PROTOCOL.as_bytes();
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
        .header(header::UPGRADE, PROTOCOL)
        .body(Body::empty())
        .map_err(|_| NodeError::internal("cannot form an answer").into())
}
