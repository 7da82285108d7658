//! The spans of one request, until the last of them is over.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dayfly_trace::{Attribute, Exporter, Span, SpanKind, SpanParent};
use dayfly_types::limits::TRACE_SPANS_PER_REQUEST_MAX;
use dayfly_types::{ProjectId, RequestId, SpanId, TraceId};

/// Everything that one request did. Sent when it is dropped.
#[derive(Debug)]
pub(crate) struct RequestTrace {
    exporter: Arc<Exporter>,
    trace: TraceId,
    root: SpanId,
    parent: Option<SpanParent>,
    state: Option<Arc<str>>,
    /// Ids of further spans are the random one of the first, counted on.
    next_span: AtomicU64,
    /// One look at the wall clock; all other times are measured from it.
    began: (Duration, Instant),
    is_kept: AtomicBool,
    collected: Mutex<Collected>,
}

#[derive(Debug, Default)]
struct Collected {
    spans: Vec<Span>,
    lost: usize,
}

/// What there is to say of a request in the end.
#[derive(Debug)]
pub(crate) struct TracedRequest<'a> {
    pub(crate) id: &'a RequestId,
    pub(crate) method: &'static str,
    /// The pattern, never the address.
    pub(crate) route: &'a str,
    pub(crate) status: u16,
    pub(crate) project: Option<&'a ProjectId>,
}

/// Where a request stands in its trace.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) trace: TraceId,
    pub(super) root: SpanId,
    pub(super) parent: Option<SpanParent>,
    pub(super) state: Option<Arc<str>>,
}

impl RequestTrace {
    pub(super) fn new(exporter: Arc<Exporter>, place: Place) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            exporter,
            trace: place.trace,
            root: place.root,
            parent: place.parent,
            state: place.state,
            next_span: AtomicU64::new(u64::from_be_bytes(*place.root.bytes())),
            began: (wall.unwrap_or_default(), Instant::now()),
            is_kept: AtomicBool::new(false),
            collected: Mutex::default(),
        }
    }

    pub(crate) fn id(&self) -> TraceId {
        self.trace
    }

    pub(super) fn root(&self) -> SpanId {
        self.root
    }

    pub(super) fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    pub(super) fn new_span(&self) -> SpanId {
        let next = || {
            self.next_span
                .fetch_add(1, Ordering::Relaxed)
                .wrapping_add(1)
        };
        let id = SpanId::new(next().to_be_bytes());
        // Zero is none; the one behind it is not.
        id.or_else(|| SpanId::new(next().to_be_bytes()))
            .unwrap_or(self.root)
    }

    /// Unix time in nanoseconds, never going back within a request.
    pub(super) fn now_ns(&self) -> u64 {
        let (wall, began) = self.began;
        nanoseconds(wall + began.elapsed())
    }

    /// A span of this trace that is over.
    pub(super) fn span(
        &self,
        id: SpanId,
        above: SpanId,
        name: Cow<'static, str>,
        kind: SpanKind,
        (began_ns, ended_ns): (u64, u64),
    ) -> Span {
        Span {
            trace: self.trace,
            id,
            parent: Some(SpanParent {
                id: above,
                is_remote: false,
            }),
            state: self.state.clone(),
            name,
            kind,
            began_ns,
            ended_ns,
            attributes: Vec::new(),
            has_failed: false,
        }
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        // Every change leaves it whole.
        let collected = self.collected.lock();
        collected.unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, span: Span) {
        let mut collected = self.collected();
        if collected.spans.len() < TRACE_SPANS_PER_REQUEST_MAX {
            collected.spans.push(span);
        } else {
            collected.lost += 1;
        }
    }

    /// The request has its response, or its caller hung up.
    pub(crate) fn finish(&self, request: &TracedRequest<'_>) {
        let mut attributes = vec![
            ("http.request.method", Attribute::from(request.method)),
            ("http.route", Attribute::from(request.route.to_owned())),
            ("http.response.status_code", Attribute::from(request.status)),
            ("dayfly.request_id", Attribute::from(request.id.to_string())),
        ];
        if let Some(project) = request.project {
            attributes.push(("dayfly.project", Attribute::from(project.to_string())));
        }
        // Not `add`: without this one the others are under nothing.
        self.collected().spans.push(Span {
            trace: self.trace,
            id: self.root,
            parent: self.parent,
            state: self.state.clone(),
            name: Cow::Owned(format!("{} {}", request.method, request.route)),
            kind: SpanKind::Server,
            began_ns: nanoseconds(self.began.0),
            ended_ns: self.now_ns(),
            attributes,
            has_failed: request.status >= 500,
        });
    }
}

impl Drop for RequestTrace {
    fn drop(&mut self) {
        if !self.is_kept() {
            return;
        }
        let collected = self.collected.get_mut();
        let collected = std::mem::take(collected.unwrap_or_else(PoisonError::into_inner));
        if collected.lost > 0 {
            self.exporter.counts().lose(collected.lost);
        }
        self.exporter.give(collected.spans);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
