//! A row of `sandboxes`.

use std::collections::BTreeMap;

use dayfly_types::volume::MountedVolume;
use dayfly_types::{
    CpuMillis, DiskMib, Generation, IdleAction, LifetimeRules, NodeId, ProjectId, SandboxId,
    SandboxState, SnapshotId, TemplateName,
};
use sqlx::FromRow;

use super::{EgressRow, StoreError};

/// What should exist, and the last that the node said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxRow {
    pub id: SandboxId,
    pub project: ProjectId,
    pub node: NodeId,
    pub template: TemplateName,
    pub state: SandboxState,
    pub generation: Generation,
    pub reason: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub lifecycle: LifetimeRules,
    /// The node's last word on when it deletes the sandbox.
    pub expires_at_ms: Option<i64>,
    pub cpu: u32,
    pub cpu_limit: Option<CpuMillis>,
    pub memory_mb: u64,
    /// What the caller asked for.
    pub disk_wanted: Option<DiskMib>,
    /// What it is.
    pub disk_mib: u64,
    pub from_snapshot: Option<SnapshotId>,
    pub volumes: Vec<MountedVolume>,
    /// The sandbox that it is a fork of.
    pub fork_parent: Option<SandboxId>,
    /// Shared by the children of one fork, and by nothing else.
    pub fork_tree: Option<String>,
    pub egress: EgressRow,
    pub isolation: String,
    pub ready_ms: Option<u64>,
    pub stages: BTreeMap<String, u64>,
    pub created_at_ms: i64,
    pub deleted_at_ms: Option<i64>,
}

#[derive(Debug, FromRow)]
pub(super) struct RawSandbox {
    id: String,
    project_id: String,
    node_id: String,
    template: String,
    state: String,
    generation: i64,
    reason: Option<String>,
    metadata: String,
    ttl_seconds: Option<i64>,
    persistent: i64,
    idle_seconds: Option<i64>,
    on_timeout: String,
    expires_at_ms: Option<i64>,
    cpu: i64,
    cpu_limit_millis: Option<i64>,
    memory_mb: i64,
    disk_wanted_mib: Option<i64>,
    disk_mib: i64,
    from_snapshot: Option<String>,
    volumes: String,
    fork_parent: Option<String>,
    fork_tree: Option<String>,
    egress: String,
    egress_epoch: i64,
    egress_reserved: i64,
    egress_confirmed: i64,
    egress_changed_at_ms: i64,
    isolation: String,
    ready_ms: Option<i64>,
    stages: String,
    created_at_ms: i64,
    deleted_at_ms: Option<i64>,
}

fn corrupt(column: &'static str) -> StoreError {
    StoreError::Corrupt {
        table: "sandboxes",
        column,
    }
}

/// Reads one column.
fn parsed<T, E>(value: Result<T, E>, column: &'static str) -> Result<T, StoreError> {
    value.map_err(|_| corrupt(column))
}

fn count(value: i64, column: &'static str) -> Result<u64, StoreError> {
    parsed(u64::try_from(value), column)
}

fn optional_count(value: Option<i64>, column: &'static str) -> Result<Option<u64>, StoreError> {
    value.map(|value| count(value, column)).transpose()
}

/// Reads a column that holds a checked number.
fn optional_size<T: TryFrom<u64>>(
    value: Option<i64>,
    column: &'static str,
) -> Result<Option<T>, StoreError> {
    optional_count(value, column)?
        .map(|value| parsed(T::try_from(value), column))
        .transpose()
}

/// Reads a column that holds a checked text.
fn optional_id<T: TryFrom<String>>(
    value: Option<String>,
    column: &'static str,
) -> Result<Option<T>, StoreError> {
    value
        .map(|value| parsed(T::try_from(value), column))
        .transpose()
}

impl TryFrom<RawSandbox> for SandboxRow {
    type Error = StoreError;

    fn try_from(raw: RawSandbox) -> Result<Self, StoreError> {
        let on_timeout = IdleAction::parse(&raw.on_timeout).ok_or_else(|| corrupt("on_timeout"))?;
        let lifecycle = LifetimeRules {
            ttl_seconds: optional_count(raw.ttl_seconds, "ttl_seconds")?,
            persistent: raw.persistent != 0,
            idle_seconds: optional_count(raw.idle_seconds, "idle_seconds")?,
            on_timeout,
        };
        let egress = EgressRow {
            policy: parsed(serde_json::from_str(&raw.egress), "egress")?,
            epoch: count(raw.egress_epoch, "egress_epoch")?,
            reserved: count(raw.egress_reserved, "egress_reserved")?,
            confirmed: count(raw.egress_confirmed, "egress_confirmed")?,
            changed_at_ms: raw.egress_changed_at_ms,
        };
        Ok(Self {
            id: parsed(SandboxId::try_from(raw.id), "id")?,
            project: parsed(ProjectId::try_from(raw.project_id), "project_id")?,
            node: parsed(NodeId::try_from(raw.node_id), "node_id")?,
            template: parsed(TemplateName::try_from(raw.template), "template")?,
            state: SandboxState::parse(&raw.state).ok_or_else(|| corrupt("state"))?,
            generation: Generation(count(raw.generation, "generation")?),
            reason: raw.reason,
            metadata: parsed(serde_json::from_str(&raw.metadata), "metadata")?,
            lifecycle,
            expires_at_ms: raw.expires_at_ms,
            cpu: parsed(u32::try_from(raw.cpu), "cpu")?,
            cpu_limit: optional_size(raw.cpu_limit_millis, "cpu_limit_millis")?,
            memory_mb: count(raw.memory_mb, "memory_mb")?,
            disk_wanted: optional_size(raw.disk_wanted_mib, "disk_wanted_mib")?,
            disk_mib: count(raw.disk_mib, "disk_mib")?,
            from_snapshot: optional_id(raw.from_snapshot, "from_snapshot")?,
            volumes: parsed(serde_json::from_str(&raw.volumes), "volumes")?,
            fork_parent: optional_id(raw.fork_parent, "fork_parent")?,
            fork_tree: raw.fork_tree,
            egress,
            isolation: raw.isolation,
            ready_ms: optional_count(raw.ready_ms, "ready_ms")?,
            stages: parsed(serde_json::from_str(&raw.stages), "stages")?,
            created_at_ms: raw.created_at_ms,
            deleted_at_ms: raw.deleted_at_ms,
        })
    }
}

/// A number for a `BIGINT` column; one that does not fit is as good as the largest.
pub(super) fn bigint(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
