//! One line in the log for each request: what was asked, by whom, and what came of it.
//!
//! The address itself is in no line: it can have names of files, and tokens where their prefix was
//! meant. The pattern of its route says enough.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use dayfly_types::{ProjectId, RequestId};
use http::{Method, StatusCode};

use super::arrival::client_of;
use super::envelope::FromService;
use crate::control::Control;
use crate::metrics::method_label;
use crate::trace::{RequestTrace, TracedRequest};

/// What the lines are filtered by: `DAYFLY_LOG=info,dayfly_access=off`.
const TARGET: &str = "dayfly_access";
/// Of a request that went on to a service in a sandbox, and of one that came to no route.
const PREVIEW: &str = "preview";
const NO_ROUTE: &str = "none";
/// The status of a request whose caller hung up before its response, as other servers write it.
const HUNG_UP: u16 = 499;

/// Put on a response by what knows it.
#[derive(Debug, Clone)]
pub(crate) struct AskedBy {
    pub(crate) project: ProjectId,
    pub(crate) key_prefix: String,
}

/// Middleware behind the routing: puts the route's pattern on the response.
pub(crate) async fn note_route(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(route) = route {
        response.extensions_mut().insert(route);
    }
    response
}

/// A request whose response is not there yet. Dropped without one, it is told as hung up.
#[derive(Debug)]
pub(crate) struct Pending {
    control: Arc<Control>,
    id: RequestId,
    began: Instant,
    method: Method,
    client: Option<IpAddr>,
    trace: Option<Arc<RequestTrace>>,
    is_answered: bool,
}

impl Pending {
    pub(crate) fn of(control: Arc<Control>, id: RequestId, request: &Request) -> Self {
        Self {
            control,
            id,
            began: Instant::now(),
            method: request.method().clone(),
            client: client_of(request.extensions()),
            trace: None,
            is_answered: false,
        }
    }

    /// The same request, with its trace.
    pub(crate) fn traced(mut self, trace: Option<Arc<RequestTrace>>) -> Self {
        self.trace = trace;
        self
    }

    /// Writes the line. A stream goes on behind it: what is told is the time to its beginning.
    pub(crate) fn answered(mut self, response: &Response) {
        self.is_answered = true;
        let status = response.status();
        let by = response.extensions().get::<AskedBy>();
        match route(response) {
            // A service may answer what it likes; that must not be as many series.
            PREVIEW => self.tell(PREVIEW, status.as_u16(), class(status), by),
            route => self.tell(route, status.as_u16(), status.as_str(), by),
        }
    }

    fn tell(&self, route: &str, status: u16, code: &str, by: Option<&AskedBy>) {
        let took = self.began.elapsed();
        let metrics = &self.control.metrics;
        metrics.answered(&self.method, route, code, took);
        if let Some(trace) = &self.trace {
            trace.finish(&TracedRequest {
                id: &self.id,
                method: method_label(&self.method),
                route,
                status,
                project: by.map(|by| &by.project),
            });
        }
        tracing::info!(
            target: TARGET,
            request_id = %self.id,
            method = method_label(&self.method),
            route,
            status,
            ms = milliseconds(took),
            project = by.map(|by| tracing::field::display(&by.project)),
            key = by.map(|by| by.key_prefix.as_str()),
            client = self.client.map(tracing::field::display),
            trace_id = self.trace.as_ref().map(|trace| tracing::field::display(trace.id())),
            "request"
        );
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_answered {
            self.tell(NO_ROUTE, HUNG_UP, "499", None);
        }
    }
}

fn route(response: &Response) -> &str {
    let extensions = response.extensions();
    match extensions.get::<MatchedPath>() {
        Some(route) => route.as_str(),
        None if extensions.get::<FromService>().is_some() => PREVIEW,
        None => NO_ROUTE,
    }
}

const fn class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => "other",
    }
}

fn milliseconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 10_000.0).round() / 10.0
}
