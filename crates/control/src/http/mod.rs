//! What every handler of the public HTTP API stands on. The handlers are in the slices, beside the
//! use cases: they translate, and those decide.
//!
//! From the outside in, a request passes: its id and the error envelope ([`envelope`]), the
//! draining of refused bodies, the cap on requests, the key ([`auth`]), its handler.

pub(crate) mod access;
pub(crate) mod access_log;
pub(crate) mod address;
pub(crate) mod answer;
pub(crate) mod arrival;
pub(crate) mod audit;
pub(crate) mod audit_read;
pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod connections;
pub(crate) mod document;
pub(crate) mod envelope;
pub(crate) mod error;
pub(crate) mod error_state;
pub(crate) mod export_http;
pub(crate) mod key_bound;
pub(crate) mod known_names;
pub(crate) mod mcp_http;
pub(crate) mod metrics_http;
pub(crate) mod open_streams;
pub(crate) mod parameter;
pub(crate) mod serve;
pub(crate) mod sse;
pub(crate) mod system;
pub(crate) mod tls;

pub(crate) use arrival::Arrival;
pub use arrival::TrustedProxies;
pub use connections::ConnectionLimits;
pub(crate) use connections::Connections;
pub use document::{InProcess, MakeBuilder, MakeMcp, openapi, router, router_with};
pub use mcp_http::{McpCaller, McpRefusal, McpService};
pub(crate) use metrics_http::{Watched, serve_metrics};
pub(crate) use serve::{Listener, serve};
pub use tls::{Certificate, InvalidCertificate, ShownCertificate};
