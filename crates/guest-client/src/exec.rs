//! Execs as the host sees them.

use bytes::Bytes;
use dayfly_guest_proto::{Request, Response, StartExec, StreamKind};
use dayfly_types::ExecId;
use dayfly_types::exec::{ExecEvent, ExecInfo, ExecSpec, OutputGap, OutputStream, StdinMode};

use crate::channel::{ExecStreams, Outcome, Purpose};
use crate::client::{AgentClient, forget_refused};
use crate::error::{CallError, ConversationLost, StreamError};
use crate::handle::{ChannelHandle, News, Piece, Sender};

/// Which part of an exec's output to read, and whether to send input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachSpec {
    /// Where to begin in the stream; without it the stream is not read.
    pub stdout: Option<u64>,
    pub stderr: Option<u64>,
    pub stdin: bool,
}

impl AttachSpec {
    /// All output from the first byte on.
    #[must_use]
    pub const fn from_start() -> Self {
        Self {
            stdout: Some(0),
            stderr: Some(0),
            stdin: false,
        }
    }
}

/// A reader of an exec. Dropping it leaves the exec alone.
#[derive(Debug)]
pub struct ExecSession {
    channel: ChannelHandle,
    input: ExecInput,
    exec_id: ExecId,
    pid: u32,
    /// Behind a gap that was told already.
    waiting: Option<ExecEvent>,
    has_exited: bool,
}

impl AgentClient {
    /// Starts a process and reads its output from the first byte. Repeating it with the same id
    /// and words does not start a second one.
    ///
    /// # Errors
    /// [`CallError`]; nothing runs then, unless the answer was lost. A command that does not exist
    /// is no error: it exits with code 127.
    pub async fn exec(&self, spec: ExecSpec) -> Result<ExecSession, CallError> {
        let channel = self
            .conversation()
            .open_channel(Purpose::Exec(ExecStreams {
                stdout: Some(0),
                stderr: Some(0),
                stdin: spec.stdin == StdinMode::Piped,
            }))?;
        let exec_id = spec.exec_id.clone();
        let request = Request::StartExec(StartExec {
            channel: channel.id,
            spec,
        });
        match self.call(request).await {
            Ok(Response::ExecStarted { pid }) => {
                Ok(ExecSession::new(self.clone(), channel, exec_id, pid))
            }
            Ok(_) => Err(CallError::UnexpectedAnswer),
            Err(error) => Err(forget_refused(&channel, error)),
        }
    }

    /// Reads the output of an exec that was started before, by anybody.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest has no such exec, or not so much output.
    pub async fn attach_exec(
        &self,
        exec_id: &ExecId,
        spec: AttachSpec,
    ) -> Result<(ExecInfo, ExecSession), CallError> {
        let AttachSpec {
            stdout,
            stderr,
            stdin,
        } = spec;
        let streams = ExecStreams {
            stdout,
            stderr,
            stdin,
        };
        let channel = self.conversation().open_channel(Purpose::Exec(streams))?;
        let request = Request::AttachExec {
            channel: channel.id,
            exec_id: exec_id.clone(),
            stdout_offset: stdout,
            stderr_offset: stderr,
            stdin,
        };
        match self.call(request).await {
            Ok(Response::Exec(info)) if info.exec_id == *exec_id => {
                let session = ExecSession::new(self.clone(), channel, exec_id.clone(), info.pid);
                Ok((info, session))
            }
            Ok(_) => Err(CallError::UnexpectedAnswer),
            Err(error) => Err(forget_refused(&channel, error)),
        }
    }
}

impl ExecSession {
    fn new(client: AgentClient, channel: ChannelHandle, exec_id: ExecId, pid: u32) -> Self {
        let sender = Sender {
            conversation: channel.conversation.clone(),
            id: channel.id,
            credit: channel.credit.clone(),
        };
        Self {
            channel,
            input: ExecInput {
                client,
                sender,
                exec_id: exec_id.clone(),
            },
            exec_id,
            pid,
            waiting: None,
            has_exited: false,
        }
    }

    #[must_use]
    pub const fn exec_id(&self) -> &ExecId {
        &self.exec_id
    }

    /// The number of the process in its guest.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// The next event; `None` after the exit.
    ///
    /// Waits as long as the process is silent. Credit goes back to the guest here: a caller that
    /// stops calling holds one window; the rest stays in the guest's log.
    ///
    /// # Errors
    /// [`ConversationLost`] when the conversation is over. The exec may go on without it.
    ///
    /// # Cancel safety
    /// No event is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Option<ExecEvent>, ConversationLost> {
        if self.has_exited {
            return Ok(None);
        }
        if let Some(event) = self.waiting.take() {
            return Ok(Some(event));
        }
        match self.channel.next(true).await? {
            News::Bytes(piece) => Ok(Some(self.output(piece))),
            News::Drained(Some(Outcome::Exited(end))) => {
                self.has_exited = true;
                Ok(Some(ExecEvent::Exited(end)))
            }
            // Other outcomes are refused when they arrive.
            News::Drained(_) => Ok(None),
        }
    }

    fn output(&mut self, piece: Piece) -> ExecEvent {
        let (stream, event) = match piece.stream {
            StreamKind::Stderr => (OutputStream::Stderr, ExecEvent::Stderr(piece.bytes.clone())),
            StreamKind::Stdout | StreamKind::Stdin | StreamKind::File => {
                (OutputStream::Stdout, ExecEvent::Stdout(piece.bytes.clone()))
            }
        };
        if piece.gap == 0 {
            return event;
        }
        if !piece.bytes.is_empty() {
            self.waiting = Some(event);
        }
        ExecEvent::Gap(OutputGap {
            stream,
            bytes: piece.gap,
        })
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
    exec_id: ExecId,
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
        self.client.signal_exec(&self.exec_id, signal).await
    }
}
