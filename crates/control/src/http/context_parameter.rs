//! A context in the path.

use axum::extract::FromRequestParts;
use dayfly_types::{ExecId, SandboxId};
use http::request::Parts;
use utoipa::IntoParams;

use super::error::ApiError;
use super::parameter::named;

/// Contexts have names of the same kind as execs.
#[derive(Debug)]
pub(super) struct ContextParameter {
    pub(super) sandbox: SandboxId,
    pub(super) context: ExecId,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct ContextParameters {
    /// The sandbox.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    id: String,
    /// The context.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    sid: String,
}

impl<S: Send + Sync> FromRequestParts<S> for ContextParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let sandbox = named(parts, state, "id", "sandbox", SandboxId::parse).await?;
        let context = named(parts, state, "sid", "context", ExecId::parse).await?;
        Ok(Self { sandbox, context })
    }
}
