//! What a sandbox's state can become.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{ChangeLifecycle, Lifecycle, RollbackSandbox, Sandbox, WakeSandbox};
use dayfly_types::{SandboxId, SnapshotId};
use http::StatusCode;

use crate::control::Control;
use crate::http::answer::{ChangeRefusals, StateRefusals};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::SandboxParameter;
use crate::input::Invalid;
use crate::sandbox::environment::Environment;
use crate::sandbox::lifetime;
use crate::sandbox::state::{self, StateChange};

/// Stops the guest's CPUs. Memory stays where it is. May be repeated.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/pause", operation_id = "pause_sandbox", tag = "states", params(SandboxParameter),
    responses((status = 204, description = "It is paused."), StateRefusals))]
pub(crate) async fn pause(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
) -> Result<StatusCode, ApiError> {
    change(&control, &caller, &id, StateChange::Pause).await
}

/// Lets a paused guest go on. May be repeated.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/resume", operation_id = "resume_sandbox", tag = "states", params(SandboxParameter),
    responses((status = 204, description = "It runs."), StateRefusals))]
pub(crate) async fn resume(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
) -> Result<StatusCode, ApiError> {
    change(&control, &caller, &id, StateChange::Resume).await
}

/// Moves a sandbox to disk; no process and no memory are left. The next call that needs the guest
/// wakes it. May be repeated.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/hibernate", operation_id = "hibernate_sandbox", tag = "states", params(SandboxParameter),
    responses((status = 204, description = "It is on disk."), StateRefusals))]
pub(crate) async fn hibernate(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
) -> Result<StatusCode, ApiError> {
    change(&control, &caller, &id, StateChange::Hibernate).await
}

/// Brings a hibernated sandbox back. May be repeated. With `env` its environment variables are
/// replaced, also of one that runs.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/wake", operation_id = "wake_sandbox", tag = "states", params(SandboxParameter),
    request_body(content = Option<WakeSandbox>),
    responses((status = 204, description = "It runs."), ChangeRefusals))]
pub(crate) async fn wake(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<WakeSandbox>,
) -> Result<StatusCode, ApiError> {
    let environment = body.env.map(Environment::parse).transpose()?;
    state::wake(control, caller.project, id, environment).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn change(
    control: &Control,
    caller: &Caller,
    id: &SandboxId,
    change: StateChange,
) -> Result<StatusCode, ApiError> {
    state::change(control, &caller.project, id, change).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a sandbox back to a snapshot of its own, in place.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/rollback", operation_id = "rollback_sandbox", tag = "states", params(SandboxParameter),
    request_body = RollbackSandbox,
    responses((status = 200, body = Sandbox), ChangeRefusals))]
pub(crate) async fn rollback(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<RollbackSandbox>,
) -> Result<Json<Sandbox>, ApiError> {
    let snapshot = SnapshotId::parse(&body.snapshot_id)
        .map_err(|error| Invalid::field("snapshot_id", format!("is not an id: {error}")))?;
    let environment = body.env.map(Environment::parse).transpose()?;
    let rolled = state::rollback(control, caller.project, id, snapshot, environment).await?;
    Ok(Json(rolled))
}

/// How long the sandbox lives.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/lifecycle", operation_id = "get_lifecycle", tag = "states", params(SandboxParameter),
    responses((status = 200, body = Lifecycle), StateRefusals))]
pub(crate) async fn lifecycle(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
) -> Result<Json<Lifecycle>, ApiError> {
    let lifecycle = state::lifecycle(&control, &caller.project, &id).await?;
    Ok(Json(lifecycle))
}

/// Changes how long the sandbox lives. What is absent stays; a null takes away; a time to live
/// counts from now.
#[utoipa::path(patch, path = "/v1/sandboxes/{id}/lifecycle", operation_id = "set_lifecycle", tag = "states", params(SandboxParameter),
    request_body(content = Option<ChangeLifecycle>),
    responses((status = 200, body = Lifecycle), ChangeRefusals))]
pub(crate) async fn set_lifecycle(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<ChangeLifecycle>,
) -> Result<Json<Lifecycle>, ApiError> {
    let change = lifetime::change(body)?;
    let lifecycle = state::set_lifecycle(&control, &caller.project, &id, change).await?;
    Ok(Json(lifecycle))
}
