//! Spans on their way to whoever collects them: OpenTelemetry's protocol (OTLP) as protobuf over
//! HTTP, set up by the environment variables that every such program reads.
//!
//! Spans come finished, with the times that were measured anyway; nothing here is on the path of a
//! request but one push into a queue with a limit. Start reading at [`Exporter`]. ADR 0040.
#![forbid(unsafe_code)]

mod encode;
mod exporter;
mod sampler;
mod settings;
mod span;

pub use encode::encode;
pub use exporter::{Counts, Exporter, StartExportError};
pub use sampler::Sampler;
pub use settings::{ExportSettings, InvalidVariable};
pub use span::{Attribute, Span, SpanKind, SpanParent};
