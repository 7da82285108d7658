//! The public REST types, version 1, and the error envelope. Source of `openapi/v1.json`.
//!
//! Wire types only: they cross into domain types in `control`. Names follow the published
//! PandaStack clients where these exist, so that both work against this server. Additive only
//! from release 0.1 on. No node or engine words may appear here.
#![forbid(unsafe_code)]

pub mod error;
pub mod exec;
pub mod files;
pub mod fork;
pub mod lifecycle;
mod number;
pub mod sandbox;
pub mod snapshot;
pub mod system;
pub mod template;
pub mod volume;

pub use error::ErrorBody;
pub use exec::{Command, ExecExitEvent, ExecOutputEvent, ExecRequest, ExecResult, ExecStreamEvent};
pub use files::{DirectoryListing, FileEntry, FileWritten};
pub use fork::{ForkOptions, ForkSandbox, ForkTree, Forked, PromoteSandbox, Promoted};
pub use lifecycle::{ChangeLifecycle, Lifecycle, OnTimeout};
pub use sandbox::{CreateSandbox, Sandbox, SandboxList};
pub use snapshot::{Capture, CreateSnapshot, RollbackSandbox, Snapshot, SnapshotList};
pub use system::{Health, Me, NodeView, PoolView};
pub use template::{Template, TemplateState};
pub use volume::{CreateVolume, GrowVolume, Volume, VolumeList, VolumeMount};
