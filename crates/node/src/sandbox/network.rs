//! Changes of what a sandbox may reach.

use dayfly_node_api::{NetworkReport, NodeError, SetNetwork};
use dayfly_types::{ErrorCode, SandboxState};

use super::handle::wrong_state;
use super::owner::Owner;
use super::permit::{network_report, permit};

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
