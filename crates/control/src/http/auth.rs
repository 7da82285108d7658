//! Who is asking, and whether they may.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use dayfly_api::Hint;
use dayfly_node_api::unread::DrainFor;
use dayfly_types::limits::ENDED_KEY_RECORDS_PER_SECOND;
use dayfly_types::{ErrorCode, ProjectId};
use http::header::{CACHE_CONTROL, REFERRER_POLICY};
use http::{HeaderValue, Method, Uri};

use super::access::{self, Denied, is_file_path};
use super::access_log::AskedBy;
use super::address::with_path;
use super::arrival::Arrival;
use super::audit::{AuditedRequest, PendingAudit, asked};
use super::error::ApiError;
use super::key_bound::{bound_answer, bound_body};
use crate::admission::limit::Permit;
use crate::control::{Control, LookedUp};
use crate::gateway::{link_token, without_token};
use crate::sandbox::name;
use crate::sandbox::read::FindError;
use crate::store::{KeyRow, KnownKey, LimitsRow, ProjectState};
use crate::tenancy::key::bearer;
use crate::tenancy::key_ends::KeyEnd;
use crate::tenancy::scope::{Reach, Scope};
use crate::tenancy::{sign_in, sign_in_http};
use crate::trace;

/// What anybody may ask.
pub(super) const OPEN_PATHS: [&str; 2] = ["/health", "/ready"];
const ME_PATH: &str = "/v1/me";
const TOKENS_PATH: &str = "/v1/me/tokens/";
/// How long what a caller still sends is read and thrown away after its key has ended.
const ENDED_DRAIN: Duration = Duration::from_millis(200);

/// The owner of the key that came with the request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) project: ProjectId,
    pub(crate) key_prefix: String,
    pub(crate) reach: Reach,
    pub(crate) expires_at_ms: Option<i64>,
    pub(crate) limits: LimitsRow,
    pub(crate) end: KeyEnd,
    pub(crate) notebook: Arc<PendingAudit>,
}

/// Middleware: refuses every request without a key that may do it, except the questions for
/// health and readiness and those of people who sign in. It stands before routing, so that a
/// stranger cannot learn which paths exist, and before every look-up but that of a name, so that a
/// key without a right learns nothing either.
pub(crate) async fn require_key(
    State(control): State<Arc<Control>>,
    mut request: Request,
    next: Next,
) -> Response {
    if is_open(&request) {
        return next.run(request).await;
    }
    if sign_in_http::is_for_it(&request) {
        return match sign_in::place(&control) {
            Ok(_place) => next.run(request).await,
            Err(error) => ApiError::from(error).into_response(),
        };
    }
    let presented = match bearer(request.headers()) {
        Some(key) => Some(Presented::InHeader(key.to_owned())),
        None => take_link_token(&mut request).map(Presented::InAddress),
    };
    let is_by_link = matches!(presented, Some(Presented::InAddress(_)));
    let asked = asked(&request);
    let identified = trace::stage("control.identify", identify(&control, presented, &asked)).await;
    let (known, end) = match identified {
        Ok(known) => known,
        Err(error) => return error.into_response(),
    };
    if let Some(arrival) = request.extensions().get::<Arrival>() {
        control.connections.has_shown_a_key(arrival.peer.ip());
    }
    let KnownKey { key, limits, state } = known;
    let notebook = PendingAudit::new(&control.audit, &key.project, &key.prefix, asked);
    let notebook = Arc::new(notebook);
    let asked_by = AskedBy {
        project: key.project.clone(),
        key_prefix: key.prefix.clone(),
    };
    let caller = Caller {
        end: end.clone(),
        project: key.project,
        key_prefix: key.prefix,
        reach: key.reach,
        expires_at_ms: key.expires_at_ms,
        limits,
        notebook: Arc::clone(&notebook),
    };
    // Also when the caller hangs up before the answer: the work may go on.
    let unanswered = notebook.until_answered();
    // The rate first: what a suspended project is refused is recorded, and must not be without end.
    let is_usable = within_rate(&control, &caller);
    if is_usable.is_ok() {
        // Nor must what is sent to whoever collects traces.
        trace::caller_is_known();
    }
    let admitted = match is_usable.and_then(|()| ensure_active(&state, &caller, &request)) {
        Ok(()) => admit(&control, &caller, &mut request).await,
        Err(error) => Err(error),
    };
    let response = match admitted {
        Ok(_place) => {
            request.extensions_mut().insert(caller);
            run_until(&end, request, next).await
        }
        Err(error) => error.into_response(),
    };
    unanswered.answer(response.status()).await;
    let mut response = bound_answer(response, end);
    response.extensions_mut().insert(asked_by);
    if is_by_link {
        // Without a key in the header a cache would think that everybody may have it.
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
    response
}

/// Handles a request for as long as its key lasts. What was begun in the background goes on, as it
/// does when a caller hangs up; nothing is begun any more.
async fn run_until(end: &KeyEnd, request: Request, next: Next) -> Response {
    if ends_a_key(&request) {
        return next.run(request).await;
    }
    let request = request.map(|body| bound_body(body, end.clone()));
    let mut response = tokio::select! {
        biased;
        () = end.reached() => key_ended().into_response(),
        response = next.run(request) => response,
    };
    // The body may have noticed first, and its handler have answered for it.
    if end.is_over() {
        response.extensions_mut().insert(DrainFor(ENDED_DRAIN));
    }
    response
}

/// Whether a request may be about the end of the very key that it came with, which must be told.
/// It has no body and starts nothing.
fn ends_a_key(request: &Request) -> bool {
    *request.method() == Method::DELETE && request.uri().path().starts_with(TOKENS_PATH)
}

/// What a caller is told whose key ends before the answer.
pub(crate) fn key_ended() -> ApiError {
    let text = "the API key of this request was revoked or has expired meanwhile";
    ApiError::new(ErrorCode::Unauthorized, text).hint(Hint::KeyEnded)
}

/// Whether this is a request that anybody may make.
pub(crate) fn is_open(request: &Request) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    reads && OPEN_PATHS.contains(&request.uri().path())
}

