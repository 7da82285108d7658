//! Who is asking, and whether they may.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use dayfly_types::limits::ENDED_KEY_RECORDS_PER_SECOND;
use dayfly_types::{ErrorCode, ProjectId};
use futures::StreamExt;
use http::Method;

use super::access::{self, Denied};
use super::audit::{Asked, Notebook, asked};
use super::error::ApiError;
use crate::app::sandbox_read::FindError;
use crate::control::{Control, LookedUp};
use crate::key::bearer;
use crate::key_ends::KeyEnd;
use crate::scope::{Reach, Scope};
use crate::store::{KeyRow, KnownKey, ProjectLimits};

pub(super) const HEALTH_PATH: &str = "/health";

/// The owner of the key that came with the request.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) project: ProjectId,
    pub(super) key_prefix: String,
    pub(super) reach: Reach,
    pub(super) expires_at_ms: Option<i64>,
    pub(super) limits: ProjectLimits,
    pub(super) end: KeyEnd,
    pub(super) notebook: Arc<Notebook>,
}

/// Middleware: refuses every request without a key that may do it, except the question for
/// health. It stands before routing, so that a stranger cannot learn which paths exist, and before
/// every look-up, so that a key without a right learns nothing either.
pub(super) async fn require_key(
    State(control): State<Arc<Control>>,
    mut request: Request,
    next: Next,
) -> Response {
    if is_health(&request) {
        return next.run(request).await;
    }
    let presented = bearer(request.headers()).map(str::to_owned);
    let asked = asked(&request);
    let known = match identify(&control, presented.as_deref(), &asked).await {
        Ok(known) => known,
        Err(error) => return error.into_response(),
    };
    let KnownKey { key, limits } = known;
    let notebook = Notebook::new(&control.audit, &key.project, &key.prefix, asked);
    let notebook = Arc::new(notebook);
    let caller = Caller {
        end: control.key_ends.of(&key.prefix, key.expires_at_ms),
        project: key.project,
        key_prefix: key.prefix,
        reach: key.reach,
        expires_at_ms: key.expires_at_ms,
        limits,
        notebook: Arc::clone(&notebook),
    };
    let end = caller.end.clone();
    // Also when the caller hangs up before the answer: the work may go on.
    let unanswered = notebook.until_answered();
    let response = match admit(&control, &caller, &request) {
        Ok(()) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    };
    unanswered.answer(response.status()).await;
    until_key_ends(response, end)
}

/// Whether this is the one request that anybody may make.
pub(super) fn is_health(request: &Request) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    reads && request.uri().path() == HEALTH_PATH
}

async fn identify(
    control: &Control,
    presented: Option<&str>,
    asked: &Asked,
) -> Result<KnownKey, ApiError> {
    let presented = presented.ok_or_else(|| {
        ApiError::new(ErrorCode::Unauthorized, "this needs an API key")
            .hint("send the header `Authorization: Bearer <key>`")
    })?;
    match control.look_up_key(presented).await? {
        LookedUp::Usable(known) => return Ok(*known),
        LookedUp::Ended(key) => record_ended(control, &key, asked).await,
        LookedUp::Unknown => {}
    }
    Err(ApiError::new(
        ErrorCode::Unauthorized,
        "this API key is not known, expired or revoked",
    ))
}

/// Somebody uses a key that is over: its project wants to know.
async fn record_ended(control: &Control, key: &KeyRow, asked: &Asked) {
    let most = Some(ENDED_KEY_RECORDS_PER_SECOND);
    let counted = control.rates.request(&key.project, most, Instant::now());
    if counted.is_ok() {
        let status = ErrorCode::Unauthorized.http_status();
        let entry = asked.entry(&key.project, &key.prefix, status);
        control.audit.record(entry).await;
    }
}

fn admit(control: &Control, caller: &Caller, request: &Request) -> Result<(), ApiError> {
    // Who sets the limits must not be locked out by one.
    if !caller.reach.scopes.has(Scope::Operator) {
        let per_second = caller.limits.requests_per_second;
        control
            .rates
            .request(&caller.project, per_second, Instant::now())?;
    }
    access::check(&caller.reach, request.method(), request.uri().path()).map_err(denied)
}

fn denied(denied: Denied) -> ApiError {
    let forbidden = |text: String| {
        ApiError::new(ErrorCode::Forbidden, text)
            .hint("GET /v1/me says what this key may be used for")
    };
    match denied {
        Denied::Scope(scope) => {
            forbidden(format!("this key has not the scope `{}`", scope.as_str()))
        }
        Denied::OnlyOneSandbox => forbidden("this key is for one sandbox".to_owned()),
        // As if it were not there.
        Denied::OtherSandbox(id) => FindError::NotFound { id }.into(),
        Denied::NoSuchRoute => ApiError::new(ErrorCode::NoSuchRoute, "there is no such path"),
    }
}

/// Why an answer was cut off.
#[derive(Debug, thiserror::Error)]
#[error("the key of this request was revoked or has expired")]
struct KeyEnded;

/// Cuts off an answer that is still under way when its key ends. The connection breaks, so that
/// nobody takes a part for the whole.
fn until_key_ends(response: Response, end: KeyEnd) -> Response {
    response.map(|body| {
        if hyper::body::Body::size_hint(&body).exact().is_some() {
            return body;
        }
        let pieces = futures::stream::unfold(Some((body.into_data_stream(), end)), async |state| {
            let (mut pieces, end) = state?;
            tokio::select! {
                biased;
                () = end.reached() => {
                    Some((Err(axum::Error::new(KeyEnded)), None))
                }
                piece = pieces.next() => Some((piece?, Some((pieces, end)))),
            }
        });
        Body::from_stream(pieces)
    })
}
