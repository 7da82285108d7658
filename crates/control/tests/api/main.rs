//! The control plane as its callers see it: real HTTP, real database, real node client and
//! server, and a node in memory.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is a failed test"
)]

mod auth;
mod exec;
mod exec_stream;
mod files;
mod flow;
mod forks;
mod lifecycle;
mod openapi;
mod reconcile;
mod refusal;
mod sandboxes;
mod schema;
mod snapshots;
mod states;
mod support;
mod volumes;
