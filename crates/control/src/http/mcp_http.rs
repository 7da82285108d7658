//! `/mcp`: the Model Context Protocol, served by a client of this API in the same process.
//!
//! A request comes through the same doors as any other: its key, its project's share and rate, the
//! audit record. What it makes of it comes through them again, as requests with the same key.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use dayfly_types::{ErrorCode, ProjectId};
use futures::future::BoxFuture;

use super::arrival::Arrival;
use super::auth::Caller;
use super::envelope::OtherShape;
use super::error::ApiError;
use crate::admission::limit::{Permit, TooMany};
use crate::control::Control;

pub(crate) const PATH: &str = "/mcp";

/// What serves `/mcp`.
pub trait McpService: Send + Sync + 'static {
    /// Serves a request.
    fn serve(
        &self,
        caller: McpCaller,
        request: Request,
    ) -> BoxFuture<'static, Result<Response, McpRefusal>>;
}

/// Whose a request is, and what its project may have at once.
#[derive(Debug, Clone)]
pub struct McpCaller {
    control: Arc<Control>,
    project: ProjectId,
    key_prefix: String,
    is_secure: bool,
    client: Option<IpAddr>,
}

impl McpCaller {
    /// Whether its request came over TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Who asked, as the audit record has it.
    #[must_use]
    pub fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// What its key is known by.
    #[must_use]
    pub fn key_prefix(&self) -> &str {
        &self.key_prefix
    }

    /// # Errors
    /// [`TooMany`] when the project has its share of sessions.
    pub fn session(&self) -> Result<Permit, TooMany> {
        self.control.limits.mcp_session(&self.project)
    }

    /// # Errors
    /// [`TooMany`] when the project has its share of long messages.
    pub fn long_message(&self) -> Result<Permit, TooMany> {
        self.control.limits.mcp_message(&self.project)
    }
}

/// Why a request was not served, in words of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpRefusal {
    pub code: ErrorCode,
    pub message: String,
}

/// What the route needs.
#[derive(Clone)]
pub(crate) struct McpRoute {
    pub(crate) control: Arc<Control>,
    pub(crate) service: Arc<dyn McpService>,
}

pub(crate) async fn serve(
    State(route): State<McpRoute>,
    Extension(caller): Extension<Caller>,
    arrival: Option<Extension<Arrival>>,
    request: Request,
) -> Response {
    let arrival = arrival.map(|Extension(arrival)| arrival);
    let caller = McpCaller {
        control: route.control,
        project: caller.project,
        key_prefix: caller.key_prefix,
        is_secure: arrival.is_some_and(|arrival| arrival.is_secure),
        client: arrival.map(|arrival| arrival.client),
    };
    match route.service.serve(caller, request).await {
        Ok(mut response) => {
            response.extensions_mut().insert(OtherShape);
            response
        }
        Err(refusal) => ApiError::new(refusal.code, refusal.message).into_response(),
    }
}
