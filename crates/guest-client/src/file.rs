//! Files of a guest as streams.

use bytes::Bytes;
use dayfly_types::file::OpenedFile;
use dayfly_types::limits::AGENT_CALL_DEADLINE;
use futures::Stream;
use tokio::time::timeout;

use crate::channel::Outcome;
use crate::client::AgentClient;
use crate::error::{ConversationLost, StreamError};
use crate::handle::{ChannelHandle, News, Sender};

/// Which part of a file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadRange {
    pub offset: u64,
    /// All of the rest when absent.
    pub limit: Option<u64>,
}

/// How to make a file or a directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteSpec {
    pub user: Option<String>,
    /// Permission bits. An existing file keeps its own when absent.
    pub mode: Option<u32>,
    pub make_parents: bool,
    /// Adds to a file in place instead of replacing it.
    pub append: bool,
    /// Writes into a file in place, from this offset on.
    pub offset: Option<u64>,
}

/// Bytes that a guest sends. Dropping it stops the guest.
#[derive(Debug)]
pub struct GuestStream {
    channel: ChannelHandle,
    is_over: bool,
    _client: AgentClient,
}

impl GuestStream {
    pub(crate) fn new(client: AgentClient, channel: ChannelHandle) -> Self {
        Self {
            channel,
            is_over: false,
            _client: client,
        }
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
                    Some(Outcome::Exited(_) | Outcome::Written { .. }) | None => Ok(None),
                }
            }
        }
    }

    /// The bytes as a stream, which ends after the first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, StreamError>> + Send {
        futures::stream::unfold(Some(self), |open| async {
            let mut open = open?;
            match open.next().await {
                Ok(Some(bytes)) => Some((Ok(bytes), Some(open))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

/// A file that is being read. Dropping it stops the guest.
#[derive(Debug)]
pub struct GuestFileReader {
    info: OpenedFile,
    content: GuestStream,
}

impl GuestFileReader {
    pub(crate) fn new(info: OpenedFile, content: GuestStream) -> Self {
        Self { info, content }
    }

    #[must_use]
    pub const fn info(&self) -> &OpenedFile {
        &self.info
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// [`StreamError`] when the guest cannot go on or is gone.
    ///
    /// # Cancel safety
    /// No bytes are lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Option<Bytes>, StreamError> {
        self.content.next().await
    }

    /// The bytes as a stream, which ends after the first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, StreamError>> + Send {
        self.content.into_stream()
    }
}

/// A file that is being written. Dropping it before the end discards it.
#[derive(Debug)]
pub struct GuestFileWriter {
    channel: ChannelHandle,
    sender: Sender,
    _client: AgentClient,
}

impl GuestFileWriter {
    pub(crate) fn new(client: AgentClient, channel: ChannelHandle) -> Self {
        let sender = Sender {
            conversation: channel.conversation.clone(),
            id: channel.id,
            credit: channel.credit.clone(),
        };
        Self {
            channel,
            sender,
            _client: client,
        }
    }

    /// Sends bytes, as fast as the guest stores them.
    ///
    /// # Errors
    /// [`StreamError::Failed`] when the guest cannot store them, such as on a full disk.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), StreamError> {
        self.sender.send(bytes).await
    }

    /// Puts the file in its place. Gives how many bytes it took.
    ///
    /// # Errors
    /// [`StreamError`]; the old file is then still there.
    ///
    /// # Cancel safety
    /// If the future is dropped the file may or may not have taken its place.
    pub async fn finish(self) -> Result<u64, StreamError> {
        self.sender.end().await?;
        let limit_ms = u64::try_from(AGENT_CALL_DEADLINE.as_millis()).unwrap_or(u64::MAX);
        let news = timeout(AGENT_CALL_DEADLINE, self.channel.next(true)).await;
        let news: Result<News, ConversationLost> =
            news.map_err(|_| StreamError::TimedOut { limit_ms })?;
        match news.map_err(StreamError::Lost)? {
            News::Drained(Some(Outcome::Written { bytes })) => Ok(bytes),
            News::Drained(Some(Outcome::Failed(error))) => Err(StreamError::Failed(error)),
            // Other outcomes and bytes are refused when they arrive.
            News::Drained(_) | News::Bytes(..) => Err(StreamError::Ended),
        }
    }
}
