//! The contract between the control plane and a node.
//!
//! [`NodeApi`] is the whole of it. Three things implement it: the node itself, the client here
//! (over a unix socket or TCP), and simulated nodes. It shares no type with the public API, so
//! that the two can change apart. Every call that changes something carries an id that its caller
//! chose and may be repeated. Start reading at [`api`].
#![forbid(unsafe_code)]

pub mod api;
pub mod call;
pub mod client;
mod client_streams;
mod connector;
pub mod error;
pub mod exec;
pub mod files;
pub mod greeting;
pub mod identity;
pub mod network;
pub mod port;
mod receive;
pub mod record;
pub mod server;
mod server_streams;
pub mod socket;
pub mod state;
mod stream;
pub mod stream_call;
pub mod traced;
pub mod types;
pub mod unread;

pub use api::{
    ContextLines, ExecEvents, FileBytes, FileChanges, NodeApi, PortBytes, PortStream, Watch,
};
pub use call::{
    NodeCall, NodeCalls, NodeExecs, NodeFiles, NodeIdentity, NodeListeners, NodeNetwork, NodeReply,
    NodeSandboxes, NodeSnapshots, NodeTemplates, NodeVolumes, answer,
};
pub use client::NodeClient;
pub use error::NodeError;
pub use exec::{AttachExec, EnsureExec, StdinWrite};
pub use files::{
    Changes, ChangesSince, EnsureDirectory, FileRead, FileWrite, GuestPath, ListChanges,
    ListDirectory, MoveEntry, RemoveFile, SetMode, WatchFiles, WritePlace,
};
pub use greeting::Greeting;
pub use identity::{DatabaseMark, IdentityReport};
pub use network::{
    EgressDecision, EgressDecisionPage, NetworkLogPage, NetworkReport, ReadNetworkLog, SetNetwork,
};
pub use port::WaitPort;
pub use state::{
    EnsureVolume, ForkChild, ForkOutcome, ForkReport, ForkRequest, LifecycleChange,
    LifecycleReport, SnapshotReport, SnapshotRequest, VolumeReport,
};
pub use stream_call::{NodeStream, NodeTransfer};
pub use traced::{NodeTiming, traced};
pub use types::{
    BakeState, EgressCount, EgressStatus, EnsureSandbox, KeptSandbox, NodeStatus, PoolStatus,
    ResourceUse, SandboxReport, SharingStatus, Stage, TemplateReport, VariantReport,
    VariantRequest,
};
