//! The trace of a request: which parts it had and how long each took.
//!
//! A request that is traced has a [`RequestTrace`] in its task, which collects spans that are over.
//! They are sent when the last part of the work has ended, also work that outlives its request. A
//! request that is not traced has none, and each part then costs one look at the task. ADR 0040.

mod collect;
mod node;
mod request;

use std::borrow::Cow;
use std::sync::Arc;

use dayfly_trace::SpanKind;
use dayfly_types::SpanId;

pub(crate) use collect::{RequestTrace, TracedRequest};
pub(crate) use node::TracedNode;
pub(crate) use request::Tracer;

tokio::task_local! {
    static HERE: Here;
}

/// The trace of this task, and the span that its next one is a part of.
#[derive(Debug, Clone)]
struct Here {
    trace: Arc<RequestTrace>,
    span: SpanId,
}

impl Here {
    fn current() -> Option<Self> {
        HERE.try_with(Self::clone).ok()
    }
}

/// Handles a request as a part of its trace, if it has one.
pub(crate) async fn within<T>(
    trace: Option<Arc<RequestTrace>>,
    work: impl Future<Output = T>,
) -> T {
    match trace {
        None => work.await,
        Some(trace) => {
            let span = trace.root();
            HERE.scope(Here { trace, span }, work).await
        }
    }
}

/// Takes the trace of this task along into another: for work that outlives its request.
pub(crate) fn continued<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let here = Here::current();
    async move {
        match here {
            None => work.await,
            Some(here) => HERE.scope(here, work).await,
        }
    }
}

/// Times a part of the work.
pub(crate) async fn stage<T>(name: &'static str, work: impl Future<Output = T>) -> T {
    let Some(Here { trace, span: above }) = Here::current() else {
        return work.await;
    };
    let (span, began) = (trace.new_span(), trace.now_ns());
    let here = Here {
        trace: Arc::clone(&trace),
        span,
    };
    let done = HERE.scope(here, work).await;
    let times = (began, trace.now_ns());
    trace.add(trace.span(span, above, Cow::Borrowed(name), SpanKind::Internal, times));
    done
}

/// The caller of this request has shown a key: its trace is sent. What strangers ask leaves none,
/// or anybody could write into the operator's traces.
pub(crate) fn caller_is_known() {
    // Most requests are not traced.
    let _ = HERE.try_with(|here| here.trace.keep());
}
