//! Telling a program which requests were sent.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::{Request, Response};

const REQUEST_ID: &str = "x-request-id";

/// One request and how it was answered. Has neither the key nor a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSeen {
    pub method: String,
    /// With the query.
    pub path: String,
    /// Absent: there was no response.
    pub status: Option<u16>,
    /// Until the head of the response.
    pub elapsed: Duration,
    /// The server's name for the request, by which its log knows it.
    pub request_id: Option<String>,
}

/// Is told of every request.
#[derive(Clone)]
pub(crate) struct Observer(Arc<dyn Fn(&RequestSeen) + Send + Sync>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer(..)")
    }
}

impl Observer {
    pub(crate) fn new(tell: impl Fn(&RequestSeen) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(crate) fn begin(&self, request: &Request) -> Watched {
        let url = request.url();
        let query = url.query().map(|query| format!("?{query}"));
        let seen = RequestSeen {
            method: request.method().to_string(),
            path: format!("{}{}", url.path(), query.unwrap_or_default()),
            status: None,
            elapsed: Duration::ZERO,
            request_id: None,
        };
        Watched {
            observer: self.clone(),
            start: Instant::now(),
            seen,
        }
    }
}

/// A request that is under way. Dropping it tells of it, also when a deadline did that.
#[derive(Debug)]
pub(crate) struct Watched {
    observer: Observer,
    start: Instant,
    seen: RequestSeen,
}

impl Watched {
    pub(crate) fn answered(&mut self, response: &Response) {
        self.seen.status = Some(response.status().as_u16());
        let id = response.headers().get(REQUEST_ID);
        self.seen.request_id = id.and_then(|id| Some(id.to_str().ok()?.to_owned()));
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.seen.elapsed = self.start.elapsed();
        (self.observer.0)(&self.seen);
    }
}
