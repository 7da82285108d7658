//! The host's side of the guest agent: open a conversation, call, exec, move files.
//!
//! ```text
//! AgentClient --calls--> control queue --> writer --> control port
//!      ^                                                  |
//!      |         Conversation (one lock, no await) <-- reader
//!      |                                                  |
//! ExecSession, FileRead, FileWrite <-- windows --> bulk port
//! ```
//! The guest is hostile: whatever it sends costs bounded memory, and what breaks the protocol ends
//! the conversation with a typed reason. Credit goes back only as a consumer takes bytes, so a
//! consumer that stops reading holds one window of its own stream and slows nobody else.
//!
//! This crate must not know engines, sandboxes or policy: it is given two sockets. Start reading
//! at [`AgentClient`], then `conversation`.
#![forbid(unsafe_code)]

mod channel;
mod client;
mod conversation;
mod error;
mod exec;
mod file;
mod handle;
mod intake;
mod machine;
mod open;
mod ports;

pub use client::{AgentClient, DirectoryListing};
pub use error::{CallError, ConnectError, ConversationLost, ProtocolViolation, StreamError};
pub use exec::{ExecEvent, ExecInput, ExecSession, ExecSpec};
pub use file::{FileInfo, FileRead, FileWrite, ReadRange, WriteOptions};
pub use machine::{QuiesceSpec, VolumeMount};
