//! Keys and usage of the fake server.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::server::Shared;

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/me", get(me))
        .route("/v1/usage/sandboxes", get(loads))
}

async fn me() -> Json<Value> {
    Json(
        json!({"project": "team-a", "key_prefix": "dfk_ab", "scopes": ["read", "create"],
        "sandbox_id": null}),
    )
}

async fn loads(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let world = shared.world.lock().expect("no test panics with the lock");
    let load = |id: &String| json!({"id": id, "cpu_us": 5, "memory_bytes": 3 << 20});
    let items: Vec<Value> = world.sandboxes.keys().map(load).collect();
    Json(json!({"at_ms": 1000, "items": items}))
}
