//! The server about itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Answer of `GET /health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`, or `degraded` when the node process cannot be reached.
    pub status: String,
    pub version: String,
}

/// Answer of `GET /v1/me`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    pub project: String,
    pub key_prefix: String,
    /// What the key may be used for: of `read`, `create`, `exec`, `admin` and `operator`.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The only sandbox that it may be used on.
    #[serde(default)]
    pub sandbox_id: Option<String>,
}

/// Answer of `GET /v1/node`: the host's own account of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    pub node: String,
    pub isolation: String,
    pub engine: String,
    pub engine_version: String,
    pub accelerator: String,
    pub sandboxes: u64,
    pub memory_total_mb: u64,
    pub memory_committed_mb: u64,
    pub memory_reserve_mb: u64,
    pub disk_available_mb: u64,
    pub disk_committed_mb: u64,
    pub disk_reserve_mb: u64,
    pub parked_slots: u64,
    pub parked_slots_target: u64,
    pub parked_engines: Vec<PoolView>,
}

/// Parked engines of one template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolView {
    pub template: String,
    pub parked: u64,
    pub target: u64,
}
