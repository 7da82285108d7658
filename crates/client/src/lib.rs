//! The Rust client of the public API, version 1.
//!
//! It knows HTTP and the wire types of `dayfly-api`, and nothing about nodes, engines or the
//! command line. Start reading at [`Client`]; every call is a method of it.
//!
//! A call is repeated by itself only where nothing can happen twice: reads, deletes, changes of a
//! state, and creates, snapshots and forks, which carry an idempotency key. A command, a rollback
//! and a promote are never sent twice.
#![forbid(unsafe_code)]

mod client;
mod config;
mod error;
mod exec;
mod files;
mod forks;
mod limits;
mod retry;
mod sandboxes;
mod snapshots;
mod sse;
mod states;
mod system;
mod volumes;
mod wait;

pub use client::Client;
pub use config::{ApiKey, ClientConfig, InvalidConfig};
pub use dayfly_api as api;
pub use error::{ApiError, ClientError, StreamLoss};
pub use exec::{ExecEvent, ExecStream};
pub use files::{FileBody, FileContent};
pub use sse::{SseEvent, SseParser, SseTooLong};
pub use wait::{WaitProgress, WaitReason};
