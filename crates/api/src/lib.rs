//! The public REST types, version 1, and the error envelope. Source of `openapi/v1.json`.
//!
//! Wire types only: they cross into domain types in `control`. Names follow the published
//! PandaStack clients where these exist, so that both work against this server. Additive only
//! from release 0.1 on. No node or engine words may appear here.
#![forbid(unsafe_code)]

pub mod error;
pub mod exec;
pub mod files;
pub mod sandbox;
pub mod system;
pub mod template;

pub use error::ErrorBody;
pub use exec::{Command, ExecExitEvent, ExecOutputEvent, ExecRequest, ExecResult, ExecStreamEvent};
pub use files::{DirectoryListing, FileEntry, FileWritten};
pub use sandbox::{CreateSandbox, Sandbox, SandboxList};
pub use system::{Health, Me, NodeView, PoolView};
pub use template::{Template, TemplateState};
