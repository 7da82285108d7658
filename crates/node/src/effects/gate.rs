//! The egress gate with a point on either side of each effect.

use std::sync::Arc;

use async_trait::async_trait;
use dayfly_node_api::EgressStatus;
use dayfly_vmm::SlotIndex;

use super::{Effect, Effects};
use crate::egress::{EgressGate, EgressPermit, GateError};

#[derive(Debug)]
pub(crate) struct ObservedGate {
    inner: Arc<dyn EgressGate>,
    effects: Effects,
}

impl ObservedGate {
    pub(crate) fn new(inner: Arc<dyn EgressGate>, effects: Effects) -> Self {
        Self { inner, effects }
    }
}

#[async_trait]
impl EgressGate for ObservedGate {
    async fn permit(&self, permit: EgressPermit) -> Result<(), GateError> {
        let work = self.inner.permit(permit);
        self.effects.around_async(Effect::EgressPermit, work).await
    }

    fn adopt(&self, permit: EgressPermit) {
        self.inner.adopt(permit);
    }

    async fn withdraw(&self, slot: SlotIndex) {
        let work = self.inner.withdraw(slot);
        self.effects
            .around_async(Effect::EgressWithdraw, work)
            .await;
    }

    fn is_in_force(&self, slot: SlotIndex, epoch: u64) -> bool {
        self.inner.is_in_force(slot, epoch)
    }

    fn status(&self) -> EgressStatus {
        self.inner.status()
    }
}
