//! The handle of a conversation.

use std::sync::Arc;
use std::time::Duration;

use dayfly_guest_proto::{Request, Response};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use crate::conversation::Conversation;
use crate::error::{CallError, ConnectError, ConversationLost};
use crate::{open, ports};

/// A conversation with the agent of one guest. Clones share it.
///
/// The conversation lives as long as any clone, session or file of it. When the last is dropped
/// the sockets close; execs go on in the guest.
#[derive(Debug, Clone)]
pub struct AgentClient {
    owner: Arc<Owner>,
}

#[derive(Debug)]
struct Owner {
    conversation: Arc<Conversation>,
    /// Dropped with the last handle, which ends them.
    _tasks: JoinSet<()>,
}

impl AgentClient {
    /// Opens a conversation. Bytes of former ones on the sockets are skipped.
    ///
    /// # Errors
    /// [`ConnectError`] when the guest does not answer in time or a socket breaks.
    ///
    /// # Cancel safety
    /// Dropping the future closes both sockets.
    pub async fn connect(
        control: UnixStream,
        bulk: UnixStream,
        deadline: Duration,
    ) -> Result<Self, ConnectError> {
        let opened = open::open(control, bulk, deadline).await?;
        let (conversation, tasks) = ports::start(opened);
        Ok(Self {
            owner: Arc::new(Owner {
                conversation,
                _tasks: tasks,
            }),
        })
    }

    pub(crate) fn conversation(&self) -> &Arc<Conversation> {
        &self.owner.conversation
    }

    /// Resolves when the conversation is over, with the reason. Cancel safe.
    pub async fn closed(&self) -> ConversationLost {
        self.conversation().closed().await
    }

    pub(crate) async fn call(&self, request: Request) -> Result<Response, CallError> {
        self.conversation().call(request).await
    }

    pub(crate) async fn call_done(&self, request: Request) -> Result<(), CallError> {
        let is_done = self.call(request).await? == Response::Done;
        if is_done {
            Ok(())
        } else {
            Err(CallError::UnexpectedAnswer)
        }
    }
}

/// A refusal means that the guest has nothing on the channel; anything else leaves it in doubt,
/// and the channel's end cancels it.
pub(crate) fn forget_refused(
    channel: &crate::handle::ChannelHandle,
    error: CallError,
) -> CallError {
    if matches!(error, CallError::Refused(_)) {
        channel.forget();
    }
    error
}