/// How a key came with a request.
enum Presented {
    InHeader(String),
    InAddress(String),
}

/// The key of a link to a file, which is taken out of the address.
fn take_link_token(request: &mut Request) -> Option<String> {
    let address = request.uri();
    let query = address.query().filter(|_| is_file_path(address.path()))?;
    let token = link_token(query)?.to_owned();
    let rest = format!("{}?{}", address.path(), without_token(query));
    *request.uri_mut() = with_path(address, &rest)?;
    Some(token)
}

fn wants_a_key(text: &str) -> ApiError {
    ApiError::new(ErrorCode::Unauthorized, text).hint(Hint::SendKey)
}

async fn identify(
    control: &Control,
    presented: Option<Presented>,
    asked: &AuditedRequest,
) -> Result<(KnownKey, KeyEnd), ApiError> {
    let (key, is_in_address) = match presented {
        Some(Presented::InHeader(key)) => (key, false),
        Some(Presented::InAddress(key)) => (key, true),
        None => {
            return Err(wants_a_key("this needs an API key"));
        }
    };
    match control.look_up_key(&key).await? {
        // Addresses are kept in many places: what is in one must be for one file, and short-lived.
        LookedUp::Usable(known, _) if is_in_address && known.key.reach.file.is_none() => {
            let text = "this API key does not belong into an address";
            return Err(wants_a_key(text));
        }
        LookedUp::Usable(known, end) => return Ok((*known, end)),
        LookedUp::Ended(key) => record_ended(control, &key, asked).await,
        LookedUp::Unknown => {}
    }
    Err(ApiError::new(
        ErrorCode::Unauthorized,
        "this API key is not known, expired or revoked",
    ))
}

/// Somebody uses a key that is over: its project wants to know.
async fn record_ended(control: &Control, key: &KeyRow, asked: &AuditedRequest) {
    let most = Some(ENDED_KEY_RECORDS_PER_SECOND);
    let counted = control.rates.request(&key.project, most, Instant::now());
    if counted.is_ok() {
        let status = ErrorCode::Unauthorized.http_status();
        let entry = asked.entry(&key.project, &key.prefix, status);
        control.audit.record(entry).await;
    }
}

fn within_rate(control: &Control, caller: &Caller) -> Result<(), ApiError> {
    // Who sets the limits must not be locked out by one.
    if caller.reach.scopes.has(Scope::Operator) {
        return Ok(());
    }
    let per_second = caller.limits.requests_per_second;
    let rates = &control.rates;
    Ok(rates.request(&caller.project, per_second, Instant::now())?)
}

async fn admit(
    control: &Control,
    caller: &Caller,
    request: &mut Request,
) -> Result<Permit, ApiError> {
    // Whether there is such a name changes nothing about what the key may do.
    let only = caller.reach.sandbox.as_ref();
    let named = match names_a_project(request.uri()) {
        // It is not one of the caller's project that is named.
        true => None,
        false => name::in_address(&control.store, &caller.project, only, request.uri()).await?,
    };
    if let Some((id, address)) = named {
        caller.notebook.names_subject(id.as_str());
        *request.uri_mut() = address;
    }
    access::check(&caller.reach, request.method(), request.uri()).map_err(denied)?;
    Ok(control.limits.request_of(&caller.project)?)
}

/// Refuses what comes with a key of a project that may not be used, except the question whose key
/// it is.
fn ensure_active(state: &ProjectState, caller: &Caller, request: &Request) -> Result<(), ApiError> {
    let why = match state {
        ProjectState::Active => return Ok(()),
        ProjectState::Suspended { .. } if is_about_the_key(request) => return Ok(()),
        ProjectState::Suspended { reason } => format!("is suspended: {reason}"),
        ProjectState::Deleting => "is being deleted".to_owned(),
        ProjectState::Deleted => "was deleted".to_owned(),
    };
    let text = format!("project {} {why}", caller.project);
    Err(ApiError::new(ErrorCode::ProjectSuspended, text))
}

fn is_about_the_key(request: &Request) -> bool {
    *request.method() == Method::GET && request.uri().path() == ME_PATH
}

/// Whether the query says whose thing the path names.
fn names_a_project(address: &Uri) -> bool {
    let query = address.query().unwrap_or_default();
    query.split('&').any(|pair| pair.starts_with("project="))
}

/// What a caller is told whose key may not be used so.
pub(crate) fn denied(denied: Denied) -> ApiError {
    let forbidden =
        |text: String| ApiError::new(ErrorCode::Forbidden, text).hint(Hint::KeyPermissions);
    match denied {
        Denied::Scope(scope) => forbidden(format!(
            "this key does not have the scope `{}`",
            scope.as_str()
        )),
        Denied::OnlyOneFile => {
            let text = "this key is for one file, and for one thing to do with it";
            ApiError::new(ErrorCode::Forbidden, text)
        }
        Denied::OnlyOneSandbox => forbidden("this key is for one sandbox".to_owned()),
        // As if it were not there.
        Denied::OtherSandbox(id) => FindError::NotFound { id }.into(),
        Denied::NoSuchRoute => ApiError::new(ErrorCode::NoSuchRoute, "there is no such path"),
    }
}
