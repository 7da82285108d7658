//! What a control plane must be told.

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use dayfly_trace::ExportSettings;
use dayfly_types::egress::InternalNetworks;
use dayfly_types::{CellName, NodeId, limits};

use crate::audit::AuditSettings;
use crate::gateway::GatewaySettings;
use crate::tenancy::key::KeyHash;
use crate::tenancy::sign_in_settings::SignInConfig;

/// Everything [`crate::run()`] needs.
#[derive(Debug)]
pub struct ControlConfig {
    /// Where the public API is served.
    pub listener: TcpListener,
    /// The SQLite file; made when it does not exist.
    pub database: PathBuf,
    /// The unix socket of the node.
    pub node_socket: PathBuf,
    /// The operator's key, as its hash. Replaces the one of the last start.
    pub admin_key: KeyHash,
    /// The key of the people on this host, as its hash. That of an earlier start works no more.
    pub local_key: Option<KeyHash>,
    /// Part of every sandbox id made here.
    pub cell: CellName,
    /// The one node of this control plane.
    pub node_id: NodeId,
    pub reconcile: ReconcileSettings,
    /// The way from outside to services in sandboxes.
    pub gateway: GatewaySettings,
    /// What of private space the operator has opened, and to which projects.
    pub internal_networks: InternalNetworks,
    /// How people sign in, if they can.
    pub sign_in: Option<SignInConfig>,
    /// Where traces of requests are sent, if anywhere.
    pub traces: Option<ExportSettings>,
}

/// How the reconciler paces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReconcileSettings {
    /// Between two comparisons of rows and node.
    pub interval: Duration,
    /// A row that the node does not know counts as gone after this long. Longer than a create.
    pub lost_after: Duration,
    /// As `lost_after`, for a child whose fork may still be under way. Longer than a fork.
    pub fork_lost_after: Duration,
    /// As `lost_after`, for a sandbox whose machine may still boot. Longer than control waits for one.
    pub boot_lost_after: Duration,
    /// A wider network that nobody wrote for this long is taken back. Longer than a node takes.
    pub network_lost_after: Duration,
    /// A sandbox without a row is adopted after this long. Longer than a refused create is undone.
    pub orphan_after: Duration,
    /// A template that no project has is given up after this long. Longer than an order takes.
    pub stray_after: Duration,
    /// How long the node may not answer before the server is unhealthy.
    pub node_outage_max: Duration,
    /// How long deleted rows are told from wrong ids.
    pub deleted_kept: Duration,
    /// How long an idempotency key is remembered.
    pub idempotency_kept: Duration,
    /// How long it can be read what happened to sandboxes.
    pub events_kept: Duration,
    /// How long the audit record is kept.
    pub audit_kept: Duration,
    /// How long it can be read what projects used in an hour.
    pub usage_kept: Duration,
    /// Between two samples of what sandboxes use.
    pub sample_interval: Duration,
    pub audit: AuditSettings,
}

impl Default for ReconcileSettings {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(30),
            lost_after: Duration::from_secs(60),
            fork_lost_after: Duration::from_secs(330),
            boot_lost_after: Duration::from_secs(200),
            network_lost_after: Duration::from_secs(45),
            orphan_after: Duration::from_secs(30),
            stray_after: Duration::from_secs(300),
            node_outage_max: limits::NODE_OUTAGE_MAX,
            deleted_kept: Duration::from_secs(7 * 24 * 3600),
            idempotency_kept: Duration::from_secs(24 * 3600),
            events_kept: Duration::from_secs(7 * 24 * 3600),
            audit_kept: Duration::from_secs(90 * 24 * 3600),
            usage_kept: limits::USAGE_KEPT,
            sample_interval: limits::SAMPLE_PERIOD,
            audit: AuditSettings::default(),
        }
    }
}

const _: () = assert!(60 > limits::CREATE_DEADLINE.as_secs());
const _: () = assert!(200 > limits::DISK_BOOT_ANSWER_DEADLINE.as_secs());
