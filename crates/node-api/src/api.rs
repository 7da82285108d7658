//! The trait that a node offers.

use async_trait::async_trait;
use bytes::Bytes;
use dayfly_types::SandboxId;
use dayfly_types::exec::{ExecEvent, ExecInfo};
use dayfly_types::file::{OpenedFile, WatchEvent};
use futures::stream::BoxStream;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::call::{NodeCall, NodeReply};
use crate::error::NodeError;
use crate::exec::{AttachExec, EnsureExec, StdinWrite};
use crate::files::{FileRead, FileWrite, GuestPath, WatchFiles};
use crate::types::SandboxReport;

/// Events of one exec. Dropping it leaves the process alone.
pub type ExecEvents = BoxStream<'static, Result<ExecEvent, NodeError>>;

/// Lines of a guest's context bridge, without their ends.
pub type ContextLines = BoxStream<'static, Result<Bytes, NodeError>>;

/// The content of one file, in order.
pub type FileBytes = BoxStream<'static, Result<Bytes, NodeError>>;

/// Changes of a watched directory. Dropping it ends the watch.
pub type FileChanges = BoxStream<'static, Result<WatchEvent, NodeError>>;

/// Reports of sandboxes that changed. Begins with every sandbox of the node; a reader that falls
/// behind misses values, never the last one. A gone sandbox is reported once as `deleted`.
pub type Watch = BoxStream<'static, Result<SandboxReport, NodeError>>;

/// Bytes both ways.
pub trait PortBytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> PortBytes for T {}

/// A connection to a service in a sandbox. Dropping it closes the connection.
pub type PortStream = Box<dyn PortBytes>;

/// A node, near or far: calls that have one answer, and whatever is a stream.
#[async_trait]
pub trait NodeApi: Send + Sync + std::fmt::Debug + 'static {
    /// Answers a call. [`NodeCalls`](crate::NodeCalls) has a method for each.
    async fn call(&self, call: NodeCall) -> Result<NodeReply, NodeError>;

    async fn watch(&self) -> Result<Watch, NodeError>;

    /// Starts a process and gives its output from the first byte. Repeating it with the same id
    /// and words attaches to the one that runs or ran.
    async fn exec(&self, id: &SandboxId, request: EnsureExec) -> Result<ExecEvents, NodeError>;

    /// Gives the output of an exec that was started before, from offsets on.
    async fn attach_exec(
        &self,
        id: &SandboxId,
        request: AttachExec,
    ) -> Result<(ExecInfo, ExecEvents), NodeError>;

    /// Sends input to an exec. Answers how many bytes the guest has taken in total.
    async fn write_stdin(
        &self,
        id: &SandboxId,
        request: StdinWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError>;

    /// Sends one request to the guest's context bridge and gives the lines that it answers with.
    async fn context(&self, id: &SandboxId, line: String) -> Result<ContextLines, NodeError>;

    async fn read_file(
        &self,
        id: &SandboxId,
        request: FileRead,
    ) -> Result<(OpenedFile, FileBytes), NodeError>;

    /// Replaces or makes a file in one step: readers see the old content or the new, never a part.
    /// Or writes into it in place. Parent directories are made. Answers how many bytes were
    /// written.
    async fn write_file(
        &self,
        id: &SandboxId,
        request: FileWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError>;

    /// Reports changes from the answer on.
    async fn watch_files(
        &self,
        id: &SandboxId,
        request: WatchFiles,
    ) -> Result<FileChanges, NodeError>;

    /// A directory, or one file, as a tar archive.
    async fn pack_tree(&self, id: &SandboxId, request: GuestPath) -> Result<FileBytes, NodeError>;

    /// Unpacks a tar archive below a directory. Answers how many bytes it had.
    async fn unpack_tree(
        &self,
        id: &SandboxId,
        request: GuestPath,
        content: FileBytes,
    ) -> Result<u64, NodeError>;

    /// Connects to a TCP port of the sandbox, and wakes it for that. Who asks has checked that the
    /// caller may.
    async fn connect_port(&self, id: &SandboxId, port: u16) -> Result<PortStream, NodeError>;
}
