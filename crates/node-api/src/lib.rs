//! The contract between the control plane and a node.
//!
//! [`NodeApi`] is the whole of it. Three things implement it: the node itself, the client here
//! (over a unix socket or TCP), and simulated nodes. It shares no type with the public API, so
//! that the two can change apart. Every call that changes something carries an id that its caller
//! chose and may be repeated. Start reading at [`api`].
#![forbid(unsafe_code)]

pub mod api;
pub mod client;
mod connector;
pub mod error;
mod receive;
pub mod record;
pub mod server;
mod server_state;
pub mod socket;
pub mod state;
mod stream;
pub mod types;
pub mod unread;

pub use api::{ExecEvents, FileBytes, NodeApi, Watch};
pub use client::NodeClient;
pub use error::NodeError;
pub use state::{
    CaptureReport, EnsureVolume, ForkChild, ForkOutcome, ForkReport, ForkRequest, LifecycleChange,
    LifecycleReport, SnapshotReport, SnapshotRequest, VolumeMount, VolumeReport,
};
pub use types::{
    BakeState, Directory, DirectoryEntry, EnsureSandbox, ExecCommand, ExecEvent, ExecExit,
    ExecRequest, ExitReason, FileInfo, FileRead, FileWrite, NodeStatus, PoolStatus, SandboxReport,
    Stage, TemplateReport,
};
