//! Looks for guests that have freed memory, and has it given back to the host.
//!
//! One task looks at all engines every few seconds, which costs a file of `/proc` each. A guest that
//! could have freed something is asked how much is free, and only when enough would come back the
//! owner of the sandbox does it. [`dayfly_core::give_back`] decides; ADR 0050.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dayfly_core::give_back::{Footprint, GiveBackHistory, Look};
use dayfly_guest_client::AgentClient;
use dayfly_types::{SandboxId, SandboxState, limits};
use dayfly_vmm::EngineProcess;
use futures::StreamExt;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::capacity::EngineLoad;
use crate::disk_lane::off_runtime;
use crate::parts::Parts;
use crate::sandbox::{Request, SandboxHandle};

/// What is known of the machines that were asked, each with its process: another machine of the same
/// sandbox is another story.
type Histories = HashMap<SandboxId, (EngineProcess, GiveBackHistory)>;

/// A sandbox that runs, and what its engine has used.
struct Candidate {
    handle: SandboxHandle,
    agent: AgentClient,
    process: EngineProcess,
    load: EngineLoad,
    history: GiveBackHistory,
}

/// Looks at all sandboxes until `stop`.
pub(crate) async fn run(parts: Arc<Parts>, period: Duration, stop: CancellationToken) {
    let period = period.min(limits::GIVE_BACK_PERIOD);
    let mut histories = Histories::new();
    while !stop.is_cancelled() {
        // A request that an owner has goes on without us.
        tokio::select! {
            () = stop.cancelled() => return,
            () = look_at_all(&parts, &mut histories) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(period) => {}
        }
    }
}

async fn look_at_all(parts: &Arc<Parts>, histories: &mut Histories) {
    let running: Vec<_> = parts.all_sandboxes().filter_map(running).collect();
    histories.retain(|id, _| running.iter().any(|(handle, ..)| handle.id == *id));
    let worker = Arc::clone(parts);
    let loaded = off_runtime(move || {
        let load = |(handle, agent, process): (SandboxHandle, AgentClient, EngineProcess)| {
            let load = worker.ledger.engine_load(process.pid)?;
            Some((handle, agent, process, load))
        };
        running.into_iter().filter_map(load).collect::<Vec<_>>()
    })
    .await;
    let now = parts.clock.now();
    let mut candidates = Vec::new();
    for (handle, agent, process, load) in loaded {
        let known = histories.get(&handle.id);
        let known = known.filter(|(of, _)| *of == process);
        let history = known.map(|(_, history)| *history).unwrap_or_default();
        if history.may_ask(now, own_bytes(load), load.cpu) {
            candidates.push(Candidate {
                handle,
                agent,
                process,
                load,
                history,
            });
        }
    }
    let asked = futures::stream::iter(candidates).map(|candidate| look_at(parts, candidate));
    let mut asked = asked.buffer_unordered(limits::GIVE_BACK_AT_ONCE_MAX);
    while let Some((id, process, history)) = asked.next().await {
        histories.insert(id, (process, history));
    }
}

fn running(handle: SandboxHandle) -> Option<(SandboxHandle, AgentClient, EngineProcess)> {
    let published = handle.published.borrow();
    let is_running =
        published.report.state == SandboxState::Running && published.report.condition.is_none();
    let agent = published.agent.clone().filter(|_| is_running)?;
    let process = published.process?;
    drop(published);
    Some((handle, agent, process))
}

fn own_bytes(load: EngineLoad) -> u64 {
    load.memory_mib << 20
}

/// Asks one, and has it give back what is worth it. Gives what is known of it then.
async fn look_at(
    parts: &Arc<Parts>,
    candidate: Candidate,
) -> (SandboxId, EngineProcess, GiveBackHistory) {
    let Candidate {
        handle,
        agent,
        process,
        load,
        mut history,
    } = candidate;
    history.note_asked(load.cpu);
    let Some(before) = footprint(&agent, load).await else {
        history.note_failure(parts.clock.now());
        return (handle.id, process, history);
    };
    if history.is_worth_a_look(before, load.cpu) {
        match give_back(parts, &handle, &agent, before).await {
            Some(look) => history.note(parts.clock.now(), look),
            None => history.note_failure(parts.clock.now()),
        }
    }
    (handle.id, process, history)
}

/// What can be seen of it. `None`: the guest does not say, or its agent is too old to.
async fn footprint(agent: &AgentClient, load: EngineLoad) -> Option<Footprint> {
    let free = timeout(limits::FREE_MEMORY_DEADLINE, agent.free_memory()).await;
    Some(Footprint {
        own_bytes: own_bytes(load),
        free_bytes: free.ok()?.ok()?,
    })
}

async fn give_back(
    parts: &Arc<Parts>,
    handle: &SandboxHandle,
    agent: &AgentClient,
    before: Footprint,
) -> Option<Look> {
    let sandbox_id = &handle.id;
    let given = match handle.ask(Request::GiveBack).await {
        Ok(given) => given?,
        // It goes on as it was.
        Err(error) => {
            tracing::debug!(%sandbox_id, %error, "nothing was given back");
            return None;
        }
    };
    let process = handle.published.borrow().process?;
    let worker = Arc::clone(parts);
    let load = off_runtime(move || worker.ledger.engine_load(process.pid)).await?;
    let after = footprint(agent, load).await?;
    if given.stops > 0 {
        let (mib, left_mib) = (given.bytes >> 20, given.left_bytes >> 20);
        let longest_stop_us = given.longest_stop.as_micros();
        let stops = given.stops;
        tracing::info!(%sandbox_id, mib, left_mib, stops, longest_stop_us,
            "memory that the guest has freed was given back");
    }
    Some(Look {
        before,
        after,
        given_bytes: given.bytes,
        left_bytes: given.left_bytes,
        cpu: load.cpu,
    })
}
