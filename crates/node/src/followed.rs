//! A command that is followed over a sleep which its followers did not ask for.
//!
//! The command and its log sleep with the guest, so a reader loses nothing: it waits until the guest
//! is there again, which it does not cause, and goes on behind the bytes that it has.

use dayfly_guest_client::{AgentClient, AttachSpec, CallError, ExecSession};
use dayfly_node_api::ExecEvents;
use dayfly_types::exec::ReadOffsets;
use dayfly_types::{ExecId, SandboxState};
use futures::StreamExt;

use crate::calls::lost;
use crate::execs::checked_event;
use crate::sandbox::{OpenCall, Published, SandboxHandle};

/// What a reader of a command has, and where it reads.
pub(crate) struct Followed {
    handle: SandboxHandle,
    exec: ExecId,
    offsets: ReadOffsets,
    session: ExecSession,
    /// How often the sandbox had slept for others when this conversation began.
    sleeps_seen: u64,
    _call: OpenCall,
}

/// Where a conversation was begun, noted before it was.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    handle: SandboxHandle,
    sleeps_seen: u64,
}

impl Place {
    pub(crate) fn of(handle: SandboxHandle) -> Self {
        let sleeps_seen = handle.published.borrow().sleeps_for_others;
        Self {
            handle,
            sleeps_seen,
        }
    }
}

/// The events of a command, from these offsets on.
pub(crate) fn follow(
    place: Place,
    exec: ExecId,
    offsets: ReadOffsets,
    session: ExecSession,
    call: OpenCall,
) -> ExecEvents {
    let followed = Followed {
        handle: place.handle,
        exec,
        offsets,
        session,
        sleeps_seen: place.sleeps_seen,
        _call: call.follows(),
    };
    futures::stream::unfold(Some(followed), |open| async move {
        let mut followed = open?;
        loop {
            match followed.session.next().await {
                Ok(Some(event)) => {
                    let event = checked_event(event);
                    followed.offsets.advance(&event);
                    return Some((Ok(event), Some(followed)));
                }
                Ok(None) => return None,
                Err(_) if followed.goes_on().await => {}
                Err(error) => return Some((Err(lost(&error)), None)),
            }
        }
    })
    .boxed()
}

impl Followed {
    /// Whether the guest slept for others, and is there again.
    async fn goes_on(&mut self) -> bool {
        while self.handle.published.borrow().sleeps_for_others > self.sleeps_seen {
            // Before the wait: another sleep from here on counts as one more.
            self.sleeps_seen = self.handle.published.borrow().sleeps_for_others;
            let Some(agent) = self.awake().await else {
                return false;
            };
            let spec = AttachSpec {
                stdout: self.offsets.stdout,
                stderr: self.offsets.stderr,
                stdin: false,
            };
            match agent.attach_exec(&self.exec, spec).await {
                Ok((_, session)) => {
                    self.session = session;
                    return true;
                }
                // It fell asleep again, or is gone for good.
                Err(CallError::Lost(_)) => {}
                Err(error) => {
                    tracing::debug!(sandbox_id = %self.handle.id, %error,
                        "cannot go on reading a command after a sleep");
                    return false;
                }
            }
        }
        false
    }

    /// Waits for as long as it sleeps. `None`: it does not wake again.
    async fn awake(&self) -> Option<AgentClient> {
        let mut published = self.handle.published.clone();
        let is_settled = |now: &Published| match now.report.state {
            SandboxState::Running => now.agent.is_some(),
            SandboxState::Failed | SandboxState::Deleting | SandboxState::Deleted => true,
            SandboxState::Creating
            | SandboxState::Pausing
            | SandboxState::Paused
            | SandboxState::Resuming
            | SandboxState::Hibernating
            | SandboxState::Hibernated
            | SandboxState::Waking => false,
        };
        let now = published.wait_for(is_settled).await.ok()?;
        now.agent.clone()
    }
}
