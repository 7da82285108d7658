//! The server about itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Response of `GET /health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`, or `degraded` when there are `conditions`.
    pub status: String,
    pub version: String,
    /// What is wrong, when something is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<HealthCondition>,
}

/// Something that is wrong with the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HealthCondition {
    /// A stable word that programs may match, as `store_unwritable` or `node_unreachable`.
    pub name: String,
    /// Why.
    pub detail: String,
    /// What the operator can do about it.
    pub remedy: String,
}

/// Response of `GET /v1/me`.
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

/// Response of `GET /v1/node`: the host's own account of itself.
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
    /// How many times over the memory of shared sandboxes is promised. 1: there are none.
    #[serde(default = "once")]
    pub memory_share: u64,
    /// The same of their disks.
    #[serde(default = "once")]
    pub disk_share: u64,
    /// Where there are shared sandboxes: what the host could give when it was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_available_mb: Option<u64>,
    /// What is short of memory now, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<String>,
    /// Sandboxes that were put to sleep for others since the node process began.
    #[serde(default)]
    pub put_to_sleep: u64,
}

/// A host that says nothing of it does not share.
const fn once() -> u64 {
    1
}

/// Parked engines of one template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolView {
    pub template: String,
    pub parked: u64,
    pub target: u64,
}
