//! Plain data that crosses between control and node. JSON, additive only.

use std::collections::BTreeMap;

use dayfly_types::container_image::MadeImage;
use dayfly_types::egress::{Decision, DenyReason, EgressPolicy, EgressRecordKind};
use dayfly_types::volume::MountedVolume;
use dayfly_types::{
    ContextLanguage, CpuMillis, DiskMib, EndReason, Generation, Isolation, LifetimeRules,
    MemoryMib, NodeId, ProjectId, RunMeaning, SandboxClass, SandboxCondition, SandboxId,
    SandboxState, SleepReason, SnapshotId, TemplateName, TemplateSize, Vcpus,
};
use serde::{Deserialize, Serialize};

/// What should exist. Repeating it with the same id answers with the same sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnsureSandbox {
    pub id: SandboxId,
    pub project: ProjectId,
    pub template: TemplateName,
    /// The template's variant of this size. `None`: its own. A snapshot has the size that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<TemplateSize>,
    /// Restored instead of the template. It must be of the same project.
    #[serde(default)]
    pub from_snapshot: Option<SnapshotId>,
    #[serde(default)]
    pub lifecycle: LifetimeRules,
    /// At most the template's processors.
    #[serde(default)]
    pub cpu: Option<CpuMillis>,
    /// At least the template's disk, or the snapshot's.
    #[serde(default)]
    pub disk: Option<DiskMib>,
    #[serde(default)]
    pub volumes: Vec<MountedVolume>,
    /// Also give new seeds to generators in user space: the guest's reseed hooks are run with
    /// `DAYFLY_RESEED` set.
    #[serde(default)]
    pub reseed_user_space: bool,
    /// What it may reach from its first moment on. Whatever a snapshot was taken under does not
    /// count. Repeating the call for a sandbox that exists does not change its policy.
    #[serde(default)]
    pub egress: EgressPolicy,
    #[serde(default)]
    pub egress_epoch: u64,
    /// Labels of the caller's own. The node only keeps them, for a database that lost its row.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// When its row was written, Unix milliseconds; kept for the same reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at_ms: Option<i64>,
    /// How much of its size it is promised. Who says nothing wants all of it.
    #[serde(default, skip_serializing_if = "SandboxClass::is_reserved")]
    pub class: SandboxClass,
}

/// What a sandbox that runs costs the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceUse {
    pub id: SandboxId,
    /// Processor time since its machine was started, which a wake does anew.
    pub cpu_micros: u64,
    /// Memory that it alone has. What it shares with others of its template does not count.
    pub memory_bytes: u64,
    /// What its disk takes on the host beside what captures have sealed, in whole MiB.
    #[serde(default)]
    pub disk_bytes: u64,
    /// What its interface has received and sent since its machine was started.
    #[serde(default)]
    pub network_in_bytes: u64,
    #[serde(default)]
    pub network_out_bytes: u64,
    /// Which machine that is: another one counts from zero.
    #[serde(default)]
    pub machine: String,
}

/// What a node says of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReport {
    pub id: SandboxId,
    pub project: ProjectId,
    pub template: TemplateName,
    pub state: SandboxState,
    pub generation: Generation,
    /// Why it failed, for a person.
    pub reason: Option<String>,
    pub memory: MemoryMib,
    pub vcpus: Vcpus,
    /// How long the node took from the call to a guest that runs user code.
    pub ready_ms: Option<u64>,
    /// Each part of that, in order.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// When the first of them began, in Unix microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages_began_us: Option<u64>,
    /// Seconds until the node deletes it.
    pub expires_in_seconds: Option<u64>,
    #[serde(default)]
    pub lifecycle: LifetimeRules,
    #[serde(default)]
    pub cpu: Option<CpuMillis>,
    #[serde(default)]
    pub disk_mib: u64,
    #[serde(default)]
    pub from_snapshot: Option<SnapshotId>,
    /// Its machine was booted on the disk of that snapshot. Not known any more of one that has slept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disk_only: bool,
    #[serde(default)]
    pub volumes: Vec<MountedVolume>,
    /// Why the node cannot use it now, although nothing happened to it. Its state is what it will
    /// be again when the cause is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at_ms: Option<i64>,
    /// What is wrong with it beside its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<SandboxCondition>,
    /// Why the node ends it, or has ended it, by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<EndReason>,
    #[serde(default, skip_serializing_if = "SandboxClass::is_reserved")]
    pub class: SandboxClass,
    /// Why it sleeps, if neither its user nor its rules asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep_reason: Option<SleepReason>,
}

