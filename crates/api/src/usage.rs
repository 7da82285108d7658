//! What sandboxes and projects used over time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Response of `GET /v1/sandboxes/{id}/metrics`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SandboxMetrics {
    /// Oldest first. There are none of the time in which it had no machine.
    pub items: Vec<SandboxSample>,
}

/// What a sandbox had used at one moment of its life, and had then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SandboxSample {
    /// RFC 3339, UTC.
    pub at: String,
    /// CPU time in microseconds since the sandbox was made, over hibernations: between two samples
    /// it is a load.
    pub cpu_us: u64,
    /// Memory that it alone has, in bytes. What it shares with others of its template does not count.
    pub memory_bytes: u64,
    /// What its disk takes on the host since its last snapshot, fork or hibernation, in bytes; whole
    /// MiB.
    pub disk_bytes: u64,
    /// What its network interface received since the sandbox was made, in bytes.
    pub network_in_bytes: u64,
    /// What it sent.
    pub network_out_bytes: u64,
}

/// Response of `GET /v1/usage/hours`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageHourList {
    /// Oldest first, and by project within an hour. An hour in which nothing was used is not there.
    pub items: Vec<UsageHour>,
    /// Ask with this as `cursor` for what comes behind. Null: there is nothing more.
    pub next_cursor: Option<String>,
}

/// What a project used in one hour. The hour that goes on grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageHour {
    /// When it began (RFC 3339, UTC).
    pub hour: String,
    /// Sandboxes that came to run for the first time.
    pub sandboxes_started: u64,
    /// Time in which sandboxes had a machine, running or paused, added up. Exact to a millisecond.
    pub sandbox_seconds: f64,
    /// The same, times the vCPUs of each sandbox.
    pub vcpu_seconds: f64,
    /// The same, times the memory of each sandbox in MiB.
    pub memory_mb_seconds: f64,
    /// CPU time that was used, as measured at samples: what a machine used after its last one is not
    /// in it.
    pub cpu_seconds: f64,
    /// What sandboxes received and sent, measured in the same way.
    pub network_in_bytes: u64,
    pub network_out_bytes: u64,
    /// Whose it is, in a view over all projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}
