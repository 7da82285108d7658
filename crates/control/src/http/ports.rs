//! What listens in sandboxes, and who may reach it without a key.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams, State};
use axum::{Extension, Json};
use dayfly_api::{CreatePortLink, PortLink, PortLinkList, PortList};
use dayfly_types::{ErrorCode, SandboxId};
use http::StatusCode;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use utoipa::IntoParams;

use super::answer::{ChangeRefusals, FindRefusals, StateRefusals};
use super::auth::{Caller, key_ended};
use super::body::JsonObject;
use super::error::ApiError;
use super::parameter::{SandboxParameter, SandboxParameters};
use super::tokens::maker;
use crate::app::port_links::{self, PortError};
use crate::control::Control;
use crate::gateway::parse_port;
use crate::store::PortOf;

/// How the caller reached the API: others reach services through the same listener.
#[derive(Debug)]
pub(super) struct ApiHost(Option<Authority>);

/// A port in the path.
#[derive(Debug)]
pub(super) struct PortParameter {
    sandbox: SandboxId,
    port: u16,
    /// When the path goes on to one.
    link: String,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct PortParameters {
    /// The sandbox.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    id: String,
    /// The port in the sandbox.
    #[param(minimum = 1, maximum = 65535)]
    port: u16,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct LinkParameters {
    /// The sandbox.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    id: String,
    /// The port in the sandbox.
    #[param(minimum = 1, maximum = 65535)]
    port: u16,
    /// The link.
    #[param(pattern = "^[a-z0-9-]{1,50}$")]
    link: String,
}

impl<S: Send + Sync> FromRequestParts<S> for ApiHost {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let host = parts.headers.get(HOST);
        let host = host.and_then(|value| Authority::try_from(value.as_bytes()).ok());
        Ok(Self(host))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PortParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let SandboxParameter(sandbox) = SandboxParameter::from_request_parts(parts, state).await?;
        let no_port = || ApiError::new(ErrorCode::NotFound, "a port is a number from 1 to 65535");
        let parameters = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_| no_port())?;
        let value = |name: &str| {
            let found = parameters.iter().find(|(key, _)| *key == name);
            found.map_or("", |(_, value)| value)
        };
        Ok(Self {
            sandbox,
            port: parse_port(value("port")).ok_or_else(no_port)?,
            link: value("link").to_owned(),
        })
    }
}

impl PortParameter {
    fn of(&self, caller: Caller) -> PortOf {
        PortOf {
            project: caller.project,
            sandbox: self.sandbox.clone(),
            port: self.port,
        }
    }
}

/// What listens in the sandbox now. One that is hibernated has nothing, and is not woken.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/ports", operation_id = "list_ports", tag = "ports", params(SandboxParameters),
    responses((status = 200, body = PortList), StateRefusals))]
pub(super) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter(id): SandboxParameter,
    ApiHost(host): ApiHost,
) -> Result<Json<PortList>, ApiError> {
    let ports = port_links::list(&control, &caller.project, &id, host.as_ref()).await?;
    Ok(Json(PortList { ports }))
}

/// Opens a port to those who have the token, or to anybody. The token is shown once.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/ports/{port}/links", operation_id = "create_port_link", tag = "ports", params(PortParameters),
    request_body(content = Option<CreatePortLink>),
    responses((status = 201, body = PortLink), ChangeRefusals))]
pub(super) async fn create_link(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    parameter: PortParameter,
    ApiHost(host): ApiHost,
    JsonObject(body): JsonObject<CreatePortLink>,
) -> Result<(StatusCode, Json<PortLink>), ApiError> {
    let maker = maker(&caller);
    let of = parameter.of(caller);
    let link = port_links::create(&control, &of, &body, &maker, host.as_ref()).await?;
    Ok((StatusCode::CREATED, Json(link)))
}

/// The links of a port that work now, without their tokens.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/ports/{port}/links", operation_id = "list_port_links", tag = "ports", params(PortParameters),
    responses((status = 200, body = PortLinkList), FindRefusals))]
pub(super) async fn list_links(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    parameter: PortParameter,
    ApiHost(host): ApiHost,
) -> Result<Json<PortLinkList>, ApiError> {
    let of = parameter.of(caller);
    let items = port_links::links(&control, &of, host.as_ref()).await?;
    Ok(Json(PortLinkList { items }))
}

/// The links of all ports of a sandbox that work now, without their tokens.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/links", operation_id = "list_sandbox_links", tag = "ports", params(SandboxParameters),
    responses((status = 200, body = PortLinkList), FindRefusals))]
pub(super) async fn list_all_links(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter(id): SandboxParameter,
    ApiHost(host): ApiHost,
) -> Result<Json<PortLinkList>, ApiError> {
    let items = port_links::links_of_sandbox(&control, &caller.project, &id, host.as_ref());
    let items = items.await?;
    Ok(Json(PortLinkList { items }))
}

/// Ends a link, and every connection that came by it.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/ports/{port}/links/{link}", operation_id = "revoke_port_link", tag = "ports", params(LinkParameters),
    responses((status = 204), FindRefusals))]
pub(super) async fn revoke_link(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    parameter: PortParameter,
) -> Result<StatusCode, ApiError> {
    let of = parameter.of(caller);
    port_links::revoke(control, of, parameter.link).await?;
    Ok(StatusCode::NO_CONTENT)
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
                Self::new(ErrorCode::TooMany, text).hint("revoke some, or wait until they expire")
            }
            PortError::Node(error) => error.into(),
            PortError::Store(_) | PortError::Randomness(_) | PortError::Stopped => {
                Self::internal(&error)
            }
        }
    }
}