/// A sandbox of which a node has no more than an entry that it cannot read or take over now. It is
/// in no list of sandboxes, and it is not gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSandbox {
    pub id: SandboxId,
    /// Whose it is, as far as that can be read.
    pub project: Option<ProjectId>,
    /// For a person.
    pub reason: String,
}

/// One timed part of a create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    pub name: String,
    pub micros: u64,
}

/// A template on this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateReport {
    pub name: TemplateName,
    pub description: String,
    /// The template that this is only a further name of.
    pub alias_of: Option<TemplateName>,
    pub memory: MemoryMib,
    pub vcpus: Vcpus,
    pub disk_mib: u64,
    pub run: RunMeaning,
    pub contexts: Vec<ContextLanguage>,
    /// How far its last bake is.
    pub state: BakeState,
    /// Sandboxes can be made from it now: from its last bake, or from the one before it while that
    /// is under way or when it failed. All but the state is told of the bake that is used.
    #[serde(default)]
    pub is_usable: bool,
    /// Bytes on disk of what is used.
    pub size_bytes: u64,
    /// When that was baked, Unix seconds.
    pub baked_at: Option<i64>,
    /// What is said of the use of its disk, if that is known and was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<MadeImage>,
    /// The other sizes that it was asked for in, smallest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<VariantReport>,
}

/// A template in another size than its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantReport {
    pub size: TemplateSize,
    /// How far its last bake is.
    pub state: BakeState,
    #[serde(default)]
    pub is_usable: bool,
    pub size_bytes: u64,
    pub baked_at: Option<i64>,
    /// How long the bake took that is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bake_ms: Option<u64>,
    /// It was baked because a create waits for it, and no sandbox was made from it since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_awaited: bool,
}

/// A size that a template is wanted in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantRequest {
    pub size: TemplateSize,
    /// The project that it counts for, if it has to be baked. `None`: an operator wants it.
    pub by: Option<ProjectId>,
    /// A create waits for it.
    #[serde(default)]
    pub is_awaited: bool,
    /// Baked anew if its recipe is another by now.
    #[serde(default)]
    pub renew: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum BakeState {
    /// Baked as soon as somebody asks for it.
    NotBaked,
    Waiting,
    Baking {
        percent: u8,
        step: String,
    },
    Ready,
    Failed {
        reason: String,
    },
}

/// A node's own account of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    pub node: NodeId,
    pub isolation: Isolation,
    pub engine: String,
    pub engine_version: String,
    pub accelerator: String,
    pub sandboxes: u64,
    pub memory_total_mib: u64,
    /// Promised to sandboxes and parked engines.
    pub memory_committed_mib: u64,
    /// Kept for the host.
    pub memory_reserve_mib: u64,
    pub disk_available_mib: u64,
    pub disk_committed_mib: u64,
    pub disk_reserve_mib: u64,
    pub pools: Vec<PoolStatus>,
    pub parked_slots: u64,
    pub parked_slots_target: u64,
    /// Slots that the pool holds, with or without an engine.
    #[serde(default)]
    pub held_slots: Vec<u32>,
    #[serde(default)]
    pub kept: Vec<KeptSandbox>,
    /// Times that this process ended unasked and was started again, since the daemon began.
    #[serde(default)]
    pub restarts: u64,
    #[serde(default)]
    pub egress: EgressStatus,
    #[serde(default)]
    pub sharing: SharingStatus,
}

/// How a node shares its host, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharingStatus {
    /// How many times over the memory of shared sandboxes is promised. One: there are none here.
    pub memory: u64,
    /// The same of their disks.
    pub disk: u64,
    /// What the host could give when it was looked at last.
    pub memory_available_mib: Option<u64>,
    /// What is short now, for a person.
    pub pressure: Option<String>,
    /// Sandboxes that were put to sleep for others since the node process began.
    pub put_to_sleep: u64,
    /// Tries of that which came to nothing.
    pub not_put_to_sleep: u64,
}

impl Default for SharingStatus {
    fn default() -> Self {
        Self {
            memory: 1,
            disk: 1,
            memory_available_mib: None,
            pressure: None,
            put_to_sleep: 0,
            not_put_to_sleep: 0,
        }
    }
}

/// What the egress process did since the node process began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressStatus {
    /// Times that it had ended and was started again.
    pub restarts: u64,
    /// Those that were made at least once.
    pub decisions: Vec<EgressCount>,
}

/// How often one decision was made about one kind of traffic, over all sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressCount {
    pub kind: EgressRecordKind,
    pub decision: Decision,
    pub reason: Option<DenyReason>,
    pub count: u64,
}

/// Parked engines of one template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStatus {
    pub template: TemplateName,
    pub parked: u64,
    pub target: u64,
}
