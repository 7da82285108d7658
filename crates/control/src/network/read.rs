//! What a sandbox may reach and what it tried, as the public API shows it.

use std::sync::Arc;
use std::time::Duration;

use dayfly_api::{
    Network, NetworkDefault, NetworkLog, NetworkRecord, NetworkRule, NetworkSuggestion,
};
use dayfly_node_api::{NodeCalls, NodeError, ReadNetworkLog};
use dayfly_types::egress::{
    DenyReason, EgressPolicy, EgressRecord, EgressRule, EgressTarget, NameSource,
};
use dayfly_types::limits::EGRESS_RECORDS_MAX;
use dayfly_types::{ProjectId, SandboxId};

use crate::control::Control;
use crate::network::spec::{target_text, to_wire};
use crate::network::suggest::suggest;
use crate::sandbox::read::{FindError, locate, row_alive};
use crate::store::StoreError;
use crate::time::rfc3339;

/// Records that a suggestion reads at once.
const PAGE_RECORDS: usize = 1024;

/// Why nothing can be said about a sandbox's network.
#[derive(Debug, thiserror::Error)]
pub enum ReadNetworkError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("the node does not say what the sandbox tried to reach")]
    Node(#[from] NodeError),
}

/// What a sandbox may reach. The row is the truth; whether it holds, the node says.
///
/// # Errors
/// [`FindError`].
pub async fn get(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
) -> Result<Network, FindError> {
    let row = row_alive(control, project, id).await?;
    let enforced = match control.node.network(id).await {
        Ok(report) => report.is_enforced && report.epoch == row.egress.epoch,
        Err(error) => {
            tracing::debug!(sandbox_id = %id, %error, "the node does not say what policy it has");
            false
        }
    };
    Ok(present(&row.egress.policy, row.egress.epoch, enforced))
}

/// What new sandboxes of a project may reach.
///
/// # Errors
/// [`StoreError`].
pub async fn default(control: &Control, project: &ProjectId) -> Result<EgressPolicy, StoreError> {
    let stored = control.store.network_default(project).await?;
    Ok(stored.unwrap_or_else(EgressPolicy::deny))
}

/// Part of the record of what a sandbox tried.
///
/// # Errors
/// [`ReadNetworkError`].
pub async fn log(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
    request: ReadNetworkLog,
) -> Result<NetworkLog, ReadNetworkError> {
    locate(control, project, id).await?;
    let log = control.node.network_log(id, request).await?;
    Ok(NetworkLog {
        records: log.records.iter().map(present_record).collect(),
        oldest: log.oldest,
        latest: log.latest,
        lost: log.lost,
    })
}

/// The smallest allowlist for what a sandbox was seen to use.
///
/// # Errors
/// [`ReadNetworkError`].
pub async fn suggestion(
    control: &Arc<Control>,
    project: &ProjectId,
    id: &SandboxId,
) -> Result<NetworkSuggestion, ReadNetworkError> {
    locate(control, project, id).await?;
    let mut records: Vec<EgressRecord> = Vec::new();
    let mut lost = 0;
    while records.len() < EGRESS_RECORDS_MAX {
        let after = records.last().map_or(0, |record| record.sequence);
        let request = ReadNetworkLog {
            after,
            max: PAGE_RECORDS,
            wait: Duration::ZERO,
        };
        let page = control.node.network_log(id, request).await?;
        if after == 0 {
            lost = page.lost;
        }
        let is_last = page.records.len() < PAGE_RECORDS;
        records.extend(page.records);
        if is_last {
            break;
        }
    }
    let draft = suggest(&records);
    Ok(NetworkSuggestion {
        mode: to_wire(draft.policy.mode()),
        rules: draft.policy.rules().iter().map(present_rule).collect(),
        unnamed: draft.unnamed,
        records: records.len() as u64,
        lost,
        truncated: draft.is_truncated,
    })
}

pub(crate) fn present(policy: &EgressPolicy, epoch: u64, enforced: bool) -> Network {
    Network {
        mode: to_wire(policy.mode()),
        rules: policy.rules().iter().map(present_rule).collect(),
        epoch,
        enforced,
    }
}

pub(crate) fn present_default(policy: &EgressPolicy) -> NetworkDefault {
    NetworkDefault {
        mode: to_wire(policy.mode()),
        rules: policy.rules().iter().map(present_rule).collect(),
    }
}

pub(crate) fn present_rule(rule: &EgressRule) -> NetworkRule {
    let text = target_text(&rule.target);
    let (host, cidr) = match rule.target {
        EgressTarget::Host(_) => (Some(text), None),
        EgressTarget::Network(_) => (None, Some(text)),
    };
    NetworkRule {
        id: rule.id.clone(),
        host,
        cidr,
        ports: rule.ports.as_slice().to_vec(),
    }
}

pub(crate) fn present_record(record: &EgressRecord) -> NetworkRecord {
    let address = record.destination.or(record.dialed);
    NetworkRecord {
        sequence: record.sequence,
        at: rfc3339(i64::try_from(record.at_ms).unwrap_or(i64::MAX)),
        kind: record.kind.as_str().to_owned(),
        decision: record.decision.as_str().to_owned(),
        name: record.name.as_ref().map(ToString::to_string),
        name_source: name_source(record.name_source).to_owned(),
        port: address.map(|address| address.port()),
        destination: record.destination.map(|address| address.to_string()),
        dialed: record.dialed.map(|address| address.to_string()),
        answers: record.answers.iter().map(ToString::to_string).collect(),
        rule: record.rule.clone(),
        reason: record.reason.map(DenyReason::as_str).map(str::to_owned),
        internal_network: record.internal_network.clone(),
        would_deny: record.would_deny,
        bytes_up: record.bytes_up,
        bytes_down: record.bytes_down,
        duration_ms: record.duration_ms,
        suppressed: record.suppressed,
    }
}

const fn name_source(source: NameSource) -> &'static str {
    match source {
        NameSource::Sni => "sni",
        NameSource::Host => "host",
        NameSource::Dns => "dns",
        NameSource::None => "none",
    }
}
