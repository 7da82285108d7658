//! The host's side of the guest agent: open a conversation, call, exec, move files.
//!
//! ```text
//! AgentClient --calls--> control queue --> writer --> control port
//!      ^                                                  |
//!      |         Conversation (one lock, no await) <-- reader
//!      |                                                  |
//! ExecSession, GuestFileReader, GuestFileWriter <-- windows --> bulk port
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
mod file_calls;
mod file_lines;
mod handle;
mod intake;
mod machine;
mod open;
mod ports;
mod process;
mod socket;

pub use client::AgentClient;
pub use error::{CallError, ConnectError, ConversationLost, ProtocolViolation, StreamError};
pub use exec::{AttachSpec, ExecInput, ExecSession};
pub use file::{GuestFileReader, GuestFileWriter, GuestStream, ReadRange, WriteSpec};
pub use file_calls::ListSpec;
pub use file_lines::{ChangeLines, GuestLines, WatchLines};
pub use machine::{DiskMount, QuiesceSpec};
pub use socket::{GuestSocket, GuestSocketWriter};
