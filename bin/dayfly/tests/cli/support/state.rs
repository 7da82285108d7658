//! States, snapshots, forks and volumes of the fake server.
//!
//! A fork makes three children at most. A volume named `busy` is in use.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use dayfly_api::{
    Capture, ChangeLifecycle, CreateSnapshot, CreateVolume, ForkSandbox, Forked, GrowVolume,
    Lifecycle, OnTimeout, PromoteSandbox, Promoted, RollbackSandbox, Snapshot, SnapshotList,
    Volume, VolumeList,
};

use super::server::{Shared, World, refuse, sandbox};

const CHILDREN_MAX: u64 = 3;

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/sandboxes/{id}/{change}", post(change))
        .route("/v1/sandboxes/{id}/rollback", post(rollback))
        .route(
            "/v1/sandboxes/{id}/lifecycle",
            get(lifecycle).patch(set_lifecycle),
        )
        .route("/v1/sandboxes/{id}/snapshots", post(take))
        .route("/v1/sandboxes/{id}/fork", post(fork))
        .route("/v1/sandboxes/{id}/promote", post(promote))
        .route("/v1/snapshots", get(snapshots))
        .route("/v1/snapshots/{id}", axum::routing::delete(delete_snapshot))
        .route("/v1/volumes", get(volumes).post(create_volume))
        .route(
            "/v1/volumes/{name}",
            axum::routing::patch(grow_volume).delete(delete_volume),
        )
}

fn with(shared: &Shared, work: impl FnOnce(&mut World) -> Response) -> Response {
    work(&mut shared.world.lock().expect("no test panics with the lock"))
}

fn missing() -> Response {
    refuse(404, "not_found", "no such sandbox", None)
}

