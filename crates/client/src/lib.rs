//! The Rust client of the public API, version 1.
//!
//! It knows HTTP and the wire types of `dayfly-api`, and nothing about nodes, engines or the
//! command line. Start reading at [`Client`]; every call is a method of it.
//!
//! A call is repeated by itself only where nothing can happen twice: reads, deletes, changes of a
//! state, and creates, snapshots and forks, which carry an idempotency key. A command, a rollback
//! and a promote are never sent twice.
#![forbid(unsafe_code)]

mod builds;
mod client;
mod config;
mod device;
mod error;
mod event_stream;
mod exec;
mod export;
mod file_edits;
mod file_streams;
mod files;
mod follow;
mod forks;
mod in_process;
mod limits;
mod logs;
#[cfg(any(test, target_feature = "crt-static"))]
mod names;
mod network;
mod observe;
mod platform;
mod ports;
mod processes;
mod project_choice;
mod retry;
mod run_stream;
mod sandboxes;
mod snapshots;
mod socket;
mod sse;
mod states;
mod system;
mod templates;
mod tenancy;
mod usage;
mod volumes;
mod wait;
mod webhook;

pub use builds::{BuildFile, BuildFollow};
pub use client::Client;
pub use config::{ApiKey, ClientConfig, InvalidConfig};
pub use dayfly_api as api;
pub use device::{DeviceError, DeviceLogin};
pub use error::{ApiError, ClientError, StreamLoss};
pub use exec::{CommandEvent, ExecStream};
pub use export::ExportNumbers;
pub use file_edits::RemoveOptions;
pub use file_streams::{FileWatch, WatchItem};
pub use files::{FileBody, FileContent, ListOptions, ReadOptions, WriteOptions};
pub use follow::{FollowEvent, FollowInput, Follower};
pub use logs::{LogFollow, LogLine};
pub use network::{NetworkFollow, NetworkItem, NetworkLogOptions};
pub use observe::RequestSeen;
pub use project_choice::ProjectChoice;
pub use run_stream::RunOutput;
pub use sandboxes::SandboxFilter;
pub use socket::{ExecReader, ExecSocket, ExecWriter, SocketItem};
pub use sse::{SseEvent, SseParser, SseTooLong};
pub use tenancy::{AuditOptions, EventFollow, RevokeOptions};
pub use usage::UsageSpan;
pub use wait::{WaitProgress, WaitReason};
pub use webhook::{InvalidWebhook, Webhook, WebhookError};
