//! One line in the log for each request: what was asked, by whom, and what came of it.
//!
//! The address itself is in no line: it can have names of files, and tokens where their prefix was
//! meant. The pattern of its route says enough.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use dayfly_types::{ProjectId, RequestId};
use http::Method;

use super::arrival::Arrival;
use super::envelope::FromService;
use crate::metrics::Metrics;

/// What the lines are filtered by: `DAYFLY_LOG=info,dayfly_access=off`.
const TARGET: &str = "dayfly_access";
/// Of a request that went on to a service in a sandbox, and of one that no route has.
const PREVIEW: &str = "preview";
const NO_ROUTE: &str = "none";

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

/// A request whose response is not there yet.
#[derive(Debug)]
pub(crate) struct Pending {
    began: Instant,
    method: Method,
    client: Option<IpAddr>,
}

impl Pending {
    pub(crate) fn of(request: &Request) -> Self {
        let arrival = request.extensions().get::<Arrival>();
        Self {
            began: Instant::now(),
            method: request.method().clone(),
            client: arrival.map(|arrival| arrival.client),
        }
    }

    /// Writes the line. A stream goes on behind it: what is told is the time to its beginning.
    pub(crate) fn answered(self, metrics: &Metrics, id: &RequestId, response: &Response) {
        let took = self.began.elapsed();
        metrics.answered(&self.method, route(response), response.status(), took);
        let by = response.extensions().get::<AskedBy>();
        tracing::info!(
            target: TARGET,
            request_id = %id,
            method = %self.method,
            route = route(response),
            status = response.status().as_u16(),
            ms = milliseconds(took),
            project = by.map(|by| tracing::field::display(&by.project)),
            key = by.map(|by| by.key_prefix.as_str()),
            // None for a request that a tool of MCP makes in this process.
            client = self.client.map(tracing::field::display),
            "request"
        );
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

fn milliseconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 10_000.0).round() / 10.0
}
