//! A command that is followed to its end, whatever happens to the connection.
//!
//! The guest keeps output and input by offset, so a lost connection, a restarted daemon or a
//! hibernation costs nothing but time: the follower attaches again where it was.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use dayfly_api::{ExecExitEvent, ExecRequest, SocketEvent, TerminalSize};
use dayfly_types::{ErrorCode, ExecId};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::client::Client;
use crate::error::{ApiError, ClientError, StreamLoss};
use crate::limits;
use crate::socket::{ExecSocket, SocketItem};

/// What a followed command says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowEvent {
    Stdout(Bytes),
    Stderr(Bytes),
    /// The guest has dropped this many bytes of a stream, which come next in it.
    Gap {
        stream: String,
        bytes: u64,
    },
    /// The connection was lost and made again.
    Reattached,
    /// The last one.
    Exit(ExecExitEvent),
}

/// What is sent to a followed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowInput {
    Bytes(Bytes),
    /// Nothing more follows.
    End,
    Resize(TerminalSize),
    Signal(i32),
}

/// A command in a guest, followed.
#[derive(Debug)]
pub struct Follower {
    client: Client,
    sandbox: String,
    exec: String,
    socket: Option<ExecSocket>,
    stdout: u64,
    stderr: u64,
    sent: SentInput,
    input: mpsc::Receiver<FollowInput>,
    sender: Option<mpsc::Sender<FollowInput>>,
    is_over: bool,
}

impl Client {
    /// Starts a command and follows it.
    ///
    /// # Errors
    /// [`ClientError`] when it could not be started.
    pub async fn follow_exec(
        &self,
        sandbox: &str,
        mut request: ExecRequest,
    ) -> Result<Follower, ClientError> {
        let exec = match &request.exec_id {
            Some(id) => id.clone(),
            None => {
                let mut random = [0; dayfly_types::ids::ID_RANDOM_BYTES];
                getrandom::fill(&mut random).map_err(|error| ClientError::Protocol {
                    what: error.to_string(),
                })?;
                ExecId::from_random(random).to_string()
            }
        };
        request.exec_id = Some(exec.clone());
        let socket = self.exec_socket(sandbox, &request).await?;
        Ok(Follower::new(self.clone(), sandbox, exec, socket, 0, 0))
    }

    /// Follows a command that was started before, from offsets on.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when the sandbox has no such exec.
    pub async fn follow_process(
        &self,
        sandbox: &str,
        exec: &str,
        stdout: u64,
        stderr: u64,
    ) -> Result<Follower, ClientError> {
        let socket = self.attach_socket(sandbox, exec, stdout, stderr).await?;
        let exec = exec.to_owned();
        Ok(Follower::new(
            self.clone(),
            sandbox,
            exec,
            socket,
            stdout,
            stderr,
        ))
    }
}

impl Follower {
    fn new(
        client: Client,
        sandbox: &str,
        exec: String,
        socket: ExecSocket,
        stdout: u64,
        stderr: u64,
    ) -> Self {
        let (sender, input) = mpsc::channel(limits::FOLLOW_INPUT_QUEUE);
        Self {
            client,
            sandbox: sandbox.to_owned(),
            exec,
            stdout,
            stderr,
            sent: SentInput::starting_at(socket.process.stdin_bytes),
            socket: Some(socket),
            input,
            sender: Some(sender),
            is_over: false,
        }
    }

    #[must_use]
    pub fn exec_id(&self) -> &str {
        &self.exec
    }

    /// Where to put input. Can be taken once; what is sent goes out while [`Follower::next`] runs.
    pub fn take_input(&mut self) -> Option<mpsc::Sender<FollowInput>> {
        self.sender.take()
    }

    /// The next event; `None` after [`FollowEvent::Exit`].
    ///
    /// # Errors
    /// [`ClientError::Api`] when the command is lost for good, [`ClientError::OutcomeUnknown`]
    /// when the server did not come back in time, or the sandbox sleeps.
    ///
    /// # Cancel safety
    /// No event is lost when the future is dropped. Input that was taken may be.
    pub async fn next(&mut self) -> Result<Option<FollowEvent>, ClientError> {
        while !self.is_over {
            let Some(socket) = &mut self.socket else {
                self.attach_again().await?;
                return Ok(Some(FollowEvent::Reattached));
            };
            let step = tokio::select! {
                item = socket.reader.next() => Step::Item(item),
                Some(input) = self.input.recv() => Step::Input(input),
            };
            match step {
                Step::Item(Ok(item)) => {
                    if let Some(event) = self.take(item)? {
                        return Ok(Some(event));
                    }
                }
                Step::Item(Err(error)) => self.lose(error)?,
                Step::Input(input) => self.send(input).await,
            }
        }
        Ok(None)
    }

    fn take(&mut self, item: SocketItem) -> Result<Option<FollowEvent>, ClientError> {
        match item {
            SocketItem::Stdout { bytes, .. } => {
                self.stdout += bytes.len() as u64;
                Ok(Some(FollowEvent::Stdout(bytes)))
            }
            SocketItem::Stderr { bytes, .. } => {
                self.stderr += bytes.len() as u64;
                Ok(Some(FollowEvent::Stderr(bytes)))
            }
            SocketItem::Event(SocketEvent::Gap { stream, bytes, .. }) => {
                let offset = match stream.as_str() {
                    "stderr" => &mut self.stderr,
                    _ => &mut self.stdout,
                };
                *offset += bytes;
                Ok(Some(FollowEvent::Gap { stream, bytes }))
            }
            SocketItem::Event(SocketEvent::Exit(exit)) => {
                self.is_over = true;
                Ok(Some(FollowEvent::Exit(exit)))
            }
            SocketItem::Event(SocketEvent::Error { error, code }) => {
                self.lose(ClientError::Api(Box::new(ApiError::told(error, code))))?;
                Ok(None)
            }
            SocketItem::Event(SocketEvent::Attached(_)) => Ok(None),
        }
    }

