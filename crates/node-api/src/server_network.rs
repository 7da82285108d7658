//! The part of the server that serves what a sandbox may reach.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use dayfly_types::SandboxId;

use crate::api::NodeApi;
use crate::server::{Answer, Node, json, parse};

pub(crate) fn routes() -> Router<Arc<dyn NodeApi>> {
    Router::new()
        .route("/sandboxes/{id}/network", get(network).put(set_network))
        .route("/sandboxes/{id}/network/log", post(network_log))
}

async fn network(State(node): Node, Path(id): Path<SandboxId>) -> Answer {
    json(&node.network(&id).await?)
}

async fn set_network(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    json(&node.set_network(&id, parse(&body)?).await?)
}

async fn network_log(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    json(&node.network_log(&id, parse(&body)?).await?)
}
