//! Execs over a WebSocket: bytes as they are, with offsets, and input on the same connection.

use bytes::{Buf, Bytes};
use dayfly_api::{
    ExecRequest, Process, SOCKET_HEADER_BYTES, SOCKET_STDERR, SOCKET_STDOUT, SocketCall,
    SocketEvent, TerminalSize,
};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use reqwest::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{StatusCode, Upgraded, Url};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use crate::client::{Client, decode};
use crate::error::{ApiError, ClientError, StreamLoss};
use crate::limits;

type Stream = WebSocketStream<Upgraded>;

/// What comes over an exec's socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketItem {
    /// Bytes of standard output, and where they are in it.
    Stdout {
        offset: u64,
        bytes: Bytes,
    },
    Stderr {
        offset: u64,
        bytes: Bytes,
    },
    Event(SocketEvent),
}

/// The reading half.
#[derive(Debug)]
pub struct ExecReader {
    stream: SplitStream<Stream>,
}

/// The half for input, signals and sizes.
#[derive(Debug)]
pub struct ExecWriter {
    sink: SplitSink<Stream, Message>,
}

/// An open socket and the process at its other end.
#[derive(Debug)]
pub struct ExecSocket {
    pub process: Process,
    pub reader: ExecReader,
    pub writer: ExecWriter,
}

impl Client {
    /// Starts a command on a socket.
    ///
    /// # Errors
    /// [`ClientError`]. Unless it is [`ClientError::Api`], the command may have been started; with
    /// an id in the request it can be asked for.
    pub async fn exec_socket(
        &self,
        id: &str,
        request: &ExecRequest,
    ) -> Result<ExecSocket, ClientError> {
        let url = self.sandbox_address(id, &["exec", "socket"])?;
        let (mut writer, reader) = halves(self.upgrade(url).await?);
        let start = SocketCall::Start(Box::new(request.clone()));
        writer.call(&start).await?;
        attached(writer, reader).await
    }

    /// Attaches to a command on a socket, from offsets on.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when the sandbox has no such exec.
    pub async fn attach_socket(
        &self,
        id: &str,
        exec: &str,
        stdout: u64,
        stderr: u64,
    ) -> Result<ExecSocket, ClientError> {
        let mut url = self.sandbox_address(id, &["processes", exec, "socket"])?;
        url.query_pairs_mut()
            .append_pair("stdout_offset", &stdout.to_string())
            .append_pair("stderr_offset", &stderr.to_string());
        let (writer, reader) = halves(self.upgrade(url).await?);
        attached(writer, reader).await
    }

    async fn upgrade(&self, url: Url) -> Result<Stream, ClientError> {
        let key = generate_key();
        let request = self
            .http
            .get(url)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key);
        let response = self.open(request, limits::SOCKET_DEADLINE).await?;
        let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT);
        let is_accepted = accepted
            .is_some_and(|value| value.as_bytes() == derive_accept_key(key.as_bytes()).as_bytes());
        if response.status() != StatusCode::SWITCHING_PROTOCOLS || !is_accepted {
            let what = "it does not speak WebSocket".to_owned();
            return Err(ClientError::Protocol { what });
        }
        let upgraded = response
            .upgrade()
            .await
            .map_err(|error| ClientError::from_http(&error, self.url()))?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(limits::SOCKET_MESSAGE_BYTES_MAX))
            .max_frame_size(Some(limits::SOCKET_MESSAGE_BYTES_MAX));
        Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await)
    }
}

fn halves(stream: Stream) -> (ExecWriter, ExecReader) {
    let (sink, stream) = stream.split();
    (ExecWriter { sink }, ExecReader { stream })
}

