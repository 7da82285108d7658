//! Who is asking.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use dayfly_types::{ErrorCode, ProjectId};
use http::Method;
use http::header::AUTHORIZATION;

use super::error::ApiError;
use crate::control::Control;

pub(super) const HEALTH_PATH: &str = "/health";

/// The owner of the key that came with the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) project: ProjectId,
    pub(super) key_prefix: String,
}

/// Middleware: refuses every request without a valid key, except the question for health.
/// It stands before routing, so that a stranger cannot learn which paths exist.
pub(super) async fn require_key(
    State(control): State<Arc<Control>>,
    mut request: Request,
    next: Next,
) -> Response {
    if is_health(&request) {
        return next.run(request).await;
    }
    let key = bearer(&request).map(str::to_owned);
    match authenticate(&control, key).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// Whether this is the one request that anybody may make.
pub(super) fn is_health(request: &Request) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    reads && request.uri().path() == HEALTH_PATH
}

async fn authenticate(control: &Control, key: Option<String>) -> Result<Caller, ApiError> {
    let key = key.ok_or_else(|| {
        ApiError::new(ErrorCode::Unauthorized, "this needs an API key")
            .hint("send the header `Authorization: Bearer <key>`")
    })?;
    let found = control.find_key(&key).await?;
    let row = found.ok_or_else(|| {
        ApiError::new(
            ErrorCode::Unauthorized,
            "this API key is not known, expired or revoked",
        )
    })?;
    Ok(Caller {
        project: row.project,
        key_prefix: row.prefix,
    })
}

fn bearer(request: &Request) -> Option<&str> {
    let mut values = request.headers().get_all(AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    // Two headers are two callers; neither is believed.
    if values.next().is_some() {
        return None;
    }
    let (scheme, key) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| key.trim_matches(' '))
}
