//! The trait that a node offers.

use async_trait::async_trait;
use bytes::Bytes;
use dayfly_types::SandboxId;
use futures::stream::BoxStream;

use crate::error::NodeError;
use crate::types::{
    Directory, DirectoryEntry, EnsureSandbox, ExecEvent, ExecRequest, FileInfo, FileRead,
    FileWrite, NodeStatus, SandboxReport, TemplateReport,
};

/// Events of one exec. Dropping it before the exit ends the process.
pub type ExecEvents = BoxStream<'static, Result<ExecEvent, NodeError>>;

/// The content of one file, in order.
pub type FileBytes = BoxStream<'static, Result<Bytes, NodeError>>;

/// Reports of sandboxes that changed. Begins with every sandbox of the node; a reader that falls
/// behind misses values, never the last one. A gone sandbox is reported once as `deleted`.
pub type Watch = BoxStream<'static, Result<SandboxReport, NodeError>>;

/// A node, near or far.
#[async_trait]
pub trait NodeApi: Send + Sync + std::fmt::Debug + 'static {
    async fn status(&self) -> Result<NodeStatus, NodeError>;

    async fn templates(&self) -> Result<Vec<TemplateReport>, NodeError>;

    /// Makes sure the sandbox exists and runs. Repeatable by id; dropping the future does not stop
    /// the work, so call again to learn how it ended. A refusal leaves nothing behind.
    async fn ensure_sandbox(&self, wanted: EnsureSandbox) -> Result<SandboxReport, NodeError>;

    /// Makes sure the sandbox does not exist. An absent one is a success.
    async fn delete_sandbox(&self, id: &SandboxId) -> Result<(), NodeError>;

    async fn sandbox(&self, id: &SandboxId) -> Result<SandboxReport, NodeError>;

    async fn sandboxes(&self) -> Result<Vec<SandboxReport>, NodeError>;

    async fn watch(&self) -> Result<Watch, NodeError>;

    async fn exec(&self, id: &SandboxId, request: ExecRequest) -> Result<ExecEvents, NodeError>;

    async fn read_file(
        &self,
        id: &SandboxId,
        request: FileRead,
    ) -> Result<(FileInfo, FileBytes), NodeError>;

    /// Replaces or makes a file in one step: readers see the old content or the new, never a part.
    /// Parent directories are made. Answers how many bytes were written.
    async fn write_file(
        &self,
        id: &SandboxId,
        request: FileWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError>;

    async fn list_directory(&self, id: &SandboxId, path: &str) -> Result<Directory, NodeError>;

    async fn stat(&self, id: &SandboxId, path: &str) -> Result<DirectoryEntry, NodeError>;
}
