//! Forks, and the choice among their children.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{ForkSandbox, ForkTree, Forked, PromoteSandbox, Promoted};
use http::{HeaderMap, StatusCode};

use crate::control::Control;
use crate::http::answer::{ChangeRefusals, ForkRefusals};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::{IdempotencyParameters, SandboxParameter, idempotency_key};
use crate::sandbox::fork_spec;
use crate::sandbox::{fork, promote};

/// Makes children that continue from this moment of a sandbox. It returns those that were
/// made, and fails when none was.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/fork", operation_id = "fork_sandbox", tag = "forks",
    params(SandboxParameter, IdempotencyParameters),
    request_body(content = Option<ForkSandbox>),
    responses((status = 201, body = Forked), ForkRefusals))]
pub(crate) async fn fork(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    headers: HeaderMap,
    JsonObject(body): JsonObject<ForkSandbox>,
) -> Result<(StatusCode, Json<Forked>), ApiError> {
    let key = idempotency_key(&headers)?;
    let internal = control.internal_networks.of(&caller.project);
    let plan = fork_spec::of_fork(body, &internal)?;
    let under_way = control.rates.create(&caller.project, Instant::now())?;
    let forked = fork::fork(control, caller.project, id, plan, key, under_way).await?;
    Ok((StatusCode::CREATED, Json(forked)))
}

/// As `fork`, with a count that must be given.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/fork-tree", operation_id = "fork_sandbox_tree", tag = "forks",
    params(SandboxParameter, IdempotencyParameters),
    request_body = ForkTree,
    responses((status = 201, body = Forked), ForkRefusals))]
pub(crate) async fn fork_tree(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    headers: HeaderMap,
    JsonObject(body): JsonObject<ForkTree>,
) -> Result<(StatusCode, Json<Forked>), ApiError> {
    let key = idempotency_key(&headers)?;
    let internal = control.internal_networks.of(&caller.project);
    let plan = fork_spec::of_tree(body, &internal)?;
    let under_way = control.rates.create(&caller.project, Instant::now())?;
    let mut forked = fork::fork(control, caller.project, id, plan, key, under_way).await?;
    forked.sandbox = None;
    Ok((StatusCode::CREATED, Json(forked)))
}

/// Keeps one child of a fork, and deletes the others when that is asked for.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/promote", operation_id = "promote_sandbox", tag = "forks", params(SandboxParameter),
    request_body(content = Option<PromoteSandbox>),
    responses((status = 200, body = Promoted), ChangeRefusals))]
pub(crate) async fn promote(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<PromoteSandbox>,
) -> Result<Json<Promoted>, ApiError> {
    let promoted = promote::promote(control, caller.project, id, body, &caller.key_prefix);
    let promoted = promoted.await?;
    Ok(Json(promoted))
}
