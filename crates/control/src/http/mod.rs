//! The public HTTP API. Handlers translate; [`crate::app`] decides.
//!
//! From the outside in, a request passes: its id and the error envelope ([`envelope`]), the
//! draining of refused bodies, the cap on requests, the key ([`auth`]), its handler.

mod answer;
mod auth;
mod body;
mod document;
mod envelope;
mod error;
mod error_state;
mod exec;
mod exec_stream;
mod files;
mod forks;
mod parameter;
mod sandboxes;
mod serve;
mod snapshots;
mod sse;
mod states;
mod system;
mod templates;
mod utf8;
mod volumes;

pub use document::{openapi, router};
pub(crate) use serve::serve;
