//! Waits for what an owner looks up for.

use std::time::Duration;

use dayfly_guest_client::AgentClient;
use dayfly_types::limits;
use dayfly_vmm::{Vm, VmEvent};

use super::Activity;
use crate::parts::Parts;

pub(super) async fn wait_for_event(vm: &mut Option<Box<dyn Vm>>) -> VmEvent {
    match vm {
        Some(vm) => vm.next_event().await,
        None => std::future::pending().await,
    }
}

pub(super) async fn wait_for_loss(agent: Option<&AgentClient>) {
    match agent {
        Some(agent) => {
            agent.closed().await;
        }
        None => std::future::pending().await,
    }
}

/// Resolves when nothing was seen for the limit. Processor time has no event, so it is looked at.
pub(super) async fn wait_for_idleness(
    parts: &Parts,
    activity: &Activity,
    pid: Option<i32>,
    limit: Option<Duration>,
) {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    loop {
        let now = parts.clock.now();
        activity.look(now, pid);
        if activity.idle_for(now) >= limit {
            return;
        }
        parts
            .clock
            .sleep_until(now.plus(limits::ACTIVITY_PERIOD))
            .await;
    }
}
