//! Sandboxes.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{CreateSandbox, Sandbox, SandboxList};
use http::{HeaderMap, StatusCode};

use crate::control::Control;
use crate::http::answer::{CreateRefusals, DeleteRefusals, FindRefusals, SearchRefusals};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::{IdempotencyParameters, SandboxParameter, idempotency_key};
use crate::sandbox::list_query::ListParameter;
use crate::sandbox::spec::NewSandbox;
use crate::sandbox::{create, delete, list, name, read};
use crate::tenancy::whose::{OtherProjectParameter, WhoseParameter};

/// Makes a sandbox and waits until it runs.
#[utoipa::path(post, path = "/v1/sandboxes", operation_id = "create_sandbox", tag = "sandboxes", params(IdempotencyParameters),
    request_body(content = Option<CreateSandbox>),
    responses((status = 201, body = Sandbox), CreateRefusals))]
pub(crate) async fn create(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonObject(body): JsonObject<CreateSandbox>,
) -> Result<(StatusCode, Json<Sandbox>), ApiError> {
    let key = idempotency_key(&headers)?;
    let internal = control.internal_networks.of(&caller.project);
    let new = NewSandbox::parse(body, &internal)?;
    let under_way = control.rates.create(&caller.project, Instant::now())?;
    let project = caller.project.clone();
    let sandbox = create::create(control, project, new, key, under_way).await?;
    caller.notebook.names_subject(&sandbox.id);
    Ok((StatusCode::CREATED, Json(sandbox)))
}

/// Sandboxes that were not deleted, oldest first: all, or those that have everything that the query
/// names.
#[utoipa::path(get, path = "/v1/sandboxes", operation_id = "list_sandboxes", tag = "sandboxes", params(ListParameter, WhoseParameter),
    responses((status = 200, body = SandboxList), SearchRefusals))]
pub(crate) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    whose: WhoseParameter,
    wanted: ListParameter,
) -> Result<Json<SandboxList>, ApiError> {
    let whose = whose.of(&control, &caller).await?;
    let list = list::list(&control, &whose, &wanted.into()).await?;
    Ok(Json(list))
}

/// One sandbox.
#[utoipa::path(get, path = "/v1/sandboxes/{id}", operation_id = "get_sandbox", tag = "sandboxes", params(SandboxParameter),
    responses((status = 200, body = Sandbox), FindRefusals))]
pub(crate) async fn get(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
) -> Result<Json<Sandbox>, ApiError> {
    Ok(Json(read::get(&control, &caller.project, &id).await?))
}

/// Deletes a sandbox, whatever it is doing. May be repeated. An operator may delete one of any
/// project.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}", operation_id = "delete_sandbox", tag = "sandboxes",
    params(SandboxParameter, OtherProjectParameter),
    responses((status = 204, description = "It is gone."), DeleteRefusals))]
pub(crate) async fn delete(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    whose: OtherProjectParameter,
) -> Result<StatusCode, ApiError> {
    let is_elsewhere = whose.project.is_some();
    let project = whose.of(&control, &caller).await?;
    caller.notebook.is_also_of(&project);
    let id = if is_elsewhere {
        // A name in the address is one of the caller's own project alone.
        let meant = name::meant(&control.store, &project, id).await?;
        caller.notebook.names_subject(meant.as_str());
        meant
    } else {
        id
    };
    delete::delete(control, project, id, &caller.key_prefix).await?;
    Ok(StatusCode::NO_CONTENT)
}
