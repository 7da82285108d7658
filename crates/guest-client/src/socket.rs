//! Unix sockets and TCP ports of a guest as streams.

use std::time::Duration;

use bytes::Bytes;
use dayfly_guest_proto::{ChannelId, Request, Response};
use dayfly_types::limits::PORT_WAIT_CALL_MAX;
use dayfly_types::port::Listener;

use crate::channel::{Outcome, Purpose};
use crate::client::{AgentClient, forget_refused};
use crate::error::{CallError, StreamError};
use crate::handle::{ChannelHandle, News, Sender};

/// A connection to a service in the guest. Dropping it closes the connection.
#[derive(Debug)]
pub struct GuestSocket {
    channel: ChannelHandle,
    sender: Sender,
    is_over: bool,
    _client: AgentClient,
}

/// The sending side of a [`GuestSocket`].
#[derive(Debug, Clone)]
pub struct GuestSocketWriter(Sender);

impl GuestSocketWriter {
    /// As [`GuestSocket::send`].
    ///
    /// # Errors
    /// [`StreamError`] when the connection is over.
    pub async fn send(&self, bytes: Bytes) -> Result<(), StreamError> {
        self.0.send(bytes).await
    }

    /// As [`GuestSocket::end`].
    ///
    /// # Errors
    /// [`StreamError`] when the connection is over.
    pub async fn end(&self) -> Result<(), StreamError> {
        self.0.end().await
    }
}

impl AgentClient {
    /// Connects to a unix socket of the guest.
    ///
    /// # Errors
    /// [`CallError::Refused`] when nobody listens there.
    pub async fn connect_socket(&self, path: &str) -> Result<GuestSocket, CallError> {
        self.open_socket(|channel| Request::ConnectSocket {
            channel,
            path: path.to_owned(),
        })
        .await
    }

    /// Connects to a TCP port of the guest.
    ///
    /// # Errors
    /// [`CallError::Refused`] when nobody listens there.
    pub async fn connect_port(&self, port: u16) -> Result<GuestSocket, CallError> {
        self.open_socket(|channel| Request::ConnectPort { channel, port })
            .await
    }

    async fn open_socket(
        &self,
        request: impl FnOnce(ChannelId) -> Request,
    ) -> Result<GuestSocket, CallError> {
        let channel = self.conversation().open_channel(Purpose::Socket)?;
        match self.call(request(channel.id)).await {
            Ok(Response::Done) => Ok(GuestSocket::new(self.clone(), channel)),
            Ok(_) => Err(CallError::UnexpectedAnswer),
            Err(error) => Err(forget_refused(&channel, error)),
        }
    }

    /// The TCP ports on which something in the guest listens.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn list_ports(&self) -> Result<Vec<Listener>, CallError> {
        let answer = self.call(Request::ListPorts).await?;
        let Response::Ports { ports } = answer else {
            return Err(CallError::UnexpectedAnswer);
        };
        Ok(ports)
    }

    /// Waits until something in the guest listens on a TCP port; `None` when nothing does before
    /// the limit, or before [`PORT_WAIT_CALL_MAX`].
    ///
    /// # Errors
    /// [`CallError::Refused`] when the agent is too old for it, or has too many of these calls.
    pub async fn wait_port(
        &self,
        port: u16,
        limit: Duration,
    ) -> Result<Option<Listener>, CallError> {
        let limit = limit.min(PORT_WAIT_CALL_MAX);
        let timeout_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let answer = self.call(Request::WaitPort { port, timeout_ms }).await?;
        let Response::Ports { ports } = answer else {
            return Err(CallError::UnexpectedAnswer);
        };
        Ok(ports.into_iter().find(|found| found.port == port))
    }
}

impl GuestSocket {
    fn new(client: AgentClient, channel: ChannelHandle) -> Self {
        let sender = Sender {
            conversation: channel.conversation.clone(),
            id: channel.id,
            credit: channel.credit.clone(),
        };
        Self {
            channel,
            sender,
            is_over: false,
            _client: client,
        }
    }

    /// The sending side, for use beside [`Self::next`]. It may outlive the connection; sending
    /// fails then.
    #[must_use]
    pub fn writer(&self) -> GuestSocketWriter {
        GuestSocketWriter(self.sender.clone())
    }

    /// Sends bytes, as fast as the service takes them.
    ///
    /// # Errors
    /// [`StreamError`] when the connection is over.
    pub async fn send(&self, bytes: Bytes) -> Result<(), StreamError> {
        self.sender.send(bytes).await
    }

    /// Says that nothing more will be sent.
    ///
    /// # Errors
    /// [`StreamError`] when the connection is over.
    pub async fn end(&self) -> Result<(), StreamError> {
        self.sender.end().await
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// [`StreamError`] when the guest cannot go on or is gone.
    ///
    /// # Cancel safety
    /// No bytes are lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Option<Bytes>, StreamError> {
        if self.is_over {
            return Ok(None);
        }
        match self.channel.next(false).await.map_err(StreamError::Lost)? {
            News::Bytes(piece) => Ok(Some(piece.bytes)),
            News::Drained(outcome) => {
                self.is_over = true;
                match outcome {
                    Some(Outcome::Failed(error)) => Err(StreamError::Failed(error)),
                    Some(Outcome::Exited { .. } | Outcome::Written { .. }) | None => Ok(None),
                }
            }
        }
    }
}
