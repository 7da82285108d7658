//! Ports and links of the fake server: one port, and one link of it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use dayfly_api::{CreatePortLink, Hint, WaitForPort};
use serde_json::{Value, json};

use super::server::{Shared, refuse, refuse_at};

pub(super) fn routes() -> Router<Arc<Shared>> {
    let links = "/v1/sandboxes/{id}/ports/{port}/links";
    Router::new()
        .route("/v1/sandboxes/{id}/ports", get(list))
        .route("/v1/sandboxes/{id}/links", get(list_all_links))
        .route("/v1/sandboxes/{id}/ports/{port}/wait", post(wait))
        .route(links, get(list_links).post(create))
        .route(&format!("{links}/{{link}}"), delete(revoke))
}

async fn list(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    let world = shared.world.lock().expect("no test panics with the lock");
    match world
        .sandboxes
        .get(&id)
        .map(|sandbox| sandbox.status.as_str())
    {
        None => refuse(404, "not_found", "no such sandbox", None),
        Some("paused") => Json(json!({"ports": []})).into_response(),
        Some(_) => Json(
            json!({"ports": [{"port": 8000, "address": "0.0.0.0\u{1b}[2J",
            "url": format!("http://8000-{id}.localhost/"), "path_url": "http://a/p/"}]}),
        )
        .into_response(),
    }
}

/// Something listens on port 8000 alone.
async fn wait(Path((_, port)): Path<(String, u16)>, Json(request): Json<WaitForPort>) -> Response {
    if port != 8000 {
        let seconds = request.timeout_ms.unwrap_or_default() / 1000;
        let text = format!("timeout: nothing listens on port {port} after {seconds} s");
        return refuse_at(504, "timeout", &text, Hint::PortTimeout.into(), None);
    }
    let found = json!({"port": port, "address": "127.0.0.1",
        "url": format!("http://{port}-sb.localhost/"), "path_url": "http://a/p/"});
    Json(found).into_response()
}

fn link(port: u16, is_public: bool) -> Value {
    json!({"id": format!("{port}-abc"), "port": port, "public": is_public,
        "url": format!("http://{port}-sb.localhost/"), "path_url": "http://a/path/",
        "created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-01T00:00:00Z"})
}

async fn create(
    Path((_, port)): Path<(String, u16)>,
    Json(request): Json<CreatePortLink>,
) -> Response {
    let mut made = link(port, request.public == Some(true));
    if request.public.is_none() {
        made["token"] = json!("dpt_secret");
        made["url"] = json!(format!(
            "http://{port}-sb.localhost/?dayfly_token=dpt_secret"
        ));
    }
    if request.ttl_seconds == Some(604_801) {
        let text = "ttl_seconds must be from 1 to 604800";
        return refuse(400, "invalid_request", text, None);
    }
    (StatusCode::CREATED, Json(made)).into_response()
}

async fn list_links(Path((_, port)): Path<(String, u16)>) -> Json<Value> {
    Json(json!({"items": [link(port, true)]}))
}

async fn list_all_links() -> Json<Value> {
    Json(json!({"items": [link(80, true), link(8000, false)]}))
}

async fn revoke(Path((_, port, link)): Path<(String, u16, String)>) -> Response {
    if link == format!("{port}-abc") {
        return StatusCode::NO_CONTENT.into_response();
    }
    refuse(404, "not_found", "the port has no such link", None)
}
