//! Sandboxes.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{CreateSandbox, Sandbox, SandboxList};
use http::{HeaderMap, StatusCode};

use super::answer::{CreateRefusals, DeleteRefusals, FindRefusals, SearchRefusals};
use super::auth::Caller;
use super::body::JsonObject;
use super::error::ApiError;
use super::list_query::ListParameter;
use super::parameter::{IdempotencyParameters, SandboxParameter, idempotency_key};
use crate::app::sandbox_spec::NewSandbox;
use crate::app::{sandbox_create, sandbox_delete, sandbox_list, sandbox_read};
use crate::control::Control;

/// Makes a sandbox and waits until it runs.
#[utoipa::path(post, path = "/v1/sandboxes", operation_id = "create_sandbox", tag = "sandboxes", params(IdempotencyParameters),
    request_body(content = Option<CreateSandbox>),
    responses((status = 201, body = Sandbox), CreateRefusals))]
pub(super) async fn create(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonObject(body): JsonObject<CreateSandbox>,
) -> Result<(StatusCode, Json<Sandbox>), ApiError> {
    let key = idempotency_key(&headers)?;
    let new = NewSandbox::try_from(body)?;
    let under_way = control.rates.create(&caller.project, Instant::now())?;
    let project = caller.project.clone();
    let sandbox = sandbox_create::create(control, project, new, key, under_way).await?;
    caller.notebook.names_subject(&sandbox.id);
    Ok((StatusCode::CREATED, Json(sandbox)))
}

/// Sandboxes that were not deleted, oldest first: all, or those that have everything that the query
/// names.
#[utoipa::path(get, path = "/v1/sandboxes", operation_id = "list_sandboxes", tag = "sandboxes", params(ListParameter),
    responses((status = 200, body = SandboxList), SearchRefusals))]
pub(super) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    wanted: ListParameter,
) -> Result<Json<SandboxList>, ApiError> {
    let list = sandbox_list::list(&control, &caller.project, &wanted.into()).await?;
    Ok(Json(list))
}

/// One sandbox.
#[utoipa::path(get, path = "/v1/sandboxes/{id}", operation_id = "get_sandbox", tag = "sandboxes", params(SandboxParameter),
    responses((status = 200, body = Sandbox), FindRefusals))]
pub(super) async fn get(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
) -> Result<Json<Sandbox>, ApiError> {
    Ok(Json(
        sandbox_read::get(&control, &caller.project, &id).await?,
    ))
}

/// Deletes a sandbox, whatever it is doing. May be repeated.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}", operation_id = "delete_sandbox", tag = "sandboxes", params(SandboxParameter),
    responses((status = 204, description = "It is gone."), DeleteRefusals))]
pub(super) async fn delete(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
) -> Result<StatusCode, ApiError> {
    sandbox_delete::delete(control, caller.project, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
