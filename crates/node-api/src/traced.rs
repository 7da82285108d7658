//! Which trace a call belongs to, on its way to the node, and what the node says of its time.
//!
//! The caller's span goes along as the header `traceparent`; the node puts it on its own lines of
//! the log and says when the call began there and how long it took, in a header of the response.
//! Calls outside of [`traced`] have neither header, and cost nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use dayfly_types::TraceParent;
use dayfly_types::trace::TRACEPARENT;
use http::{HeaderMap, HeaderName, HeaderValue};
use tracing::Instrument as _;

static PARENT: HeaderName = HeaderName::from_static(TRACEPARENT);
static TIMING: HeaderName = HeaderName::from_static("dayfly-timing");

tokio::task_local! {
    static CALL: Arc<TracedCall>;
}

/// What a node says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeTiming {
    /// In Unix microseconds, by the clock of its host.
    pub began_us: u64,
    /// To the head of the response.
    pub took_us: u64,
}

#[derive(Debug)]
struct TracedCall {
    parent: TraceParent,
    timing: Mutex<Option<NodeTiming>>,
}

/// Makes calls in `work` as parts of a span. Gives what the node said of the last of them.
pub async fn traced<T>(
    parent: TraceParent,
    work: impl Future<Output = T>,
) -> (T, Option<NodeTiming>) {
    let call = Arc::new(TracedCall {
        parent,
        timing: Mutex::default(),
    });
    let done = CALL.scope(Arc::clone(&call), work).await;
    let timing = *call.timing.lock().unwrap_or_else(PoisonError::into_inner);
    (done, timing)
}

/// Names the span of this task in a request, if there is one.
pub(crate) fn name_parent(headers: &mut HeaderMap) {
    let parent = CALL.try_with(|call| call.parent.to_string());
    let value = parent
        .ok()
        .and_then(|text| HeaderValue::try_from(text).ok());
    if let Some(value) = value {
        headers.insert(PARENT.clone(), value);
    }
}

/// Notes what the node said, where somebody wants to know.
pub(crate) fn note_timing(headers: &HeaderMap) {
    let Some(value) = headers.get(&TIMING) else {
        return;
    };
    // Outside of a traced call nobody asked.
    let _ = CALL.try_with(|call| {
        let timing = value.to_str().ok().and_then(NodeTiming::parse);
        *call.timing.lock().unwrap_or_else(PoisonError::into_inner) = timing;
    });
}

impl NodeTiming {
    fn parse(text: &str) -> Option<Self> {
        let (began, took) = text.split_once(' ')?;
        Some(Self {
            began_us: began.parse().ok()?,
            took_us: took.parse().ok()?,
        })
    }
}

/// Middleware of the node: tells a traced caller how long its call took.
pub(crate) async fn time_call(request: Request, next: Next) -> Response {
    let parent = request.headers().get(&PARENT);
    let parent = parent.and_then(|value| value.to_str().ok());
    let Some(parent) = parent.and_then(TraceParent::parse) else {
        return next.run(request).await;
    };
    let (wall, began) = (SystemTime::now(), Instant::now());
    let span = tracing::info_span!("call", trace_id = %parent.trace);
    let mut response = next.run(request).instrument(span).await;
    let wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
    let text = format!("{} {}", wall.as_micros(), began.elapsed().as_micros());
    if let Ok(value) = HeaderValue::try_from(text) {
        response.headers_mut().insert(TIMING.clone(), value);
    }
    response
}
