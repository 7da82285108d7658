//! What listens in sandboxes, and who may reach it without a key.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::{Extension, Json};
use dayfly_api::{CreatePortLink, Hint, PortLink, PortLinkList, PortList, WaitForPort};
use dayfly_types::{ErrorCode, SandboxId};
use http::StatusCode;
use http::header::HOST;
use http::request::Parts;
use http::uri::{Authority, Scheme};

use crate::control::Control;
use crate::gateway::ApiAddress;
use crate::http::Arrival;
use crate::http::answer::{ChangeRefusals, FindRefusals, StateRefusals};
use crate::http::auth::{Caller, key_ended};
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::{LinkName, Port, SandboxParameter, parameters};
use crate::ports::links::{self, PortError};
use crate::ports::wait::{self, WaitPortError};
use crate::store::PortOf;
use crate::tenancy::tokens_http::maker;

parameters! {
    /// A port in the path.
    Path PortParameter {
        /// The sandbox.
        id: SandboxId,
        /// The port in the sandbox.
        port: Port,
    }

    /// A link of a port in the path.
    Path LinkParameter {
        /// The sandbox.
        id: SandboxId,
        /// The port in the sandbox.
        port: Port,
        /// The link.
        link: LinkName,
    }
}

/// Others reach services through the same listener.
impl<S: Send + Sync> FromRequestParts<S> for ApiAddress {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let host = parts.headers.get(HOST);
        let host = host.and_then(|value| Authority::try_from(value.as_bytes()).ok());
        let is_secure = match parts.extensions.get::<Arrival>() {
            Some(arrival) => arrival.is_secure,
            // Of a client in this process, which says how its own caller came.
            None => parts.extensions.get::<Scheme>() == Some(&Scheme::HTTPS),
        };
        Ok(Self { host, is_secure })
    }
}

impl PortParameter {
    fn of(self, caller: Caller) -> PortOf {
        PortOf {
            project: caller.project,
            sandbox: self.id,
            port: self.port,
        }
    }
}

/// What listens in the sandbox now. One that is hibernated has nothing, and is not woken.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/ports", operation_id = "list_ports", tag = "ports", params(SandboxParameter),
    responses((status = 200, body = PortList), StateRefusals))]
pub(crate) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    api: ApiAddress,
) -> Result<Json<PortList>, ApiError> {
    let ports = links::list(&control, &caller.project, &id, &api).await?;
    Ok(Json(PortList { ports }))
}

/// Waits until something listens on a port, and returns it. Past `timeout_ms` it is refused with
/// `timeout`. A hibernated sandbox is woken; a wait is use of the sandbox, as a command is, and may
/// be repeated.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/ports/{port}/wait", operation_id = "wait_for_port", tag = "ports", params(PortParameter),
    request_body(content = Option<WaitForPort>, example = json!({"timeout_ms": 30_000})),
    responses((status = 200, body = dayfly_api::Port), ChangeRefusals))]
pub(crate) async fn wait_for(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    PortParameter { id, port }: PortParameter,
    api: ApiAddress,
    JsonObject(body): JsonObject<WaitForPort>,
) -> Result<Json<dayfly_api::Port>, ApiError> {
    let waited = wait::wait(&control, &caller.project, (&id, port), body, &api);
    Ok(Json(waited.await?))
}

/// Opens a port to those who have the token, or to anybody. The token is shown once.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/ports/{port}/links", operation_id = "create_port_link", tag = "ports", params(PortParameter),
    request_body(content = Option<CreatePortLink>),
    responses((status = 201, body = PortLink), ChangeRefusals))]
pub(crate) async fn create_link(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    parameter: PortParameter,
    api: ApiAddress,
    JsonObject(body): JsonObject<CreatePortLink>,
) -> Result<(StatusCode, Json<PortLink>), ApiError> {
    let maker = maker(&caller);
    let of = parameter.of(caller);
    let link = links::create(&control, &of, &body, &maker, &api).await?;
    Ok((StatusCode::CREATED, Json(link)))
}

/// The links of a port that work now, without their tokens.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/ports/{port}/links", operation_id = "list_port_links", tag = "ports", params(PortParameter),
    responses((status = 200, body = PortLinkList), FindRefusals))]
pub(crate) async fn list_links(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    parameter: PortParameter,
    api: ApiAddress,
) -> Result<Json<PortLinkList>, ApiError> {
    let of = parameter.of(caller);
    let items = links::links(&control, &of, &api).await?;
    Ok(Json(PortLinkList { items }))
}

/// The links of all ports of a sandbox that work now, without their tokens.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/links", operation_id = "list_sandbox_links", tag = "ports", params(SandboxParameter),
    responses((status = 200, body = PortLinkList), FindRefusals))]
pub(crate) async fn list_all_links(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    api: ApiAddress,
) -> Result<Json<PortLinkList>, ApiError> {
    let items = links::links_of_sandbox(&control, &caller.project, &id, &api);
    let items = items.await?;
    Ok(Json(PortLinkList { items }))
}

/// Ends a link, and every connection that came by it.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/ports/{port}/links/{link}", operation_id = "revoke_port_link", tag = "ports", params(LinkParameter),
    responses((status = 204), FindRefusals))]
pub(crate) async fn revoke_link(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    LinkParameter { id, port, link }: LinkParameter,
) -> Result<StatusCode, ApiError> {
    let of = PortParameter { id, port }.of(caller);
    links::revoke(control, of, link).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<WaitPortError> for ApiError {
    fn from(error: WaitPortError) -> Self {
        match error {
            WaitPortError::Find(error) => error.into(),
            WaitPortError::Invalid(error) => error.into(),
            WaitPortError::TooMany(error) => error.into(),
            WaitPortError::NothingListens(error) => Self::from(error).hint(Hint::PortTimeout),
            WaitPortError::Node(error) => error.into(),
        }
    }
}

impl From<PortError> for ApiError {
    fn from(error: PortError) -> Self {
        let text = error.to_string();
        match error {
            PortError::Find(error) => error.into(),
            PortError::Invalid(error) => error.into(),
            PortError::MakerEnded => key_ended(),
            PortError::NoLink { .. } => Self::new(ErrorCode::NotFound, text),
            PortError::TooManyLinks => {
                Self::new(ErrorCode::TooMany, text).hint(Hint::RevokePortLinks)
            }
            PortError::Node(error) => error.into(),
            PortError::Store(_) | PortError::Randomness(_) | PortError::Stopped => {
                Self::internal(&error)
            }
        }
    }
}
