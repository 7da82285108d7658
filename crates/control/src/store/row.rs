//! A row of `sandboxes`.
//!
//! What a statement compares, sorts by or adds up is a column. All else is in a JSON text, one for
//! each who writes it, so that each is written whole and nobody has to read it first. A new field
//! is a line in its type. Rows from before do not have it, so it is an `Option` or has a default.

use std::collections::BTreeMap;

use dayfly_node_api::SandboxReport;
use dayfly_types::volume::MountedVolume;
use dayfly_types::{
    CpuMillis, DiskMib, EndReason, Generation, LifetimeRules, NodeId, ProjectId, SandboxClass,
    SandboxId, SandboxState, SnapshotId, TemplateName, TemplateSize,
};
use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use super::{EgressRow, StoreError};
use crate::sandbox::environment::Environment;
use crate::sandbox::name::SandboxName;

/// What should exist, and the last that the node said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxRow {
    pub id: SandboxId,
    pub project: ProjectId,
    pub node: NodeId,
    pub state: SandboxState,
    pub generation: Generation,
    /// What its project calls it.
    pub name: Option<SandboxName>,
    pub spec: SandboxSpec,
    /// What its commands and new contexts have.
    pub environment: Environment,
    pub status: SandboxStatus,
    /// What was asked for, then the node's last word.
    pub lifetime: LifetimeRules,
    /// The node's last word on when it deletes the sandbox.
    pub expires_at_ms: Option<i64>,
    pub cpu: u32,
    pub memory_mb: u64,
    pub disk_mib: u64,
    /// Shared by the children of one fork, and by nothing else.
    pub fork_tree: Option<String>,
    pub egress: EgressRow,
    pub created_at_ms: i64,
    pub deleted_at_ms: Option<i64>,
    /// Why it goes or went, as far as that is known.
    pub ended: Option<Ending>,
}

impl SandboxRow {
    /// Whether its time to live was over at a moment.
    #[must_use]
    pub fn is_past(&self, at_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|expires| expires <= at_ms)
    }
}

/// Why a sandbox went, and by whose wish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    pub reason: EndReason,
    /// The prefix of the key that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl From<EndReason> for Ending {
    fn from(reason: EndReason) -> Self {
        Self { reason, by: None }
    }
}

/// What was asked for. Written with the row and never again: a field that this program does not
/// know is still there for the one that does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    pub template: TemplateName,
    /// What the template is called by those who made it, where that is another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<String>,
    /// The template's variant of this size. `None`: its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<TemplateSize>,
    pub metadata: BTreeMap<String, String>,
    pub cpu_limit: Option<CpuMillis>,
    pub disk_wanted: Option<DiskMib>,
    pub from_snapshot: Option<SnapshotId>,
    /// Of `from_snapshot` the disk alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disk_only: bool,
    pub volumes: Vec<MountedVolume>,
    #[serde(default, skip_serializing_if = "SandboxClass::is_reserved")]
    pub class: SandboxClass,
    /// The sandbox that it is a fork of.
    pub fork_parent: Option<SandboxId>,
    pub isolation: String,
}

impl SandboxSpec {
    /// The snapshot whose disk its machine was booted on.
    #[must_use]
    pub fn disk_of(&self) -> Option<&SnapshotId> {
        self.from_snapshot.as_ref().filter(|_| self.disk_only)
    }
}

/// What the node said last. Each report takes the place of the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxStatus {
    pub reason: Option<String>,
    pub ready_ms: Option<u64>,
    pub stages: BTreeMap<String, u64>,
}

impl From<&SandboxReport> for SandboxStatus {
    fn from(report: &SandboxReport) -> Self {
        let stages = report.stages.iter();
        Self {
            reason: report.reason.clone(),
            ready_ms: report.ready_ms,
            stages: stages
                .map(|stage| (stage.name.clone(), stage.micros))
                .collect(),
        }
    }
}

#[derive(Debug, FromRow)]
pub(super) struct RawSandbox {
    id: String,
    project_id: String,
    node_id: String,
    state: String,
    generation: i64,
    name: Option<String>,
    spec: String,
    environment: String,
    status: String,
    lifetime: String,
    expires_at_ms: Option<i64>,
    cpu: i64,
    memory_mb: i64,
    disk_mib: i64,
    fork_tree: Option<String>,
    egress: String,
    egress_epoch: i64,
    egress_reserved: i64,
    egress_confirmed: i64,
    egress_changed_at_ms: i64,
    created_at_ms: i64,
    deleted_at_ms: Option<i64>,
    ended: Option<String>,
}

pub(super) fn corrupt(column: &'static str) -> StoreError {
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

impl TryFrom<RawSandbox> for SandboxRow {
    type Error = StoreError;

    fn try_from(raw: RawSandbox) -> Result<Self, StoreError> {
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
            state: SandboxState::parse(&raw.state).ok_or_else(|| corrupt("state"))?,
            generation: Generation(count(raw.generation, "generation")?),
            name: parsed(raw.name.map(SandboxName::try_from).transpose(), "name")?,
            spec: parsed(serde_json::from_str(&raw.spec), "spec")?,
            environment: parsed(serde_json::from_str(&raw.environment), "environment")?,
            status: parsed(serde_json::from_str(&raw.status), "status")?,
            lifetime: parsed(serde_json::from_str(&raw.lifetime), "lifetime")?,
            expires_at_ms: raw.expires_at_ms,
            cpu: parsed(u32::try_from(raw.cpu), "cpu")?,
            memory_mb: count(raw.memory_mb, "memory_mb")?,
            disk_mib: count(raw.disk_mib, "disk_mib")?,
            fork_tree: raw.fork_tree,
            egress,
            created_at_ms: raw.created_at_ms,
            deleted_at_ms: raw.deleted_at_ms,
            // Nothing depends on it: what cannot be read is not known.
            ended: raw.ended.as_deref().and_then(read_ending),
        })
    }
}

pub(super) fn read_ending(text: &str) -> Option<Ending> {
    serde_json::from_str(text).ok()
}

/// A number for a `BIGINT` column; one that does not fit is as good as the largest.
pub(super) fn bigint(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A value for a column of JSON text.
pub(super) fn text<T: Serialize>(value: &T) -> String {
    // Plain data always serialises; what could not be read back would be refused, not guessed.
    serde_json::to_string(value).unwrap_or_default()
}
