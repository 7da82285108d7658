//! The public HTTP API. Handlers translate; [`crate::app`] decides.
//!
//! From the outside in, a request passes: its id and the error envelope ([`envelope`]), the
//! draining of refused bodies, the cap on requests, the key ([`auth`]), its handler.

mod access;
mod answer;
mod audit;
mod auth;
mod body;
mod connections;
mod context_parameter;
mod contexts;
mod document;
mod envelope;
mod error;
mod error_network;
mod error_state;
mod events;
mod exec;
mod exec_audit;
mod exec_socket;
mod exec_stream;
mod files;
mod files_edit;
mod files_query;
mod files_transfer;
mod files_tree;
mod files_watch;
mod forks;
mod key_bound;
mod known_names;
mod list_query;
mod logs;
mod network;
mod network_log;
mod open_streams;
mod parameter;
mod port_gateway;
mod ports;
mod process_parameter;
mod processes;
mod projects;
mod run;
mod sandboxes;
mod serve;
mod snapshots;
mod sse;
mod states;
mod system;
mod templates;
mod tokens;
mod volumes;

pub use connections::ConnectionLimits;
pub(crate) use connections::Connections;
pub use document::{openapi, router};
pub(crate) use serve::serve;
