//! The part of the server that serves what a sandbox's state can become.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::routing::{delete, get, post};
use dayfly_types::{ProjectId, SandboxId, SnapshotId, VolumeName};

use crate::api::NodeApi;
use crate::server::{Answer, Node, json, parse};

pub(crate) fn routes() -> Router<Arc<dyn NodeApi>> {
    Router::new()
        .route("/sandboxes/{id}/pause", post(pause))
        .route("/sandboxes/{id}/resume", post(resume))
        .route("/sandboxes/{id}/hibernate", post(hibernate))
        .route("/sandboxes/{id}/wake", post(wake))
        .route("/sandboxes/{id}/rollback/{snapshot}", post(rollback))
        .route(
            "/sandboxes/{id}/lifecycle",
            get(lifecycle).patch(set_lifecycle),
        )
        .route("/sandboxes/{id}/snapshots", post(snapshot))
        .route("/sandboxes/{id}/fork", post(fork))
        .route("/snapshots", get(snapshots))
        .route(
            "/snapshots/{id}",
            delete(delete_snapshot).get(find_snapshot),
        )
        .route("/projects/{project}/snapshots", get(snapshots_of))
        .route("/volumes", get(volumes).put(ensure_volume))
        .route(
            "/volumes/{project}/{name}",
            delete(delete_volume).get(find_volume),
        )
        .route("/projects/{project}/volumes", get(volumes_of))
}

async fn pause(State(node): Node, Path(id): Path<SandboxId>) -> Answer {
    json(&node.pause(&id).await?)
}

async fn resume(State(node): Node, Path(id): Path<SandboxId>) -> Answer {
    json(&node.resume(&id).await?)
}

async fn hibernate(State(node): Node, Path(id): Path<SandboxId>) -> Answer {
    json(&node.hibernate(&id).await?)
}

async fn wake(State(node): Node, Path(id): Path<SandboxId>) -> Answer {
    json(&node.wake(&id).await?)
}

async fn rollback(
    State(node): Node,
    Path((id, snapshot)): Path<(SandboxId, SnapshotId)>,
) -> Answer {
    json(&node.rollback(&id, &snapshot).await?)
}

async fn lifecycle(State(node): Node, Path(id): Path<SandboxId>) -> Answer {
    json(&node.lifecycle(&id).await?)
}

async fn set_lifecycle(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    json(&node.set_lifecycle(&id, parse(&body)?).await?)
}

async fn snapshot(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    json(&node.snapshot(&id, parse(&body)?).await?)
}

async fn snapshots(State(node): Node) -> Answer {
    json(&node.snapshots().await?)
}

async fn snapshots_of(State(node): Node, Path(project): Path<ProjectId>) -> Answer {
    json(&node.snapshots_of(&project).await?)
}

async fn find_snapshot(State(node): Node, Path(id): Path<SnapshotId>) -> Answer {
    json(&node.find_snapshot(&id).await?)
}

async fn delete_snapshot(State(node): Node, Path(id): Path<SnapshotId>) -> Answer {
    json(&node.delete_snapshot(&id).await?)
}

async fn fork(State(node): Node, Path(id): Path<SandboxId>, body: Bytes) -> Answer {
    json(&node.fork(&id, parse(&body)?).await?)
}

async fn ensure_volume(State(node): Node, body: Bytes) -> Answer {
    json(&node.ensure_volume(parse(&body)?).await?)
}

async fn volumes(State(node): Node) -> Answer {
    json(&node.volumes().await?)
}

async fn volumes_of(State(node): Node, Path(project): Path<ProjectId>) -> Answer {
    json(&node.volumes_of(&project).await?)
}

async fn find_volume(
    State(node): Node,
    Path((project, name)): Path<(ProjectId, VolumeName)>,
) -> Answer {
    json(&node.find_volume(&project, &name).await?)
}

async fn delete_volume(
    State(node): Node,
    Path((project, name)): Path<(ProjectId, VolumeName)>,
) -> Answer {
    json(&node.delete_volume(&project, &name).await?)
}
