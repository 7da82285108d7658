//! Every call of a node that is one question and one answer, in one table.
//!
//! A row of the table is a variant of [`NodeCall`], one of [`NodeReply`], a method of [`NodeCalls`]
//! for whoever asks, a method of one of the traits by part for whoever answers, and the time after
//! which the asking side gives up. Arguments in the first parentheses are passed by reference, those
//! in the second by value.

use std::future::Future;
use std::time::Duration;

use dayfly_types::exec::{ExecInfo, WindowSize};
use dayfly_types::file::{DirectoryPage, FileStat};
use dayfly_types::port::Listener;
use dayfly_types::{
    ExecId, OrderedTemplate, ProjectId, SandboxId, SnapshotId, TemplateName, VolumeName, limits,
};
use serde::{Deserialize, Serialize};

use crate::api::NodeApi;
use crate::error::NodeError;
use crate::files::{
    Changes, EnsureDirectory, GuestPath, ListChanges, ListDirectory, MoveEntry, RemoveFile, SetMode,
};
use crate::greeting::Greeting;
use crate::identity::{DatabaseMark, IdentityReport};
use crate::network::{
    EgressDecisionPage, NetworkLogPage, NetworkReport, ReadNetworkLog, SetNetwork,
};
use crate::port::WaitPort;
use crate::state::{
    EnsureVolume, ForkReport, ForkRequest, LifecycleChange, LifecycleReport, SnapshotReport,
    SnapshotRequest, VolumeReport,
};
use crate::types::{
    EnsureSandbox, NodeStatus, ResourceUse, SandboxReport, TemplateReport, VariantReport,
    VariantRequest,
};

/// Questions that the node answers from memory.
pub(crate) const QUESTION: Duration = Duration::from_secs(5);
/// Calls that ask the guest's agent.
const GUEST: Duration = limits::AGENT_CALL_DEADLINE.saturating_add(QUESTION);
/// The node undoes a create at its own deadline; this leaves it time to say so.
const CREATE: Duration = limits::CREATE_DEADLINE.saturating_add(QUESTION);
const BOOT: Duration = limits::DISK_BOOT_ANSWER_DEADLINE;
/// Calls that ask the guest's agent of a sandbox that may have to be woken first.
pub(crate) const WAKING: Duration = GUEST.saturating_add(CREATE);
const DELETE: Duration = Duration::from_secs(25);
/// A capture, the write to disk behind it, and a restore.
const STATE: Duration = limits::CAPTURE_DEADLINE.saturating_add(CREATE);
/// A capture and as many restores as a fork may have.
const FORK: Duration = Duration::from_secs(300);
/// The sandbox may be in the middle of a capture. Callers give up after 30 seconds, and what they
/// are told then should be how it ended.
const SET_NETWORK: Duration = Duration::from_secs(20);

