//! What a sandbox may reach, as its owner keeps it.

use dayfly_node_api::{NetworkReport, NodeError, SetNetwork};
use dayfly_types::{ErrorCode, SandboxState};
use dayfly_vmm::SlotIndex;

use super::handle::wrong_state;
use super::owner::Owner;
use crate::egress::EgressPermit;
use crate::journal::SandboxRecord;
use crate::parts::Parts;

/// The permit of a sandbox that has a slot.
pub(crate) fn permit_of(record: &SandboxRecord, slot: SlotIndex) -> EgressPermit {
    EgressPermit {
        sandbox: record.id.clone(),
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

impl Owner {
    /// Journal first, then the gate: whoever finds the record after a crash has the new policy.
    pub(super) async fn set_network(
        &mut self,
        wanted: SetNetwork,
    ) -> Result<NetworkReport, NodeError> {
        if matches!(
            self.record.state(),
            SandboxState::Deleting | SandboxState::Deleted
        ) {
            return Err(wrong_state(self.record.state()));
        }
        let record = &self.record;
        let is_repeated = wanted.epoch == record.egress_epoch && wanted.policy == record.egress;
        if wanted.epoch <= record.egress_epoch && !is_repeated {
            let text = format!(
                "epoch {} of the network policy is not newer than the node's {}",
                wanted.epoch, record.egress_epoch
            );
            return Err(NodeError::new(ErrorCode::WrongState, text));
        }
        if !is_repeated {
            let before = (self.record.egress_epoch, self.record.egress.clone());
            self.record.egress_epoch = wanted.epoch;
            self.record.egress = wanted.policy;
            if let Err(error) = self.write_record().await {
                (self.record.egress_epoch, self.record.egress) = before;
                return Err(error);
            }
        }
        permit(&self.parts, &self.record).await;
        self.publish_now();
        Ok(network_report(&self.parts, &self.record))
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
