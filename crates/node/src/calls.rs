//! Calls that go straight to a guest. The owner only lends the agent handle.

use std::sync::Arc;
use std::time::Duration;

use dayfly_core::lifecycle::takes_calls;
use dayfly_guest_client::{AgentClient, CallError, ConversationLost, StreamError};
use dayfly_guest_proto::{GuestError, GuestErrorCode};
use dayfly_node_api::{NodeError, Watch};
use dayfly_types::{ErrorCode, SandboxCondition, SandboxState};
use futures::StreamExt;
use tokio::sync::broadcast::error::RecvError;

use crate::parts::Parts;
use crate::sandbox::{OpenCall, Published, SandboxHandle, waits_for_room, wrong_state};

/// How long a call waits for a conversation that is being opened anew, after a restart of the node
/// for example.
const AGENT_WAIT: Duration = Duration::from_secs(10);

/// How often a sandbox that falls asleep under a call is woken for it.
const WAKES_MAX: usize = 3;

/// The agent of a sandbox that takes calls, and what counts as activity until it is dropped. One
/// that sleeps is woken first.
pub(crate) async fn agent(handle: &SandboxHandle) -> Result<(AgentClient, OpenCall), NodeError> {
    let call = handle.activity.begin();
    Ok((agent_for_visitor(handle).await?, call))
}

/// The same for a visit from outside, which is no activity of the sandbox: what it does to answer
/// is. One that sleeps is woken.
pub(crate) async fn agent_for_visitor(handle: &SandboxHandle) -> Result<AgentClient, NodeError> {
    for _ in 0..WAKES_MAX {
        handle.wake_if_asleep().await?;
        match agent_now(handle).await {
            // It fell asleep between the two.
            Err(error) if handle.is_asleep() => tracing::debug!(%error, "waking it once more"),
            outcome => return outcome,
        }
    }
    Err(wrong_state(handle.report().state))
}

async fn agent_now(handle: &SandboxHandle) -> Result<AgentClient, NodeError> {
    let mut published = handle.published.clone();
    let settled =
        |now: &Published| now.agent.is_some() || !may_come(now.report.state) || stands_still(now);
    match tokio::time::timeout(AGENT_WAIT, published.wait_for(settled)).await {
        // It would not answer before there is room.
        Ok(Ok(now)) if stands_still(&now) => Err(waits_for_room()),
        Ok(Ok(now)) => match &now.agent {
            Some(agent) if takes_calls(now.report.state) => Ok(agent.clone()),
            _ => Err(wrong_state(now.report.state)),
        },
        Ok(Err(_)) => Err(wrong_state(SandboxState::Deleted)),
        Err(_) => Err(NodeError::new(
            ErrorCode::GuestUnavailable,
            "the guest agent does not answer; the sandbox can only be deleted",
        )),
    }
}

fn stands_still(now: &Published) -> bool {
    let is_full = now.report.condition == Some(SandboxCondition::DiskFull);
    is_full && takes_calls(now.report.state)
}

fn may_come(state: SandboxState) -> bool {
    matches!(
        state,
        SandboxState::Creating | SandboxState::Running | SandboxState::Resuming
    )
}

/// Reports of every sandbox, then of every change.
pub(crate) fn watch(parts: Arc<Parts>) -> Watch {
    // Subscribed before the first list, so that no change falls between the two.
    let feed = parts.listen();
    let first = parts.reports();
    let start = (parts, feed, first);
    futures::stream::unfold(start, |(parts, mut feed, mut waiting)| async move {
        loop {
            if let Some(report) = waiting.pop() {
                return Some((Ok((*report).clone()), (parts, feed, waiting)));
            }
            match feed.recv().await {
                Ok(report) => waiting.push(report),
                // Missed some: everything again, which holds the last value of each.
                Err(RecvError::Lagged(_)) => waiting = parts.reports(),
                Err(RecvError::Closed) => return None,
            }
        }
    })
    .boxed()
}

pub(crate) fn call_failed(error: CallError) -> NodeError {
    match error {
        CallError::Refused(refusal) => refused(&refusal),
        CallError::Lost(loss) => lost(&loss),
        CallError::TimedOut { .. } | CallError::UnexpectedAnswer => {
            NodeError::new(ErrorCode::GuestUnavailable, error.to_string())
        }
        CallError::TooLong => NodeError::new(ErrorCode::TooLarge, error.to_string()),
        CallError::TooMany { .. } => NodeError::new(ErrorCode::TooMany, error.to_string())
            .retry_after(Duration::from_secs(1)),
    }
}

pub(crate) fn stream_failed(error: StreamError) -> NodeError {
    match error {
        StreamError::Failed(refusal) => refused(&refusal),
        StreamError::Lost(loss) => lost(&loss),
        StreamError::TimedOut { .. } | StreamError::Ended | StreamError::Malformed => {
            NodeError::new(ErrorCode::GuestUnavailable, error.to_string())
        }
    }
}

pub(crate) fn lost(loss: &ConversationLost) -> NodeError {
    let text = format!("the guest is gone: {loss}");
    NodeError::new(ErrorCode::GuestUnavailable, text)
}

/// Our own words for each code: the guest's text is not to be trusted, so it is not passed on.
fn refused(refusal: &GuestError) -> NodeError {
    let (code, text) = match refusal.code {
        GuestErrorCode::NotFound => (ErrorCode::NotFound, "no such file or user in the guest"),
        GuestErrorCode::PermissionDenied => (ErrorCode::Forbidden, "the guest denies permission"),
        GuestErrorCode::IsDirectory => (ErrorCode::InvalidRequest, "it is a directory"),
        GuestErrorCode::NotDirectory => (ErrorCode::InvalidRequest, "it is not a directory"),
        GuestErrorCode::Exists => (ErrorCode::InvalidRequest, "it exists already"),
        GuestErrorCode::NoSpace => (ErrorCode::DiskFull, "the guest's disk is full"),
        GuestErrorCode::Invalid => (
            ErrorCode::InvalidRequest,
            "the guest cannot do that with what it was given",
        ),
        GuestErrorCode::TooMany => (ErrorCode::TooMany, "the guest has too many of them open"),
        GuestErrorCode::Unsupported => (
            ErrorCode::NotImplemented,
            "the guest agent of this template is too old for it",
        ),
        GuestErrorCode::Busy => (
            ErrorCode::WrongState,
            "something in the guest still uses it",
        ),
        GuestErrorCode::WrongState => (ErrorCode::WrongState, "the guest is in another state"),
        GuestErrorCode::Io | _ => (ErrorCode::GuestUnavailable, "the guest's disk failed"),
    };
    NodeError::new(code, text)
}
