//! The message `ExportTraceServiceRequest` of OTLP, in protobuf's binary form.
//!
//! Seven kinds of messages are written and none is read, so this is a writer of fields and no
//! library; a test reads what it writes with the published messages. The numbers are those of
//! `opentelemetry/proto/trace/v1/trace.proto`.

use crate::span::{Attribute, Span, SpanKind};

const SCOPE: &str = "dayfly";
/// Flags of a span: kept, and whether its parent came from elsewhere, which is known.
const SAMPLED: u32 = 0x01;
const KNOWS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;
const STATUS_ERROR: u64 = 2;

/// Writes spans of one resource.
#[must_use]
pub fn encode(resource: &[(String, String)], spans: &[Span]) -> Vec<u8> {
    let mut whole = Message::default();
    whole.message(1, |resource_spans| {
        resource_spans.message(1, |described| {
            for (key, value) in resource {
                described.message(1, |pair| text_pair(pair, key, value));
            }
        });
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| {
                scope.bytes(1, SCOPE.as_bytes());
                scope.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
            });
            for span in spans {
                scope_spans.message(2, |message| one(message, span));
            }
        });
    });
    whole.0
}

fn one(message: &mut Message, span: &Span) {
    message.bytes(1, span.trace.bytes());
    message.bytes(2, span.id.bytes());
    if let Some(state) = &span.state {
        message.bytes(3, state.as_bytes());
    }
    if let Some(parent) = span.parent {
        message.bytes(4, parent.id.bytes());
    }
    message.bytes(5, span.name.as_bytes());
    message.number(6, kind(span.kind));
    message.fixed64(7, span.began_ns);
    message.fixed64(8, span.ended_ns);
    for (key, value) in &span.attributes {
        message.message(9, |pair| match value {
            Attribute::Text(text) => text_pair(pair, key, text),
            Attribute::Number(number) => {
                pair.bytes(1, key.as_bytes());
                // A negative number is its two's complement.
                pair.message(2, |value| value.number(3, number.cast_unsigned()));
            }
        });
    }
    if span.has_failed {
        message.message(15, |status| status.number(3, STATUS_ERROR));
    }
    let is_remote = span.parent.is_some_and(|parent| parent.is_remote);
    let remote = if is_remote { IS_REMOTE } else { 0 };
    message.fixed32(16, SAMPLED | KNOWS_IS_REMOTE | remote);
}

const fn kind(kind: SpanKind) -> u64 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    }
}

fn text_pair(pair: &mut Message, key: &str, text: &str) {
    pair.bytes(1, key.as_bytes());
    pair.message(2, |value| value.bytes(1, text.as_bytes()));
}

/// Fields of one message, in the order in which they are written.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

/// How the value of a field is laid out.
#[derive(Debug, Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

impl Message {
    fn tag(&mut self, field: u64, wire: Wire) {
        self.varint(field << 3 | wire as u64);
    }

    fn varint(&mut self, mut value: u64) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                self.0.push(low & 0x7f);
                return;
            }
            self.0.push(low | 0x80);
        }
    }

    fn number(&mut self, field: u64, value: u64) {
        self.tag(field, Wire::Varint);
        self.varint(value);
    }

    fn fixed64(&mut self, field: u64, value: u64) {
        self.tag(field, Wire::Fixed64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn fixed32(&mut self, field: u64, value: u32) {
        self.tag(field, Wire::Fixed32);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.tag(field, Wire::Bytes);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }
}
