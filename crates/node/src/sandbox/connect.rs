//! Finding the guest's agent again after its conversation was lost, by a restart of the node for
//! example.

use std::sync::Arc;
use std::time::Duration;

use dayfly_guest_client::AgentClient;
use dayfly_guest_proto::{GuestState, IdentityEvent};
use dayfly_types::limits;

use super::bring_up::{BringUpError, identity, unix_nanos};
use crate::effects::Effect;
use crate::guest::open_agent;
use crate::journal::SandboxRecord;
use crate::parts::Parts;

/// How long to wait before a failed agent connection or a failed teardown is tried again.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// One attempt at a new conversation; an attempt that fails takes at least the pause.
pub(super) async fn connect_again(
    parts: &Arc<Parts>,
    record: &SandboxRecord,
) -> Option<AgentClient> {
    let slot = record.phase.slot()?;
    let connected = match parts.slots.reopen(slot).await {
        Ok(slot) => {
            let opened = open_agent(&slot.run_directory, limits::AGENT_HANDSHAKE_DEADLINE).await;
            opened.map_err(|error| crate::error_chain(&error))
        }
        Err(error) => Err(crate::error_chain(&error)),
    };
    let released = match connected {
        Ok(agent) => release_guest(parts, record, &agent)
            .await
            .map(|()| agent)
            .map_err(|error| crate::error_chain(&error)),
        Err(error) => Err(error),
    };
    match released {
        Ok(agent) => Some(agent),
        Err(error) => {
            tracing::debug!(sandbox_id = %record.id, error, "the agent is away");
            tokio::time::sleep(RETRY_PAUSE).await;
            None
        }
    }
}

/// A capture that was cut short left the guest frozen, and it cannot know that it is no copy.
async fn release_guest(
    parts: &Arc<Parts>,
    record: &SandboxRecord,
    agent: &AgentClient,
) -> Result<(), BringUpError> {
    let status = agent.status().await.map_err(BringUpError::Identity)?;
    if status.state == GuestState::Running {
        return Ok(());
    }
    tracing::info!(sandbox_id = %record.id, "the guest was left frozen; letting it go on");
    let clock = parts.clock.as_ref();
    let identity = identity(record, clock, IdentityEvent::Wake)?;
    let effects = &parts.effects;
    effects
        .around_async(Effect::GuestIdentify, agent.identify(identity))
        .await
        .map_err(BringUpError::Identity)?;
    effects
        .around_async(Effect::GuestThaw, agent.thaw_at(unix_nanos(clock)))
        .await
        .map_err(BringUpError::Thaw)
}
