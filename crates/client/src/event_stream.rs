//! A body of server-sent events, one event after the other.

use std::collections::VecDeque;
use std::time::Instant;

use reqwest::Response;
use serde::Deserialize;
use tokio::time::timeout;

use crate::client::decode;
use crate::error::{ApiError, ClientError};
use crate::limits;
use crate::sse::{SseEvent, SseParser};

/// Events of one answer. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct EventStream {
    response: Response,
    parser: SseParser,
    waiting: VecDeque<SseEvent>,
    url: String,
}

/// Data of an `error` event.
#[derive(Debug, Deserialize)]
struct ErrorEvent {
    error: String,
    #[serde(default)]
    code: String,
}

impl EventStream {
    pub(crate) fn new(response: Response, url: &str) -> Self {
        Self {
            response,
            parser: SseParser::new(),
            waiting: VecDeque::new(),
            url: url.to_owned(),
        }
    }

    /// The next event. The body never just ends: whoever knows the events knows which is the last.
    ///
    /// # Errors
    /// [`ClientError::Lost`] when the stream was cut off, [`ClientError::Timeout`] when it fell
    /// silent.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is ready.
    pub(crate) async fn next(&mut self) -> Result<SseEvent, ClientError> {
        let next = self.next_or_end().await?;
        next.ok_or_else(|| ClientError::Lost {
            source: std::io::ErrorKind::UnexpectedEof.into(),
        })
    }

    /// As [`EventStream::next`], of a body whose end is an end.
    ///
    /// # Errors
    /// The same.
    ///
    /// # Cancel safety
    /// The same.
    pub(crate) async fn next_or_end(&mut self) -> Result<Option<SseEvent>, ClientError> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Ok(Some(event));
            }
            let limit = limits::STREAM_SILENCE_MAX;
            let piece = timeout(limit, self.response.chunk())
                .await
                .map_err(|_| ClientError::Timeout { limit })?;
            let piece = piece.map_err(|error| ClientError::from_http(&error, &self.url))?;
            let Some(piece) = piece else {
                return Ok(None);
            };
            let events = self.parser.push(&piece);
            let events = events.map_err(|error| ClientError::Protocol {
                what: error.to_string(),
            })?;
            self.waiting.extend(events);
        }
    }
}

/// An error that a stream carried.
pub(crate) fn told(data: &str) -> Result<ClientError, ClientError> {
    let event: ErrorEvent = decode(data.as_bytes())?;
    let error = ApiError::told(event.error, event.code);
    Ok(ClientError::Api(Box::new(error)))
}

/// Opens a stream again that was cut, and waits for a server that is away.
pub(crate) async fn open_again(
    open: impl AsyncFn() -> Result<EventStream, ClientError>,
) -> Result<EventStream, ClientError> {
    let since = Instant::now();
    let mut pauses = limits::RETRY_PAUSES.into_iter();
    loop {
        match open().await {
            Err(error) if error.may_pass() && since.elapsed() < limits::REATTACH_PATIENCE => {
                let pause = pauses.next().unwrap_or(limits::WAIT_PAUSE_DEFAULT);
                tokio::time::sleep(pause).await;
            }
            outcome => return outcome,
        }
    }
}

/// Whether the stream stopped and what comes next can be asked for anew.
pub(crate) fn is_cut(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Lost { .. } | ClientError::Timeout { .. } | ClientError::Connect { .. }
    )
}
