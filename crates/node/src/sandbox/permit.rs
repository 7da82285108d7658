//! What the record of a sandbox lets its machine reach.

use dayfly_node_api::NetworkReport;
use dayfly_vmm::SlotIndex;

use crate::egress::EgressPermit;
use crate::journal::SandboxRecord;
use crate::parts::Parts;

/// The permit of a sandbox that has a slot.
pub(crate) fn permit_of(record: &SandboxRecord, slot: SlotIndex) -> EgressPermit {
    EgressPermit {
        sandbox: record.id.clone(),
        project: record.project.clone(),
        slot,
        start: record.phase.network_start(),
        epoch: record.egress_epoch,
        policy: record.egress.clone(),
    }
}

/// Lets a machine that is about to run reach what its record says. A failure is a denial, and the
/// gate goes on trying.
pub(super) async fn permit(parts: &Parts, record: &SandboxRecord) {
    let Some(slot) = record.phase.slot() else {
        return;
    };
    if let Err(error) = parts.egress.permit(permit_of(record, slot)).await {
        let error = crate::error_chain(&error);
        tracing::warn!(sandbox_id = %record.id, error, "the sandbox reaches nothing outside for now");
    }
}

pub(super) fn network_report(parts: &Parts, record: &SandboxRecord) -> NetworkReport {
    let is_enforced = (record.phase.slot())
        .is_some_and(|slot| parts.egress.is_in_force(slot, record.egress_epoch));
    NetworkReport {
        policy: record.egress.clone(),
        epoch: record.egress_epoch,
        is_enforced,
    }
}
