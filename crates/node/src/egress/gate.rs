//! The port to the process that lets packets out.

use async_trait::async_trait;
use dayfly_node_api::EgressStatus;
use dayfly_types::egress::EgressPolicy;
use dayfly_types::{ProjectId, SandboxId};
use dayfly_vmm::SlotIndex;

/// What one start of one sandbox may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressPermit {
    pub sandbox: SandboxId,
    /// Internal networks are open to projects.
    pub project: ProjectId,
    pub slot: SlotIndex,
    /// Tells this start of the sandbox from every other one, so that nothing that was meant for an
    /// earlier holder of the slot can reach a later one.
    pub start: u64,
    /// Grows with every change of the policy.
    pub epoch: u64,
    pub policy: EgressPolicy,
}

/// Why a permit is not in force. The sandbox reaches nothing, or what the permit before it said.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    #[error("the sockets in the sandbox's namespace could not be made")]
    Sockets(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the egress process does not answer")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the egress process refused: {0}")]
    Refused(String),
}

/// Lets packets of sandboxes out. A permit that could not be put in force is kept and tried again
/// until it is taken back.
#[async_trait]
pub trait EgressGate: Send + Sync + std::fmt::Debug + 'static {
    /// Puts a permit in force, the first of its start or a later epoch of it. When this returns,
    /// connections that it does not allow have been ended.
    async fn permit(&self, permit: EgressPermit) -> Result<(), GateError>;

    /// Takes over a permit that an earlier life of this program may have put in force.
    fn adopt(&self, permit: EgressPermit);

    /// Takes back whatever the slot had.
    async fn withdraw(&self, slot: SlotIndex);

    /// Whether this epoch of the slot's permit is known to be in force.
    fn is_in_force(&self, slot: SlotIndex, epoch: u64) -> bool;

    /// What was decided, and how the process fares.
    fn status(&self) -> EgressStatus;
}

/// For nodes whose sandboxes have no network at all: every permit is accepted and opens nothing.
#[derive(Debug, Default)]
pub struct NoEgress;

#[async_trait]
impl EgressGate for NoEgress {
    async fn permit(&self, _permit: EgressPermit) -> Result<(), GateError> {
        Ok(())
    }

    fn adopt(&self, _permit: EgressPermit) {}

    async fn withdraw(&self, _slot: SlotIndex) {}

    fn is_in_force(&self, _slot: SlotIndex, _epoch: u64) -> bool {
        true
    }

    fn status(&self) -> EgressStatus {
        EgressStatus::default()
    }
}