/// Waits for the first message, which describes the process.
async fn attached(writer: ExecWriter, mut reader: ExecReader) -> Result<ExecSocket, ClientError> {
    let limit = limits::SOCKET_DEADLINE;
    let first = timeout(limit, reader.next())
        .await
        .map_err(|_| ClientError::Timeout { limit })??;
    match first {
        SocketItem::Event(SocketEvent::Attached(process)) => Ok(ExecSocket {
            process: *process,
            reader,
            writer,
        }),
        SocketItem::Event(SocketEvent::Error { error, code }) => {
            Err(ClientError::Api(Box::new(ApiError::told(error, code))))
        }
        SocketItem::Event(_) | SocketItem::Stdout { .. } | SocketItem::Stderr { .. } => {
            let what = "the first message is not the process".to_owned();
            Err(ClientError::Protocol { what })
        }
    }
}

impl ExecReader {
    /// The next item. The end of the connection is an error: only an exit is an end.
    ///
    /// # Errors
    /// [`ClientError::OutcomeUnknown`] when the connection is over.
    ///
    /// # Cancel safety
    /// No item is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<SocketItem, ClientError> {
        let limit = limits::STREAM_SILENCE_MAX;
        loop {
            let message = match timeout(limit, self.stream.next()).await {
                Ok(Some(Ok(message))) => message,
                Ok(Some(Err(error))) => return Err(cut(error)),
                Ok(None) => return Err(lost(StreamLoss::Ended)),
                Err(_) => return Err(lost(StreamLoss::Silent { limit })),
            };
            match message {
                Message::Binary(bytes) => return output(bytes),
                Message::Text(text) => return decode(text.as_bytes()).map(SocketItem::Event),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
                Message::Close(_) => return Err(lost(StreamLoss::Ended)),
            }
        }
    }
}

fn output(mut bytes: Bytes) -> Result<SocketItem, ClientError> {
    let unknown = || ClientError::Protocol {
        what: "a message is neither output nor text".to_owned(),
    };
    if bytes.len() < SOCKET_HEADER_BYTES {
        return Err(unknown());
    }
    let stream = bytes.get_u8();
    let offset = bytes.get_u64();
    match stream {
        SOCKET_STDOUT => Ok(SocketItem::Stdout { offset, bytes }),
        SOCKET_STDERR => Ok(SocketItem::Stderr { offset, bytes }),
        _ => Err(unknown()),
    }
}

impl ExecWriter {
    /// Sends input.
    ///
    /// # Errors
    /// [`ClientError::OutcomeUnknown`] when the connection is over.
    pub async fn send(&mut self, bytes: Bytes) -> Result<(), ClientError> {
        self.sink.send(Message::Binary(bytes)).await.map_err(cut)
    }

    /// Ends the input.
    ///
    /// # Errors
    /// [`ClientError::OutcomeUnknown`] when the connection is over.
    pub async fn close_stdin(&mut self) -> Result<(), ClientError> {
        self.call(&SocketCall::CloseStdin).await
    }

    /// Tells the terminal how large it is.
    ///
    /// # Errors
    /// [`ClientError::OutcomeUnknown`] when the connection is over.
    pub async fn resize(&mut self, size: TerminalSize) -> Result<(), ClientError> {
        self.call(&SocketCall::Resize(size)).await
    }

    /// Sends a signal to the process group.
    ///
    /// # Errors
    /// [`ClientError::OutcomeUnknown`] when the connection is over.
    pub async fn signal(&mut self, signal: i32) -> Result<(), ClientError> {
        self.call(&SocketCall::Signal { signal }).await
    }

    async fn call(&mut self, call: &SocketCall) -> Result<(), ClientError> {
        // Plain data with string keys always serialises.
        let text = serde_json::to_string(call).unwrap_or_default();
        self.sink
            .send(Message::Text(text.into()))
            .await
            .map_err(cut)
    }
}

fn lost(source: StreamLoss) -> ClientError {
    ClientError::OutcomeUnknown { source }
}

fn cut(error: SocketError) -> ClientError {
    if let SocketError::Io(source) = error {
        return lost(StreamLoss::Cut { source });
    }
    let source = std::io::Error::other(error);
    lost(StreamLoss::Cut { source })
}
