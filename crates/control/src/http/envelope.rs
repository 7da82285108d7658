//! Request ids, and the one shape of every error.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use dayfly_api::{ErrorBody, Health};
use dayfly_types::ids::ID_RANDOM_BYTES;
use dayfly_types::{ErrorCode, RequestId};
use http::header::{ALLOW, CONTENT_RANGE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use tracing::{Instrument, field};

use super::access_log;
use super::error::ApiError;
use crate::control::Control;
use crate::trace;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Marks an answer that a service in a sandbox gave, which is not ours to change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FromService;

/// Marks a refusal that has the shape of another protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OtherShape;

/// The refusal of a server that is not well, and all that is wrong.
#[derive(Debug, Serialize)]
struct Unwell {
    #[serde(flatten)]
    body: ErrorBody,
    #[serde(flatten)]
    health: Box<Health>,
}

/// Middleware: names the request, and turns every refusal into the documented envelope, those of
/// the framework included.
pub(crate) async fn wrap(
    State(control): State<Arc<Control>>,
    request: Request,
    next: Next,
) -> Response {
    let id = new_id();
    let tracer = control.tracer.as_ref();
    let trace = tracer.and_then(|tracer| tracer.begin(request.headers()));
    let trace_id = trace.as_ref().map(|trace| field::display(trace.id()));
    let span = tracing::info_span!("request", request_id = %id, method = %request.method(),
        path = request.uri().path(), trace_id);
    let mut request = request;
    request.extensions_mut().insert(id.clone());
    let pending = access_log::Pending::of(Arc::clone(&control), id.clone(), &request);
    let pending = pending.traced(trace.clone());
    let response = trace::within(trace, next.run(request).instrument(span)).await;
    pending.answered(&response);
    if response.extensions().get::<FromService>().is_some() {
        return response;
    }
    let mut response = match refusal(&response) {
        None => response,
        Some(error) => {
            control.metrics.refused(error.code);
            write(error, &id, response)
        }
    };
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(REQUEST_ID.clone(), value);
    }
    response
}

pub(super) fn new_id() -> RequestId {
    let mut random = [0; ID_RANDOM_BYTES];
    // An id that repeats only makes a log harder to read.
    let _ = getrandom::fill(&mut random);
    RequestId::from_random(random)
}

fn refusal(response: &Response) -> Option<ApiError> {
    if let Some(error) = response.extensions().get::<ApiError>() {
        return Some(error.clone());
    }
    if response.extensions().get::<OtherShape>().is_some() {
        return None;
    }
    let status = response.status();
    let refused = status.is_client_error() || status.is_server_error();
    refused.then(|| by_status(status))
}

/// The framework's own refusals carry no more than their status.
fn by_status(status: StatusCode) -> ApiError {
    match status {
        StatusCode::NOT_FOUND => ApiError::new(ErrorCode::NoSuchRoute, "there is no such path"),
        StatusCode::METHOD_NOT_ALLOWED => ApiError::new(
            ErrorCode::MethodNotAllowed,
            "the path does not take this method",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => {
            ApiError::new(ErrorCode::TooLarge, "the body is too large")
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ApiError::new(
            ErrorCode::UnsupportedMediaType,
            "the body must be application/json",
        ),
        status if status.is_client_error() => ApiError::invalid("the request cannot be read"),
        _ => ApiError::new(
            ErrorCode::Internal,
            "the server failed at this; its log says why",
        ),
    }
}

fn write(error: ApiError, id: &RequestId, refused: Response) -> Response {
    let retry_after = error.retry_after_seconds();
    let status = error.status();
    let code = error.code.as_str();
    // A client that waits for room or for a bake asks again and again; that is no fault.
    let is_waiting = matches!(
        error.code,
        ErrorCode::NoCapacity | ErrorCode::TemplateBaking
    );
    if status.is_server_error() && !is_waiting {
        tracing::warn!(request_id = %id, code, reason = error.message, "request refused");
    } else {
        tracing::debug!(request_id = %id, code, reason = error.message, "request refused");
    }
    let unauthorized = error.code == ErrorCode::Unauthorized;
    let body = ErrorBody {
        error: error.message,
        code: error.code.as_str().to_owned(),
        advice: error.hint.map(|hint| *hint).into(),
        request_id: id.to_string(),
        percent: error.percent,
    };
    let mut response = match error.health {
        None => (status, axum::Json(body)).into_response(),
        Some(health) => (status, axum::Json(Unwell { body, health })).into_response(),
    };
    let headers = response.headers_mut();
    if let Some(seconds) = retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if unauthorized {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    for name in [ALLOW, CONTENT_RANGE] {
        if let Some(value) = refused.headers().get(&name) {
            headers.insert(name, value.clone());
        }
    }
    response
}
