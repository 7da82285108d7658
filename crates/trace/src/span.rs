//! A span that is over.

use std::borrow::Cow;
use std::sync::Arc;

use dayfly_types::{SpanId, TraceId};

/// One timed part of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    pub parent: Option<SpanParent>,
    /// What other systems of the caller want carried.
    pub state: Option<Arc<str>>,
    pub name: Cow<'static, str>,
    pub kind: SpanKind,
    /// Unix time in nanoseconds.
    pub began_ns: u64,
    pub ended_ns: u64,
    pub attributes: Vec<(&'static str, Attribute)>,
    pub has_failed: bool,
}

/// Which span a span is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanParent {
    pub id: SpanId,
    /// It came with a request.
    pub is_remote: bool,
}

/// Which end of a call a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    Server,
    Client,
}

/// What is said of a span. Never a secret, nor anything that a user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    Text(Cow<'static, str>),
    Number(i64),
}

impl From<&'static str> for Attribute {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Attribute {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u16> for Attribute {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}
