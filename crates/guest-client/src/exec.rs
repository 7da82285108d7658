//! Execs as the host sees them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use dayfly_guest_proto::{
    ChannelId, ExecCommand, ExecExit, Request, StartExec, StdinMode, StreamKind,
};
use dayfly_types::ExecId;

use crate::channel::Outcome;
use crate::client::AgentClient;
use crate::error::{CallError, ConversationLost, StreamError};
use crate::handle::{ChannelHandle, News, Sender};

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSpec {
    pub exec_id: ExecId,
    pub command: ExecCommand,
    pub cwd: Option<String>,
    pub env: BTreeMap<String, String>,
    pub user: Option<String>,
    pub timeout: Option<Duration>,
    pub stdin: StdinMode,
}

impl ExecSpec {
    /// A command with everything else as the guest defaults it.
    #[must_use]
    pub const fn new(exec_id: ExecId, command: ExecCommand) -> Self {
        Self {
            exec_id,
            command,
            cwd: None,
            env: BTreeMap::new(),
            user: None,
            timeout: None,
            stdin: StdinMode::Null,
        }
    }

    pub(crate) fn into_request(self, channel: ChannelId) -> StartExec {
        let milliseconds = |t: Duration| u64::try_from(t.as_millis()).unwrap_or(u64::MAX);
        StartExec {
            channel,
            exec_id: self.exec_id,
            command: self.command,
            cwd: self.cwd,
            env: self.env,
            user: self.user,
            timeout_ms: self.timeout.map(milliseconds),
            stdin: self.stdin,
        }
    }
}

/// What comes from an exec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecEvent {
    Stdout(Bytes),
    Stderr(Bytes),
    /// The last event. All output came before it.
    Exited {
        exit: ExecExit,
        duration_ms: u64,
    },
}

/// A running exec. Dropping it before the end kills the exec.
#[derive(Debug)]
pub struct ExecSession {
    channel: ChannelHandle,
    input: ExecInput,
    pid: u32,
    has_exited: bool,
}

impl ExecSession {
    pub(crate) fn new(client: AgentClient, channel: ChannelHandle, pid: u32) -> Self {
        let sender = Sender {
            conversation: channel.conversation.clone(),
            id: channel.id,
            credit: channel.credit.clone(),
        };
        Self {
            channel,
            input: ExecInput { client, sender },
            pid,
            has_exited: false,
        }
    }

    /// The number of the process in its guest.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// The next event; `None` after the exit.
    ///
    /// Waits as long as the process is silent. Credit goes back to the guest here: a caller that
    /// stops calling stops the process once its pipe and one window are full.
    ///
    /// # Errors
    /// [`ConversationLost`] when the guest is gone. The exec is then over too.
    ///
    /// # Cancel safety
    /// No event is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Option<ExecEvent>, ConversationLost> {
        if self.has_exited {
            return Ok(None);
        }
        match self.channel.next(true).await? {
            News::Bytes(StreamKind::Stderr, bytes) => Ok(Some(ExecEvent::Stderr(bytes))),
            News::Bytes(_, bytes) => Ok(Some(ExecEvent::Stdout(bytes))),
            News::Drained(Some(Outcome::Exited { exit, duration_ms })) => {
                self.has_exited = true;
                Ok(Some(ExecEvent::Exited { exit, duration_ms }))
            }
            // Other outcomes are refused when they arrive.
            News::Drained(_) => Ok(None),
        }
    }

    /// A handle for input and signals, to be used while another task reads.
    #[must_use]
    pub fn input(&self) -> ExecInput {
        self.input.clone()
    }

    /// See [`ExecInput::write_stdin`].
    ///
    /// # Errors
    /// [`StreamError`] when the input was closed or the guest is gone.
    pub async fn write_stdin(&self, bytes: Bytes) -> Result<(), StreamError> {
        self.input.write_stdin(bytes).await
    }

    /// See [`ExecInput::close_stdin`].
    ///
    /// # Errors
    /// [`StreamError`] when the guest is gone.
    pub async fn close_stdin(&self) -> Result<(), StreamError> {
        self.input.close_stdin().await
    }

    /// See [`ExecInput::signal`].
    ///
    /// # Errors
    /// [`CallError::Refused`] when there is no such signal or process.
    pub async fn signal(&self, signal: i32) -> Result<(), CallError> {
        self.input.signal(signal).await
    }
}

/// The input and the signals of an exec. Does not keep the exec alive.
#[derive(Debug, Clone)]
pub struct ExecInput {
    client: AgentClient,
    sender: Sender,
}

impl ExecInput {
    /// Sends bytes to the process. Waits while it does not read them.
    ///
    /// # Errors
    /// [`StreamError::Ended`] without [`StdinMode::Piped`] and after the input, the process or the
    /// session has ended, [`StreamError::Lost`] when the guest is gone.
    ///
    /// # Cancel safety
    /// Some prefix of the bytes was sent when the future is dropped.
    pub async fn write_stdin(&self, bytes: Bytes) -> Result<(), StreamError> {
        self.sender.send(bytes).await
    }

    /// Ends the input. May be repeated.
    ///
    /// # Errors
    /// [`StreamError::Lost`] when the guest is gone.
    pub async fn close_stdin(&self) -> Result<(), StreamError> {
        self.sender.end().await
    }

    /// Sends a signal to the process group of the exec; signal 9 ends all its processes.
    ///
    /// # Errors
    /// [`CallError::Refused`] when there is no such signal or process.
    pub async fn signal(&self, signal: i32) -> Result<(), CallError> {
        let channel = self.sender.id;
        self.client
            .call_done(Request::SignalExec { channel, signal })
            .await
    }
}
