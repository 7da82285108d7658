//! The part of the server that is about the node itself and its database.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::routing::{delete, get, post, put};
use dayfly_types::SandboxId;

use crate::api::NodeApi;
use crate::server::{Answer, Node, json, parse};

pub(crate) fn routes() -> Router<Arc<dyn NodeApi>> {
    Router::new()
        .route("/identity", get(identity))
        .route("/identity/database", put(remember_database))
        .route("/identity/accept", post(accept_database))
        .route("/kept/{id}", delete(forget_unreadable))
}

async fn identity(State(node): Node) -> Answer {
    json(&node.identity().await?)
}

async fn remember_database(State(node): Node, body: Bytes) -> Answer {
    json(&node.remember_database(parse(&body)?).await?)
}

async fn accept_database(State(node): Node) -> Answer {
    json(&node.accept_database().await?)
}

async fn forget_unreadable(State(node): Node, Path(id): Path<SandboxId>) -> Answer {
    json(&node.forget_unreadable(&id).await?)
}
