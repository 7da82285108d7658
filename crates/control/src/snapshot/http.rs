//! Snapshots.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{CreateSnapshot, Snapshot, SnapshotList};
use http::{HeaderMap, StatusCode};

use crate::control::Control;
use crate::http::answer::{ChangeRefusals, NodeFindRefusals, NodeSearchRefusals, RemoveRefusals};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::{
    IdempotencyParameters, OfSandbox, SandboxParameter, SnapshotParameter, idempotency_key,
    parameters,
};
use crate::sandbox::name;
use crate::snapshot::take::{NewSnapshot, Taker};
use crate::snapshot::{read, take};

/// Takes a snapshot of a sandbox that goes on.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/snapshots", operation_id = "create_snapshot", tag = "snapshots",
    params(SandboxParameter, IdempotencyParameters),
    request_body(content = Option<CreateSnapshot>),
    responses((status = 201, body = Snapshot), ChangeRefusals))]
pub(crate) async fn take(
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
    let snapshot = take::take(control, taker, id, new, key).await?;
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
pub(crate) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    OfSandboxParameter { sandbox_id }: OfSandboxParameter,
) -> Result<Json<SnapshotList>, ApiError> {
    let (node, project) = (control.node.as_ref(), &caller.project);
    let sandbox = match sandbox_id {
        Some(text) => Some(name::meant(&control.store, project, text).await?),
        None => None,
    };
    let snapshots = read::list(node, project, sandbox.as_ref()).await?;
    Ok(Json(SnapshotList { snapshots }))
}

/// One snapshot.
#[utoipa::path(get, path = "/v1/snapshots/{id}", operation_id = "get_snapshot", tag = "snapshots", params(SnapshotParameter),
    responses((status = 200, body = Snapshot), NodeFindRefusals))]
pub(crate) async fn get(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SnapshotParameter { id }: SnapshotParameter,
) -> Result<Json<Snapshot>, ApiError> {
    let report = read::find(control.node.as_ref(), &caller.project, &id).await?;
    Ok(Json(read::present(report)))
}

/// Deletes a snapshot. What was made from it stays. May be repeated.
#[utoipa::path(delete, path = "/v1/snapshots/{id}", operation_id = "delete_snapshot", tag = "snapshots", params(SnapshotParameter),
    responses((status = 204, description = "It is gone."), RemoveRefusals))]
pub(crate) async fn delete(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SnapshotParameter { id }: SnapshotParameter,
) -> Result<StatusCode, ApiError> {
    read::delete(control.node.as_ref(), &caller.project, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