async fn change(
    State(shared): State<Arc<Shared>>,
    Path((id, change)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    with(&shared, |world| {
        if change == "wake" {
            world
                .wakes
                .push(serde_json::from_slice(&body).expect("a body that fits"));
        }
        let Some(sandbox) = world.sandboxes.get_mut(&id) else {
            return missing();
        };
        if sandbox.status == "failed" {
            return refuse(
                409,
                "wrong_state",
                "the sandbox is failed",
                Some("delete it"),
            );
        }
        sandbox.status = match change.as_str() {
            "pause" => "paused",
            "hibernate" => "hibernated",
            "resume" | "wake" => "running",
            _ => return refuse(404, "no_such_route", "no such path", None),
        }
        .to_owned();
        StatusCode::NO_CONTENT.into_response()
    })
}

async fn rollback(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Json(body): Json<RollbackSandbox>,
) -> Response {
    with(&shared, |world| {
        world.rollbacks.push(body.clone());
        let known = |snapshot: &&Snapshot| snapshot.id == body.snapshot_id;
        if world.snapshots.iter().find(known).is_none() {
            return refuse(404, "not_found", "no such snapshot", None);
        }
        match world.sandboxes.get(&id) {
            Some(sandbox) => Json(sandbox).into_response(),
            None => missing(),
        }
    })
}

async fn lifecycle(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    with(&shared, |world| match world.sandboxes.contains_key(&id) {
        true => Json(shown(&ChangeLifecycle::default())).into_response(),
        false => missing(),
    })
}

async fn set_lifecycle(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Json(body): Json<ChangeLifecycle>,
) -> Response {
    with(&shared, |world| {
        if !world.sandboxes.contains_key(&id) {
            return missing();
        }
        world.lifecycle_changes.push(body);
        Json(shown(&body)).into_response()
    })
}

fn shown(change: &ChangeLifecycle) -> Lifecycle {
    Lifecycle {
        ttl_seconds: change.ttl_seconds.unwrap_or(Some(3600)),
        persistent: change.persistent.unwrap_or(false),
        idle_seconds: change.idle_seconds.unwrap_or(None),
        on_timeout: change.on_timeout.unwrap_or(OnTimeout::Delete),
        expires_at: None,
        idle_for_seconds: 4,
    }
}

async fn take(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Json(body): Json<CreateSnapshot>,
) -> Response {
    with(&shared, |world| {
        if !world.sandboxes.contains_key(&id) {
            return missing();
        }
        let snapshot = Snapshot {
            id: format!("snap-local-{:026}", world.snapshots.len() + 1),
            sandbox_id: id,
            template: "base".to_owned(),
            name: body.name,
            size_bytes: 3 << 20,
            created_at: "2026-01-01T00:00:00Z".to_owned(),
            expires_at: body
                .retain_seconds
                .map(|_| "2026-01-02T00:00:00Z".to_owned()),
            capture: capture(),
        };
        world.snapshots.push(snapshot.clone());
        (StatusCode::CREATED, Json(snapshot)).into_response()
    })
}

fn capture() -> Capture {
    Capture {
        pause_ms: 1.5,
        ..Capture::default()
    }
}

async fn snapshots(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    with(&shared, |world| {
        let wanted = query.get("sandbox_id");
        let snapshots = world.snapshots.iter().rev();
        let snapshots =
            snapshots.filter(|snapshot| wanted.is_none_or(|id| snapshot.sandbox_id == *id));
        Json(SnapshotList {
            snapshots: snapshots.cloned().collect(),
        })
        .into_response()
    })
}

async fn delete_snapshot(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    with(&shared, |world| {
        world.snapshots.retain(|snapshot| snapshot.id != id);
        StatusCode::NO_CONTENT.into_response()
    })
}

async fn fork(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Json(body): Json<ForkSandbox>,
) -> Response {
    with(&shared, |world| {
        if !world.sandboxes.contains_key(&id) {
            return missing();
        }
        let count = body.count.unwrap_or(1);
        if body.options.all_or_nothing == Some(true) && count > CHILDREN_MAX {
            return refuse(503, "no_capacity", "no room", None);
        }
        world.forks.push(body);
        let name = |number: u64| format!("sb-local-f{number:025}");
        let children: Vec<_> = (1..=count.min(CHILDREN_MAX))
            .map(|number| sandbox(&name(number), "base"))
            .collect();
        for child in &children {
            world.sandboxes.insert(child.id.clone(), child.clone());
        }
        let failures =
            (CHILDREN_MAX + 1..=count).map(|number| (name(number), "no room".to_owned()));
        let forked = Forked {
            sandbox: children.first().cloned(),
            children,
            failures: failures.collect(),
            renewed: vec!["machine id".to_owned()],
            not_renewed: Vec::new(),
            capture: capture(),
        };
        (StatusCode::CREATED, Json(forked)).into_response()
    })
}

async fn promote(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Json(body): Json<PromoteSandbox>,
) -> Response {
    with(&shared, |world| {
        if body.tree_id.as_deref().is_some_and(|tree| tree != "tree-1") {
            return refuse(409, "wrong_state", "of another tree", Some("leave it out"));
        }
        let is_sibling = |known: &&String| known.starts_with("sb-local-f") && **known != id;
        let siblings: Vec<String> = match body.cleanup_siblings {
            Some(true) => world.sandboxes.keys().filter(is_sibling).cloned().collect(),
            Some(false) | None => Vec::new(),
        };
        world.sandboxes.retain(|known, _| !siblings.contains(known));
        Json(Promoted {
            winner: id,
            tree_id: "tree-1".to_owned(),
            deleted: siblings,
            failures: BTreeMap::new(),
        })
        .into_response()
    })
}

async fn create_volume(
    State(shared): State<Arc<Shared>>,
    Json(body): Json<CreateVolume>,
) -> Response {
    with(&shared, |world| {
        if let Some(known) = world.volumes.get(&body.name) {
            return match Some(known.size_mb) == body.size_mb {
                true => Json(known).into_response(),
                false => refuse(
                    409,
                    "already_exists",
                    "it has another size",
                    Some("grow it"),
                ),
            };
        }
        let volume = Volume {
            name: body.name.clone(),
            size_mb: body.size_mb.unwrap_or_default(),
            created_at: "2026-01-01T00:00:00Z".to_owned(),
            used_bytes: 1 << 20,
            writer: (body.name == "busy").then(|| "sb-local-x".to_owned()),
            readers: Vec::new(),
        };
        world.volumes.insert(body.name, volume.clone());
        (StatusCode::CREATED, Json(volume)).into_response()
    })
}

async fn volumes(State(shared): State<Arc<Shared>>) -> Response {
    with(&shared, |world| {
        Json(VolumeList {
            items: world.volumes.values().cloned().collect(),
        })
        .into_response()
    })
}

async fn grow_volume(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Json(body): Json<GrowVolume>,
) -> Response {
    with(&shared, |world| match world.volumes.get_mut(&name) {
        Some(volume) => {
            volume.size_mb = body.size_mb.unwrap_or_default();
            Json(volume).into_response()
        }
        None => refuse(404, "not_found", "no such volume", None),
    })
}

async fn delete_volume(State(shared): State<Arc<Shared>>, Path(name): Path<String>) -> Response {
    with(&shared, |world| {
        if name == "busy" {
            return refuse(409, "volume_busy", "a sandbox has it", None);
        }
        world.volumes.remove(&name);
        StatusCode::NO_CONTENT.into_response()
    })
}