    /// The connection is of no use any more. Says whether that is the end of it.
    fn lose(&mut self, error: ClientError) -> Result<(), ClientError> {
        // Input that nobody takes is no reason to stop reading.
        if error.api_code() == Some(ErrorCode::WrongState) {
            return Ok(());
        }
        if let ClientError::Api(refusal) = &error
            && !passes(refusal)
        {
            self.is_over = true;
            return Err(error);
        }
        self.socket = None;
        Ok(())
    }

    async fn send(&mut self, input: FollowInput) {
        let Some(socket) = &mut self.socket else {
            return;
        };
        let sent = match input {
            FollowInput::Bytes(bytes) => {
                self.sent.push(&bytes);
                socket.writer.send(bytes).await
            }
            FollowInput::End => {
                self.sent.has_ended = true;
                socket.writer.close_stdin().await
            }
            FollowInput::Resize(size) => socket.writer.resize(size).await,
            FollowInput::Signal(signal) => socket.writer.signal(signal).await,
        };
        if sent.is_err() {
            self.socket = None;
        }
    }

    /// Attaches where it was, once the server is back. A sandbox that was put to sleep is left
    /// asleep: somebody wanted it so.
    async fn attach_again(&mut self) -> Result<(), ClientError> {
        let end = Instant::now() + limits::REATTACH_PATIENCE;
        let mut pause = Duration::from_millis(100);
        loop {
            let error = match self.attach_once().await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let may_pass = match &error {
                ClientError::Api(refusal) => passes(refusal),
                ClientError::Connect { .. }
                | ClientError::Lost { .. }
                | ClientError::Timeout { .. }
                | ClientError::OutcomeUnknown { .. } => true,
                ClientError::Untrusted { .. }
                | ClientError::NoTls { .. }
                | ClientError::Protocol { .. }
                | ClientError::InvalidName { .. }
                | ClientError::Upload { .. } => false,
            };
            if !may_pass || Instant::now() + pause > end {
                self.is_over = true;
                return Err(unknown(error));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(2));
        }
    }

    async fn attach_once(&mut self) -> Result<(), ClientError> {
        let sandbox = self.client.get_sandbox(&self.sandbox).await?;
        if matches!(sandbox.status.as_str(), "hibernated" | "hibernating") {
            let text = format!(
                "the sandbox is hibernated; the command {} continues when it wakes",
                self.exec
            );
            let told = ApiError::told(text, ErrorCode::WrongState.as_str().to_owned());
            return Err(ClientError::OutcomeUnknown {
                source: StreamLoss::Told(Box::new(told)),
            });
        }
        let (stdout, stderr) = (self.stdout, self.stderr);
        let mut socket = self
            .client
            .attach_socket(&self.sandbox, &self.exec, stdout, stderr)
            .await?;
        let missing = self.sent.behind(socket.process.stdin_bytes);
        if socket.process.takes_stdin {
            if !missing.is_empty() {
                socket.writer.send(missing).await?;
            }
            if self.sent.has_ended {
                socket.writer.close_stdin().await?;
            }
        }
        self.socket = Some(socket);
        Ok(())
    }
}

/// A command that was started and cannot be asked about any more.
fn unknown(error: ClientError) -> ClientError {
    if let ClientError::Api(refusal) = error {
        let source = StreamLoss::Told(refusal);
        return ClientError::OutcomeUnknown { source };
    }
    error
}

enum Step {
    Item(Result<SocketItem, ClientError>),
    Input(FollowInput),
}

/// Whether the same request may do better in a moment.
fn passes(refusal: &ApiError) -> bool {
    matches!(
        refusal.known_code(),
        Some(ErrorCode::NodeUnavailable | ErrorCode::GuestUnavailable | ErrorCode::TooMany)
    )
}

/// The end of the input that was sent, for a guest that did not get all of it.
#[derive(Debug, Default)]
struct SentInput {
    /// Where the first kept byte is in the input.
    offset: u64,
    kept: VecDeque<u8>,
    has_ended: bool,
}

impl SentInput {
    fn starting_at(offset: u64) -> Self {
        Self {
            offset,
            ..Self::default()
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.kept.extend(bytes);
        let surplus = self
            .kept
            .len()
            .saturating_sub(limits::FOLLOW_INPUT_BYTES_MAX);
        self.kept.drain(..surplus);
        self.offset += surplus as u64;
    }

    /// What was sent behind an offset.
    fn behind(&self, taken: u64) -> Bytes {
        let skip = usize::try_from(taken.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        self.kept.iter().skip(skip).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_guest_did_not_take_is_sent_again() {
        let mut sent = SentInput::starting_at(10);
        sent.push(b"abcdef");
        assert_eq!(&sent.behind(10)[..], b"abcdef");
        assert_eq!(&sent.behind(13)[..], b"def");
        assert_eq!(&sent.behind(16)[..], b"");
        assert_eq!(&sent.behind(99)[..], b"");
    }

    #[test]
    fn kept_input_has_a_limit() {
        let mut sent = SentInput::default();
        sent.push(&vec![1; limits::FOLLOW_INPUT_BYTES_MAX]);
        sent.push(b"end");
        assert_eq!(sent.kept.len(), limits::FOLLOW_INPUT_BYTES_MAX);
        assert_eq!(sent.offset, 3);
        let all = limits::FOLLOW_INPUT_BYTES_MAX as u64;
        assert_eq!(&sent.behind(all)[..], b"end");
    }
}
