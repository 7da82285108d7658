//! A row of `sandboxes`.

use std::collections::BTreeMap;

use dayfly_types::{Generation, NodeId, ProjectId, SandboxId, SandboxState, TemplateName};
use sqlx::FromRow;

use super::StoreError;

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
    pub ttl_seconds: Option<u64>,
    pub persistent: bool,
    pub cpu: u32,
    pub memory_mb: u64,
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
    cpu: i64,
    memory_mb: i64,
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

impl TryFrom<RawSandbox> for SandboxRow {
    type Error = StoreError;

    fn try_from(raw: RawSandbox) -> Result<Self, StoreError> {
        let count = |value: i64, column| u64::try_from(value).map_err(|_| corrupt(column));
        Ok(Self {
            id: SandboxId::parse(&raw.id).map_err(|_| corrupt("id"))?,
            project: ProjectId::parse(&raw.project_id).map_err(|_| corrupt("project_id"))?,
            node: NodeId::parse(&raw.node_id).map_err(|_| corrupt("node_id"))?,
            template: TemplateName::parse(&raw.template).map_err(|_| corrupt("template"))?,
            state: SandboxState::parse(&raw.state).ok_or_else(|| corrupt("state"))?,
            generation: Generation(count(raw.generation, "generation")?),
            reason: raw.reason,
            metadata: serde_json::from_str(&raw.metadata).map_err(|_| corrupt("metadata"))?,
            ttl_seconds: raw
                .ttl_seconds
                .map(|value| count(value, "ttl_seconds"))
                .transpose()?,
            persistent: raw.persistent != 0,
            cpu: u32::try_from(raw.cpu).map_err(|_| corrupt("cpu"))?,
            memory_mb: count(raw.memory_mb, "memory_mb")?,
            isolation: raw.isolation,
            ready_ms: raw
                .ready_ms
                .map(|value| count(value, "ready_ms"))
                .transpose()?,
            stages: serde_json::from_str(&raw.stages).map_err(|_| corrupt("stages"))?,
            created_at_ms: raw.created_at_ms,
            deleted_at_ms: raw.deleted_at_ms,
        })
    }
}

/// A number for a `BIGINT` column; one that does not fit is as good as the largest.
pub(super) fn bigint(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
