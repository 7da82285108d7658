//! What the fake server knows of files beside their content.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::server::{Shared, refuse};

type Parameters = Query<BTreeMap<String, String>>;

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/sandboxes/{id}/fs/tar", get(download).put(upload))
        .route("/v1/sandboxes/{id}/fs/dir", get(list))
        .route("/v1/sandboxes/{id}/fs/watch", get(watch))
        .route("/v1/sandboxes/{id}/fs/changes", get(changes))
        .route("/v1/sandboxes/{id}/fs/links", post(link))
        .route("/v1/sandboxes/{id}/fs/links/{link}", delete(revoke))
        .route("/v1/sandboxes/{id}/fs/{what}", post(edit))
        .route("/v1/sandboxes/{id}/fs", delete(remove))
}

fn note(shared: &Shared, what: Value) {
    let mut world = shared.world.lock().expect("no test panics with the lock");
    world.file_requests.push(what);
}

/// Archives are files of the same path.
async fn upload(
    State(shared): State<Arc<Shared>>,
    Query(query): Parameters,
    body: Bytes,
) -> Response {
    let path = query["path"].clone();
    if path.ends_with("refused") {
        return refuse(
            400,
            "invalid_request",
            "the guest refused the archive",
            None,
        );
    }
    let written = json!({"path": path, "bytes": body.len()});
    let mut world = shared.world.lock().expect("no test panics with the lock");
    world.files.insert(path, body);
    Json(written).into_response()
}

async fn download(State(shared): State<Arc<Shared>>, Query(query): Parameters) -> Response {
    let world = shared.world.lock().expect("no test panics with the lock");
    match world.files.get(&query["path"]) {
        Some(bytes) => bytes.clone().into_response(),
        None => refuse(404, "not_found", "no such file", None),
    }
}

/// Seven entries, three on a page.
async fn list(State(shared): State<Arc<Shared>>, Query(query): Parameters) -> Response {
    note(&shared, json!(query));
    let after = query.get("after").cloned().unwrap_or_default();
    let limit: usize = query["limit"].parse().expect("a number");
    let names = ["a", "a/b", "c\u{1b}[2J", "d", "e", "f", "g"];
    let rest: Vec<&str> = names.into_iter().filter(|name| **name > *after).collect();
    let page = &rest[..rest.len().min(3).min(limit)];
    let entry = |name: &&str| {
        json!({
            "name": name, "path": format!("/x/{name}"), "is_dir": *name == "a", "is_symlink": false,
            "size": 5, "mode": "0644", "mtime": 0, "uid": 1000, "gid": 1000,
        })
    };
    let has_more = page.len() < rest.len();
    let entries: Vec<Value> = page.iter().map(entry).collect();
    let mut answer = json!({"entries": entries, "truncated": has_more, "has_more": has_more});
    if has_more {
        answer["next_after"] = json!(page.last());
    }
    Json(answer).into_response()
}

async fn link(State(shared): State<Arc<Shared>>, Json(body): Json<Value>) -> Response {
    let method = if body["operation"] == "upload" {
        "PUT"
    } else {
        "GET"
    };
    note(&shared, body);
    let made = json!({"id": "dfk_link", "method": method, "address": "/v1/x?dayfly_token=t",
        "expires_at": "2099-01-01T00:00:00Z"});
    (StatusCode::CREATED, Json(made)).into_response()
}

async fn revoke(Path((_, link)): Path<(String, String)>) -> Response {
    if link == "dfk_link" {
        return StatusCode::NO_CONTENT.into_response();
    }
    refuse(404, "not_found", "this key has made no such link", None)
}

async fn edit(
    State(shared): State<Arc<Shared>>,
    Path((_, what)): Path<(String, String)>,
    Json(mut body): Json<Value>,
) -> Response {
    if body["path"] == "/there" {
        return refuse(
            409,
            "already_exists",
            "it exists already in the guest",
            None,
        );
    }
    body["what"] = json!(what);
    note(&shared, body);
    StatusCode::NO_CONTENT.into_response()
}

async fn remove(State(shared): State<Arc<Shared>>, Query(query): Parameters) -> Response {
    note(&shared, json!(query));
    StatusCode::NO_CONTENT.into_response()
}

async fn watch(State(shared): State<Arc<Shared>>, Query(query): Parameters) -> Response {
    note(&shared, json!(query));
    let events = concat!(
        "event: ready\ndata: {}\n\n",
        ": alive\n\n",
        "event: change\ndata: {\"kind\":\"created\",\"path\":\"/x/d\",\"is_dir\":true}\n\n",
        "event: overflow\ndata: {}\n\n",
        "event: change\ndata: {\"kind\":\"moved\",\"path\":\"/x/b\",\"is_dir\":false,",
        "\"from\":\"/x/a\\u001b[2J\"}\n\n",
    );
    let end = if query["path"] == "/lost" {
        "event: error\ndata: {\"error\":\"the guest is gone\",\"code\":\"guest_unavailable\"}\n\n"
    } else {
        "event: end\ndata: {}\n\n"
    };
    let kind = [("content-type", "text/event-stream; charset=utf-8")];
    (kind, format!("{events}{end}")).into_response()
}

async fn changes(State(shared): State<Arc<Shared>>, Query(query): Parameters) -> Response {
    note(&shared, json!(query));
    let changed = |path: &str, kind: &str, is_dir: bool| json!({"path": path, "kind": kind, "is_dir": is_dir, "size": 1, "mtime": 0});
    Json(json!({
        "entries": [changed("/etc/x", "modified", false), changed("/w", "added", true),
            changed("/gone", "removed", false)],
        "truncated": true,
    }))
    .into_response()
}
