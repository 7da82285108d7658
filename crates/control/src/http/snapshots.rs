//! Snapshots.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{CreateSnapshot, Snapshot, SnapshotList};
use http::{HeaderMap, StatusCode};

use super::answer::{ChangeRefusals, NodeFindRefusals, NodeSearchRefusals, RemoveRefusals};
use super::auth::Caller;
use super::body::JsonObject;
use super::error::ApiError;
use super::parameter::{
    IdempotencyParameters, OfSandbox, SandboxParameter, SnapshotParameter, idempotency_key,
    parameters,
};
use crate::app::snapshot_take::{NewSnapshot, Taker};
use crate::app::{snapshot_read, snapshot_take};
use crate::control::Control;

/// Takes a snapshot of a sandbox that goes on.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/snapshots", operation_id = "create_snapshot", tag = "snapshots",
    params(SandboxParameter, IdempotencyParameters),
    request_body(content = Option<CreateSnapshot>),
    responses((status = 201, body = Snapshot), ChangeRefusals))]
pub(super) async fn take(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    headers: HeaderMap,
    JsonObject(body): JsonObject<CreateSnapshot>,
) -> Result<(StatusCode, Json<Snapshot>), ApiError> {
    let key = idempotency_key(&headers)?;
    let new = NewSnapshot::try_from(body)?;
    let taker = Taker {
        project: caller.project,
        limits: caller.limits,
    };
    let snapshot = snapshot_take::take(control, taker, id, new, key).await?;
    Ok((StatusCode::CREATED, Json(snapshot)))
}

parameters! {
    Query OfSandboxParameter {
        /// Only what was taken of this sandbox.
        sandbox_id: Option<OfSandbox>,
    }
}

/// All snapshots of the project, newest first.
#[utoipa::path(get, path = "/v1/snapshots", operation_id = "list_snapshots", tag = "snapshots", params(OfSandboxParameter),
    responses((status = 200, body = SnapshotList), NodeSearchRefusals))]
pub(super) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    OfSandboxParameter { sandbox_id }: OfSandboxParameter,
) -> Result<Json<SnapshotList>, ApiError> {
    let node = control.node.as_ref();
    let snapshots = snapshot_read::list(node, &caller.project, sandbox_id.as_ref()).await?;
    Ok(Json(SnapshotList { snapshots }))
}

/// One snapshot.
#[utoipa::path(get, path = "/v1/snapshots/{id}", operation_id = "get_snapshot", tag = "snapshots", params(SnapshotParameter),
    responses((status = 200, body = Snapshot), NodeFindRefusals))]
pub(super) async fn get(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SnapshotParameter { id }: SnapshotParameter,
) -> Result<Json<Snapshot>, ApiError> {
    let report = snapshot_read::find(control.node.as_ref(), &caller.project, &id).await?;
    Ok(Json(snapshot_read::present(report)))
}

/// Deletes a snapshot. What was made from it stays. May be repeated.
#[utoipa::path(delete, path = "/v1/snapshots/{id}", operation_id = "delete_snapshot", tag = "snapshots", params(SnapshotParameter),
    responses((status = 204, description = "It is gone."), RemoveRefusals))]
pub(super) async fn delete(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SnapshotParameter { id }: SnapshotParameter,
) -> Result<StatusCode, ApiError> {
    snapshot_read::delete(control.node.as_ref(), &caller.project, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
