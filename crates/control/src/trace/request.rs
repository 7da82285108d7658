//! Which requests are traced, and as a part of what.

use std::sync::Arc;

use dayfly_trace::{ExportSettings, Exporter, Sampler, SpanParent, StartExportError};
use dayfly_types::trace::{TRACEPARENT, TRACESTATE, trace_state};
use dayfly_types::{SpanId, TraceId, TraceParent};
use http::HeaderMap;

use super::collect::{Place, RequestTrace};

/// Begins traces of requests.
#[derive(Debug)]
pub(crate) struct Tracer {
    exporter: Arc<Exporter>,
    sampler: Sampler,
}

impl Tracer {
    /// Begins to send what is traced from now on.
    pub(crate) fn start(settings: ExportSettings) -> Result<Self, StartExportError> {
        Ok(Self {
            sampler: settings.sampler,
            exporter: Arc::new(Exporter::start(settings)?),
        })
    }

    pub(crate) fn exporter(&self) -> &Exporter {
        &self.exporter
    }

    /// The trace of a request with these headers, if it is traced.
    pub(crate) fn begin(&self, headers: &HeaderMap) -> Option<Arc<RequestTrace>> {
        let mut random = [0; 24];
        getrandom::fill(&mut random).ok()?;
        let [own @ .., a, b, c, d, e, f, g, h] = random;
        let root = SpanId::new([a, b, c, d, e, f, g, h])?;
        let parent = caller(headers);
        let trace = parent.map_or_else(|| TraceId::new(own), |parent| Some(parent.trace))?;
        if !self.sampler.takes(parent.as_ref(), &trace) {
            return None;
        }
        let state = parent.and_then(|_| state(headers));
        let parent = parent.map(|parent| SpanParent {
            id: parent.span,
            is_remote: true,
        });
        let place = Place {
            trace,
            root,
            parent,
            state,
        };
        let exporter = Arc::clone(&self.exporter);
        Some(Arc::new(RequestTrace::new(exporter, place)))
    }
}

/// The caller's span. One that is not well formed, or one of several, is none.
fn caller(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let only = values.next().filter(|_| values.next().is_none());
    TraceParent::parse(only?.to_str().ok()?)
}

fn state(headers: &HeaderMap) -> Option<Arc<str>> {
    let values = headers.get_all(TRACESTATE).iter();
    let texts: Option<Vec<&str>> = values.map(|value| value.to_str().ok()).collect();
    trace_state(texts?.into_iter()).map(Arc::from)
}
