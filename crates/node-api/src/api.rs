//! The trait that a node offers.

use async_trait::async_trait;
use bytes::Bytes;
use dayfly_types::{ExecId, ProjectId, SandboxId, SnapshotId, TemplateName, VolumeName};
use futures::stream::BoxStream;

use crate::error::NodeError;
use crate::exec::{AttachExec, EnsureExec, StdinWrite};
use crate::files::NodeFiles;
use crate::identity::NodeIdentity;
use crate::ingress::NodeIngress;
use crate::network::NodeNetwork;
use crate::state::{
    EnsureVolume, ForkReport, ForkRequest, LifecycleChange, LifecycleReport, SnapshotReport,
    SnapshotRequest, VolumeReport,
};
use crate::types::{EnsureSandbox, NodeStatus, SandboxLoad, SandboxReport, TemplateReport};
use dayfly_types::exec::{ExecEvent, ExecInfo, TerminalSize};

/// Events of one exec. Dropping it leaves the process alone.
pub type ExecEvents = BoxStream<'static, Result<ExecEvent, NodeError>>;

/// Lines of a guest's context bridge, without their ends.
pub type ContextLines = BoxStream<'static, Result<Bytes, NodeError>>;

/// The content of one file, in order.
pub type FileBytes = BoxStream<'static, Result<Bytes, NodeError>>;

/// Reports of sandboxes that changed. Begins with every sandbox of the node; a reader that falls
/// behind misses values, never the last one. A gone sandbox is reported once as `deleted`.
pub type Watch = BoxStream<'static, Result<SandboxReport, NodeError>>;

/// A node, near or far.
#[async_trait]
pub trait NodeApi:
    NodeFiles + NodeIdentity + NodeIngress + NodeNetwork + Send + Sync + std::fmt::Debug + 'static
{
    async fn status(&self) -> Result<NodeStatus, NodeError>;

    async fn templates(&self) -> Result<Vec<TemplateReport>, NodeError>;

    /// One template, in whatever state it is.
    async fn find_template(&self, name: &TemplateName) -> Result<TemplateReport, NodeError>;

    /// Makes sure that the template is baked or will be. Answers at once, with its state.
    async fn ensure_template(&self, name: &TemplateName) -> Result<TemplateReport, NodeError>;

    /// Makes sure the sandbox exists and runs. Repeatable by id; dropping the future does not stop
    /// the work, so call again to learn how it ended. A refusal leaves nothing behind.
    async fn ensure_sandbox(&self, wanted: EnsureSandbox) -> Result<SandboxReport, NodeError>;

    /// Makes sure the sandbox does not exist. An absent one is a success.
    async fn delete_sandbox(&self, id: &SandboxId) -> Result<(), NodeError>;

    async fn sandbox(&self, id: &SandboxId) -> Result<SandboxReport, NodeError>;

    async fn sandboxes(&self) -> Result<Vec<SandboxReport>, NodeError>;

    /// What each sandbox of a project that runs costs the host now.
    async fn loads(&self, project: &ProjectId) -> Result<Vec<SandboxLoad>, NodeError>;

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

    async fn describe_exec(&self, id: &SandboxId, exec: &ExecId) -> Result<ExecInfo, NodeError>;

    /// Oldest first.
    async fn list_execs(&self, id: &SandboxId) -> Result<Vec<ExecInfo>, NodeError>;

    async fn signal_exec(
        &self,
        id: &SandboxId,
        exec: &ExecId,
        signal: i32,
    ) -> Result<(), NodeError>;

    async fn resize_exec(
        &self,
        id: &SandboxId,
        exec: &ExecId,
        size: TerminalSize,
    ) -> Result<(), NodeError>;

    /// Ends the exec and drops its output. An absent one is a success.
    async fn forget_exec(&self, id: &SandboxId, exec: &ExecId) -> Result<(), NodeError>;

    /// Sends input to an exec. Answers how many bytes the guest has taken in total.
    async fn write_stdin(
        &self,
        id: &SandboxId,
        request: StdinWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError>;

    /// Sends one request to the guest's context bridge and gives the lines that it answers with.
    async fn context(&self, id: &SandboxId, request: Bytes) -> Result<ContextLines, NodeError>;

    // What a sandbox's state can become. Every call below may be repeated: one that finds its
    // wish fulfilled succeeds. Dropping a future does not stop the work.

    /// Stops the guest's processors. Memory stays where it is.
    async fn pause(&self, id: &SandboxId) -> Result<SandboxReport, NodeError>;

    async fn resume(&self, id: &SandboxId) -> Result<SandboxReport, NodeError>;

    /// Captures to disk and ends the machine: no process and no memory are left.
    async fn hibernate(&self, id: &SandboxId) -> Result<SandboxReport, NodeError>;

    /// Restores a hibernated sandbox. Calls that need the guest do this by themselves.
    async fn wake(&self, id: &SandboxId) -> Result<SandboxReport, NodeError>;

    /// Takes the sandbox back to a snapshot of its own, in place.
    async fn rollback(
        &self,
        id: &SandboxId,
        snapshot: &SnapshotId,
    ) -> Result<SandboxReport, NodeError>;

    async fn lifecycle(&self, id: &SandboxId) -> Result<LifecycleReport, NodeError>;

    async fn set_lifecycle(
        &self,
        id: &SandboxId,
        change: LifecycleChange,
    ) -> Result<LifecycleReport, NodeError>;

    /// Captures a running sandbox without ending it.
    async fn snapshot(
        &self,
        id: &SandboxId,
        request: SnapshotRequest,
    ) -> Result<SnapshotReport, NodeError>;

    /// Every published snapshot of the node, newest first.
    async fn snapshots(&self) -> Result<Vec<SnapshotReport>, NodeError>;

    /// Those of one project, newest first.
    async fn snapshots_of(&self, project: &ProjectId) -> Result<Vec<SnapshotReport>, NodeError>;

    /// One snapshot, of whatever project.
    async fn find_snapshot(&self, id: &SnapshotId) -> Result<SnapshotReport, NodeError>;

    /// Makes sure the snapshot does not exist. What others need of it stays until they go.
    async fn delete_snapshot(&self, id: &SnapshotId) -> Result<(), NodeError>;

    /// One capture of `id`, restored once for each child.
    async fn fork(&self, id: &SandboxId, request: ForkRequest) -> Result<ForkReport, NodeError>;

    async fn ensure_volume(&self, wanted: EnsureVolume) -> Result<VolumeReport, NodeError>;

    async fn volumes(&self) -> Result<Vec<VolumeReport>, NodeError>;

    async fn volumes_of(&self, project: &ProjectId) -> Result<Vec<VolumeReport>, NodeError>;

    async fn find_volume(
        &self,
        project: &ProjectId,
        name: &VolumeName,
    ) -> Result<VolumeReport, NodeError>;

    /// Refused with `volume_busy` while a sandbox has it.
    async fn delete_volume(&self, project: &ProjectId, name: &VolumeName) -> Result<(), NodeError>;
}
