//! Waiting until something in a sandbox listens on a port.

use std::time::Duration;

use dayfly_core::lifecycle::takes_calls;
use dayfly_guest_client::{AgentClient, CallError};
use dayfly_guest_proto::GuestErrorCode;
use dayfly_node_api::{NodeError, WaitPort};
use dayfly_types::port::Listener;
use dayfly_types::{ErrorCode, SandboxState};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::calls::{agent, call_failed};
use crate::sandbox::{SandboxHandle, wrong_state};

/// Between two calls to a guest that does not wait: its agent cannot, or does not want to.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// Wakes the sandbox if it sleeps, and counts as use of it for as long as the wait takes.
pub(crate) async fn wait(handle: &SandboxHandle, request: WaitPort) -> Result<Listener, NodeError> {
    let deadline = Instant::now() + request.limit;
    let (agent, _use) = match timeout_at(deadline, agent(handle)).await {
        Ok(outcome) => outcome?,
        // It is being woken: a caller who only looks should not wait for that.
        Err(_) => return Err(nothing_listens(request)),
    };
    tokio::select! {
        // First, so that a wait which ends with its sandbox says so.
        biased;
        state = stopped(handle) => Err(wrong_state(state)),
        found = found(&agent, request, deadline) => found,
    }
}

/// Resolves when the guest can do nothing any more.
async fn stopped(handle: &SandboxHandle) -> SandboxState {
    let mut published = handle.published.clone();
    let seen = published.wait_for(|now| !takes_calls(now.report.state));
    seen.await
        .map_or(SandboxState::Deleted, |now| now.report.state)
}

async fn found(
    agent: &AgentClient,
    request: WaitPort,
    deadline: Instant,
) -> Result<Listener, NodeError> {
    loop {
        let began = Instant::now();
        match look(agent, request.port, deadline).await {
            Ok(Some(listener)) => return Ok(listener),
            Ok(None) | Err(CallError::TimedOut { .. }) if Instant::now() >= deadline => {
                return Err(nothing_listens(request));
            }
            // Calls wait for the end of a capture, which may take longer than a call.
            Ok(None) | Err(CallError::TimedOut { .. }) => {
                sleep_until(deadline.min(began + LOOK_PAUSE)).await;
            }
            Err(error) => return Err(call_failed(error)),
        }
    }
}

/// One call to the agent: it looks by itself, and gives nothing when its time for that is over.
async fn look(
    agent: &AgentClient,
    port: u16,
    deadline: Instant,
) -> Result<Option<Listener>, CallError> {
    let left = deadline.saturating_duration_since(Instant::now());
    match agent.wait_port(port, left).await {
        Err(CallError::Refused(refusal)) if refusal.code == GuestErrorCode::Unsupported => {
            // An agent of before, which only says what listens now.
            let ports = agent.list_ports().await?;
            Ok(ports.into_iter().find(|found| found.port == port))
        }
        outcome => outcome,
    }
}

fn nothing_listens(request: WaitPort) -> NodeError {
    let seconds = request.limit.as_secs_f64();
    let text = format!(
        "timeout: nothing listens on port {} after {seconds} s",
        request.port
    );
    NodeError::new(ErrorCode::Timeout, text)
}
