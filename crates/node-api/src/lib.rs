//! The contract between the control plane and a node.
//!
//! [`NodeApi`] is the whole of it. Three things implement it: the node itself, the client here
//! (over a unix socket or TCP), and simulated nodes. It shares no type with the public API, so
//! that the two can change apart. Every call that changes something carries an id that its caller
//! chose and may be repeated. Start reading at [`api`].
#![forbid(unsafe_code)]

pub mod api;
pub mod client;
mod client_files;
mod client_identity;
mod client_ingress;
mod client_network;
mod connector;
pub mod error;
pub mod exec;
pub mod files;
pub mod identity;
pub mod ingress;
pub mod network;
mod receive;
pub mod record;
pub mod server;
mod server_exec;
mod server_files;
mod server_identity;
mod server_ingress;
mod server_network;
mod server_state;
pub mod socket;
pub mod state;
mod stream;
pub mod types;
pub mod unread;

pub use api::{ContextLines, ExecEvents, FileBytes, NodeApi, Watch};
pub use client::NodeClient;
pub use error::NodeError;
pub use exec::{AttachExec, EnsureExec, StdinWrite};
pub use files::{
    ChangeMode, Changes, ChangesSince, FileChanges, FileRead, FileWrite, GuestPath, ListChanges,
    ListDirectory, MakeDirectory, MoveFile, NodeFiles, RemoveFile, WatchFiles, WritePlace,
};
pub use identity::{DatabaseMark, IdentityReport, NodeIdentity};
pub use ingress::{NodeIngress, PortBytes, PortStream};
pub use network::{NetworkLog, NetworkReport, NodeNetwork, ReadNetworkLog, SetNetwork};
pub use state::{
    EnsureVolume, ForkChild, ForkOutcome, ForkReport, ForkRequest, LifecycleChange,
    LifecycleReport, SnapshotReport, SnapshotRequest, VolumeReport,
};
pub use types::{
    BakeState, EnsureSandbox, KeptSandbox, NodeStatus, PoolStatus, SandboxLoad, SandboxReport,
    Stage, TemplateReport,
};
