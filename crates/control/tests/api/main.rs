//! The control plane as its callers see it: real HTTP, real database, real node client and
//! server, and a node in memory.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is a failed test"
)]

mod access_log;
mod audit_faults;
mod audit_span;
mod auth;
mod builds;
mod connections;
mod contexts;
mod environment;
mod events;
mod exec;
mod exec_stream;
mod export;
mod file_links;
mod files;
mod files_edit;
mod files_stream;
mod flow;
mod forks;
mod full_store;
mod gateway;
mod gateway_bytes;
mod gateway_http2;
mod gateway_links;
mod growth;
mod key_ends;
mod lifecycle;
mod local_key;
mod logs;
mod mcp;
mod mcp_http;
mod mcp_limits;
mod metering;
mod metrics;
mod migrations;
mod names;
mod network;
mod network_change;
mod network_internal;
mod network_log;
mod node_conformance;
mod one_call;
mod openapi;
mod operators;
mod overload;
mod port_wait;
mod processes;
mod project_states;
mod projects;
mod reconcile;
mod refusal;
mod samples;
mod sandbox_list;
mod sandboxes;
mod schema;
mod shares;
mod sign_in;
mod sizes;
mod snapshots;
mod states;
mod store_faults;
mod strange_database;
mod support;
mod template_versions;
mod templates;
mod tenancy;
mod tls;
mod tokens;
mod tokens_made;
mod traces;
mod unknown_names;
mod volumes;