macro_rules! calls {
    ($(
        $(#[$part_doc:meta])*
        $part:ident {$(
            $(#[$doc:meta])*
            $call:ident $method:ident ($($by_ref:ident: $by_ref_type:ty),*) ($($by_value:ident: $by_value_type:ty),*)
                -> $reply:ty, $deadline:expr;
        )*}
    )*) => {
        /// A question to a node, or an order.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        pub enum NodeCall {
            $($($(#[$doc])* $call { $($by_ref: $by_ref_type,)* $($by_value: $by_value_type,)* },)*)*
        }

        /// What a node answers, by the name of the call.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum NodeReply {
            $($($call($reply),)*)*
        }

        impl NodeCall {
            /// The words of all calls, as they are on the wire.
            pub const NAMES: &'static [&'static str] = &[$($(stringify!($method),)*)*];

            /// The call's own word.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $($(Self::$call { .. } => stringify!($method),)*)* }
            }

            /// How long the asking side waits.
            #[expect(unused_variables, reason = "few deadlines depend on what is asked")]
            pub(crate) const fn deadline(&self) -> Duration {
                match self { $($(Self::$call { $($by_ref,)* $($by_value,)* } => $deadline,)*)* }
            }
        }

        /// The calls as methods, for whoever holds a node.
        pub trait NodeCalls: NodeApi {
            $($(
                $(#[$doc])*
                ///
                /// # Errors
                /// [`NodeError`]: the node's refusal, or the lack of an answer.
                fn $method(&self, $($by_ref: &$by_ref_type,)* $($by_value: $by_value_type,)*)
                    -> impl Future<Output = Result<$reply, NodeError>> + Send
                {
                    let call = NodeCall::$call { $($by_ref: $by_ref.clone(),)* $($by_value,)* };
                    async move {
                        match self.call(call).await? {
                            NodeReply::$call(reply) => Ok(reply),
                            _ => Err(NodeError::internal("the node answered another question")),
                        }
                    }
                }
            )*)*
        }

        impl<N: NodeApi + ?Sized> NodeCalls for N {}

        $(
            $(#[$part_doc])*
            pub trait $part: Send + Sync {
                $(
                    $(#[$doc])*
                    fn $method(&self, $($by_ref: &$by_ref_type,)* $($by_value: $by_value_type,)*)
                        -> impl Future<Output = Result<$reply, NodeError>> + Send;
                )*
            }
        )*

        /// Answers a call by the method of its name.
        ///
        /// # Errors
        /// Those of the method.
        pub async fn answer<N>(node: &N, call: NodeCall) -> Result<NodeReply, NodeError>
        where
            N: $($part +)*
        {
            match call {
                $($(NodeCall::$call { $($by_ref,)* $($by_value,)* } => {
                    let reply = node.$method($(&$by_ref,)* $($by_value,)*).await;
                    reply.map(NodeReply::$call)
                })*)*
            }
        }
    };
}

calls! {
    /// How a node and a database know each other, and what an operator may say about it.
    NodeIdentity {
        /// The first call of each end: what it speaks.
        Hello hello()(peer: Greeting) -> Greeting, QUESTION;
        Identity identity()() -> IdentityReport, QUESTION;
        /// Has the node remember its database, durably. Refused with `wrong_state` for another one than
        /// it knows, and for less than it knows, unless the operator has accepted it or the node is
        /// empty.
        RememberDatabase remember_database()(database: DatabaseMark) -> (), QUESTION;
        /// The operator's word that the next database is the right one, whichever it is.
        AcceptDatabase accept_database()() -> (), QUESTION;
        /// The operator's word that a sandbox whose record cannot be read is given up.
        ForgetUnreadable forget_unreadable(id: SandboxId)() -> (), QUESTION;
    }

    /// What sandboxes are made from.
    NodeTemplates {
        Templates templates()() -> Vec<TemplateReport>, QUESTION;
        /// One template, in whatever state it is.
        FindTemplate find_template(name: TemplateName)() -> TemplateReport, QUESTION;
        /// Makes sure that the template is baked or will be. Answers at once, with its state. One that
        /// can be used is left as it is.
        EnsureTemplate ensure_template(name: TemplateName)() -> TemplateReport, QUESTION;
        /// Makes sure that the template is baked, or will be, as its recipe is written now. Answers at
        /// once, with its state; what can be used goes on being used meanwhile.
        RenewTemplate renew_template(name: TemplateName)() -> TemplateReport, QUESTION;
        /// Makes sure that a template of a project exists, and is baked or will be. Answers at once,
        /// with its state. Another one of the same name is replaced.
        OrderTemplate order_template()(wanted: OrderedTemplate) -> TemplateReport, QUESTION;
        /// Makes sure that an ordered template does not exist. Sandboxes and snapshots that were made
        /// from it keep what they need of it. An absent one is a success; a recipe's is refused.
        ForgetTemplate forget_template(name: TemplateName)() -> (), QUESTION;
        /// Makes sure that the template is baked in another size than its own, or will be. Answers at
        /// once, with its state. Refused with `quota_exceeded` when there are as many sizes as there
        /// may be, and with `invalid_request` for one that this template or this host cannot have.
        EnsureVariant ensure_variant(name: TemplateName)(wanted: VariantRequest) -> VariantReport,
            QUESTION;
    }

    /// A node, its sandboxes and what their state can become. Every call may be repeated: one that
    /// finds its wish fulfilled succeeds. Dropping a future does not stop the work.
    NodeSandboxes {
        Status status()() -> NodeStatus, QUESTION;
        /// Makes sure the sandbox exists and runs. Repeatable by id; dropping the future does not stop
        /// the work, so call again to learn how it ended. A refusal leaves nothing behind.
        EnsureSandbox ensure_sandbox()(wanted: EnsureSandbox) -> SandboxReport, CREATE;
        /// As `ensure_sandbox`, for one whose machine boots anew on the disk of a snapshot of the same
        /// project. Nothing of that one's memory is used, nor the engine that saved it. Refused with
        /// `no_capacity` while as many boot as may at once.
        ///
        /// A call of its own, so that a node which does not know it cannot take it for a restore.
        BootSandbox boot_sandbox(disk_of: SnapshotId)(wanted: EnsureSandbox) -> SandboxReport, BOOT;
        /// Makes sure the sandbox does not exist. An absent one is a success.
        DeleteSandbox delete_sandbox(id: SandboxId)() -> (), DELETE;
        Sandbox sandbox(id: SandboxId)() -> SandboxReport, QUESTION;
        Sandboxes sandboxes()() -> Vec<SandboxReport>, QUESTION;
        /// What each sandbox of a project that runs costs the host now.
        Loads loads(project: ProjectId)() -> Vec<ResourceUse>, QUESTION;
        /// The same of the sandboxes of all projects.
        AllLoads all_loads()() -> Vec<ResourceUse>, QUESTION;
        /// Stops the guest's processors. Memory stays where it is.
        Pause pause(id: SandboxId)() -> SandboxReport, STATE;
        Resume resume(id: SandboxId)() -> SandboxReport, STATE;
        /// Captures to disk and ends the machine: no process and no memory are left.
        Hibernate hibernate(id: SandboxId)() -> SandboxReport, STATE;
        /// Restores a hibernated sandbox. Calls that need the guest do this by themselves.
        Wake wake(id: SandboxId)() -> SandboxReport, STATE;
        /// Takes the sandbox back to a snapshot of its own, in place.
        Rollback rollback(id: SandboxId, snapshot: SnapshotId)() -> SandboxReport, STATE;
        Lifecycle lifecycle(id: SandboxId)() -> LifecycleReport, QUESTION;
        SetLifecycle set_lifecycle(id: SandboxId)(change: LifecycleChange) -> LifecycleReport, STATE;
    }

    /// Execs that were started before.
    NodeExecs {
        DescribeExec describe_exec(id: SandboxId, exec: ExecId)() -> ExecInfo, WAKING;
        /// Oldest first.
        ListExecs list_execs(id: SandboxId)() -> Vec<ExecInfo>, WAKING;
        SignalExec signal_exec(id: SandboxId, exec: ExecId)(signal: i32) -> (), WAKING;
        ResizeExec resize_exec(id: SandboxId, exec: ExecId)(size: WindowSize) -> (), WAKING;
        /// Ends the exec and drops its output. An absent one is a success.
        ForgetExec forget_exec(id: SandboxId, exec: ExecId)() -> (), WAKING;
    }

    /// Snapshots and forks.
    NodeSnapshots {
        /// Captures a running sandbox without ending it.
        Snapshot snapshot(id: SandboxId)(request: SnapshotRequest) -> SnapshotReport, STATE;
        /// Every published snapshot of the node, newest first.
        Snapshots snapshots()() -> Vec<SnapshotReport>, QUESTION;
        /// Those of one project, newest first.
        SnapshotsOf snapshots_of(project: ProjectId)() -> Vec<SnapshotReport>, QUESTION;
        /// One snapshot, of whatever project.
        FindSnapshot find_snapshot(id: SnapshotId)() -> SnapshotReport, QUESTION;
        /// Makes sure the snapshot does not exist. What others need of it stays until they go.
        DeleteSnapshot delete_snapshot(id: SnapshotId)() -> (), DELETE;
        /// One capture of `id`, restored once for each child.
        Fork fork(id: SandboxId)(request: ForkRequest) -> ForkReport, FORK;
    }

    /// Disks that outlive sandboxes.
    NodeVolumes {
        EnsureVolume ensure_volume()(wanted: EnsureVolume) -> VolumeReport, STATE;
        Volumes volumes()() -> Vec<VolumeReport>, QUESTION;
        VolumesOf volumes_of(project: ProjectId)() -> Vec<VolumeReport>, QUESTION;
        FindVolume find_volume(project: ProjectId, name: VolumeName)() -> VolumeReport, QUESTION;
        /// Refused with `volume_busy` while a sandbox has it.
        DeleteVolume delete_volume(project: ProjectId, name: VolumeName)() -> (), DELETE;
    }

    /// What a sandbox may reach. Nothing here wakes one.
    NodeNetwork {
        /// Puts a policy in the place of the one that holds, for open connections as well. Repeating
        /// it with the same epoch and policy succeeds; an epoch that is older than the node's, or the
        /// node's with another policy, is refused with `wrong_state` and changes nothing.
        ///
        /// A success means that the node will keep it; [`NetworkReport::is_enforced`] says whether it
        /// holds already.
        SetNetwork set_network(id: SandboxId)(wanted: SetNetwork) -> NetworkReport, SET_NETWORK;
        Network network(id: SandboxId)() -> NetworkReport, QUESTION;
        /// The record of what was tried, oldest first.
        NetworkLog network_log(id: SandboxId)(request: ReadNetworkLog) -> NetworkLogPage,
            QUESTION.saturating_add(request.wait);
        /// What was decided about the egress of all sandboxes, oldest first.
        EgressDecisions egress_decisions()(request: ReadNetworkLog) -> EgressDecisionPage,
            QUESTION.saturating_add(request.wait);
    }

    /// Files. Every call acts as a user of the guest, and wakes a sandbox that sleeps.
    NodeFiles {
        ListDirectory list_directory(id: SandboxId)(request: ListDirectory) -> DirectoryPage, WAKING;
        Stat stat(id: SandboxId)(request: GuestPath) -> FileStat, WAKING;
        MakeDirectory make_directory(id: SandboxId)(request: EnsureDirectory) -> (), WAKING;
        MoveFile move_file(id: SandboxId)(request: MoveEntry) -> (), WAKING;
        ChangeMode change_mode(id: SandboxId)(request: SetMode) -> (), WAKING;
        RemoveFile remove_file(id: SandboxId)(request: RemoveFile) -> (), WAKING;
        /// What differs on the sandbox's disk.
        ListChanges list_changes(id: SandboxId)(request: ListChanges) -> Changes, WAKING;
    }

    /// Services that listen inside a sandbox.
    NodeListeners {
        /// What listens in the sandbox now. Does not wake it: one that sleeps has none.
        Ports ports(id: SandboxId)() -> Vec<Listener>, QUESTION;
        /// Waits until something listens on a port, or refuses with `timeout`. Wakes a sandbox that
        /// sleeps, and is use of it for as long as it waits.
        WaitPort wait_port(id: SandboxId)(request: WaitPort) -> Listener,
            WAKING.saturating_add(request.limit);
    }
}
