//! Running commands.

use std::collections::VecDeque;
use std::time::Duration;

use dayfly_api::{Advice, ExecExitEvent, ExecOutputEvent, ExecRequest, ExecResult};
use dayfly_types::ErrorCode;
use reqwest::Response;
use serde::Deserialize;
use tokio::time::timeout;

use crate::client::{Client, decode};
use crate::error::{ApiError, ClientError, StreamLoss, innermost};
use crate::limits;
use crate::sse::{SseEvent, SseParser};

/// What a running command says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEvent {
    Stdout(String),
    Stderr(String),
    /// The last one.
    Exit(ExecExitEvent),
}

/// The events of one command, as they happen.
#[derive(Debug)]
pub struct ExecStream {
    response: Response,
    parser: SseParser,
    waiting: VecDeque<SseEvent>,
    is_lost: bool,
    is_over: bool,
}

impl Client {
    /// Runs a command to its end and gives its whole output, which the server cuts at 8 MiB a
    /// stream.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `timeout` when the command ran past its limit.
    pub async fn exec(&self, id: &str, request: &ExecRequest) -> Result<ExecResult, ClientError> {
        let url = self.sandbox_address(id, &["exec"])?;
        let own = request
            .timeout_seconds
            .and_then(|s| Duration::try_from_secs_f64(s).ok());
        let limit = own
            .unwrap_or(limits::EXEC_DEADLINE)
            .saturating_add(limits::CALL_DEADLINE);
        let answer = self.call(self.http.post(url).json(request), limit).await?;
        decode(&answer)
    }

    /// Starts a command and gives its output as it comes.
    ///
    /// # Errors
    /// [`ClientError`]. After [`ClientError::Timeout`] and [`ClientError::Lost`] the command may
    /// have been started.
    pub async fn exec_stream(
        &self,
        id: &str,
        request: &ExecRequest,
    ) -> Result<ExecStream, ClientError> {
        let url = self.sandbox_address(id, &["exec", "stream"])?;
        let response = self
            .open(self.http.post(url).json(request), limits::CALL_DEADLINE)
            .await?;
        Ok(ExecStream {
            response,
            parser: SseParser::new(),
            waiting: VecDeque::new(),
            is_lost: false,
            is_over: false,
        })
    }
}

impl ExecStream {
    /// The next event; `None` after [`CommandEvent::Exit`].
    ///
    /// # Errors
    /// [`ClientError::Api`] when the server gave up on the command (`timeout` when it ran past
    /// its limit), [`ClientError::OutcomeUnknown`] when the stream ended without an exit status.
    /// Nothing follows an error.
    ///
    /// # Cancel safety
    /// No event is lost when the future is dropped before it is ready.
    pub async fn next(&mut self) -> Result<Option<CommandEvent>, ClientError> {
        while !self.is_over {
            if let Some(event) = self.waiting.pop_front() {
                if let Some(event) = self.interpret(&event)? {
                    return Ok(Some(event));
                }
                continue;
            }
            match self.read().await {
                Ok(events) => self.waiting.extend(events),
                Err(error) => return self.fail(error),
            }
        }
        self.drain().await;
        Ok(None)
    }

    /// The events that the next bytes complete. The end of the body is an error: for the caller
    /// only an exit status is an end.
    async fn read(&mut self) -> Result<Vec<SseEvent>, ClientError> {
        let limit = limits::STREAM_SILENCE_MAX;
        let loss = match timeout(limit, self.response.chunk()).await {
            Ok(Ok(Some(piece))) => {
                let events = self.parser.push(&piece);
                return events.map_err(|error| ClientError::Protocol {
                    what: error.to_string(),
                });
            }
            Ok(Ok(None)) => StreamLoss::Ended,
            Ok(Err(error)) => StreamLoss::Cut {
                source: innermost(&error),
            },
            Err(_) => StreamLoss::Silent { limit },
        };
        Err(ClientError::OutcomeUnknown { source: loss })
    }

    fn fail<T>(&mut self, error: ClientError) -> Result<T, ClientError> {
        self.is_over = true;
        Err(error)
    }

    fn interpret(&mut self, event: &SseEvent) -> Result<Option<CommandEvent>, ClientError> {
        let outcome = match event.name.as_str() {
            "stdout" => decode::<ExecOutputEvent>(event.data.as_bytes())
                .map(|output| Some(CommandEvent::Stdout(output.chunk))),
            "stderr" => decode::<ExecOutputEvent>(event.data.as_bytes())
                .map(|output| Some(CommandEvent::Stderr(output.chunk))),
            "exit" => {
                self.is_over = true;
                decode::<ExecExitEvent>(event.data.as_bytes())
                    .map(|exit| Some(CommandEvent::Exit(exit)))
            }
            "error" => Err(read_error(&event.data, self.is_lost)),
            // The server does not know how the command ended; the error that follows says why.
            "lost" => {
                self.is_lost = true;
                Ok(None)
            }
            // Later versions may say more.
            _ => Ok(None),
        };
        outcome.or_else(|error| self.fail(error))
    }

    /// Reads to the end of the body, so that the connection can serve the next call. The server
    /// ends the body right after the last event; one that does not costs only the connection.
    async fn drain(&mut self) {
        let rest = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        let _ = timeout(limits::STREAM_END_DEADLINE, rest).await;
    }
}

/// Data of an `error` event: the fields of an error body, of which only the text is certain.
#[derive(Debug, Deserialize)]
struct ErrorEvent {
    error: String,
    code: Option<String>,
    #[serde(flatten)]
    advice: Advice,
    request_id: Option<String>,
}

fn read_error(data: &str, is_lost: bool) -> ClientError {
    let event: ErrorEvent = match decode(data.as_bytes()) {
        Ok(event) => event,
        Err(error) => return error,
    };
    let code = event.code.unwrap_or_else(|| {
        // An event with a text alone tells a time limit by this word.
        let is_timeout = event.error.to_lowercase().contains("timeout");
        let code = if is_timeout {
            ErrorCode::Timeout
        } else {
            ErrorCode::Internal
        };
        code.as_str().to_owned()
    });
    let status = ErrorCode::parse(&code).map_or(500, ErrorCode::http_status);
    let error = Box::new(ApiError {
        status,
        code,
        message: event.error,
        advice: event.advice,
        request_id: event.request_id,
        retry_after: None,
        percent: None,
        health: None,
    });
    if is_lost {
        return ClientError::OutcomeUnknown {
            source: StreamLoss::Told(error),
        };
    }
    ClientError::Api(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_event_with_a_text_alone_is_sorted_by_it() {
        let code = |data: &str| read_error(data, false).api_code();
        assert_eq!(
            code(r#"{"error":"command timeout after 1 s"}"#),
            Some(ErrorCode::Timeout)
        );
        assert_eq!(code(r#"{"error":"guest gone"}"#), Some(ErrorCode::Internal));
        let told = r#"{"error":"timeout of the guest","code":"guest_unavailable"}"#;
        assert_eq!(code(told), Some(ErrorCode::GuestUnavailable));
        assert!(matches!(
            read_error("nonsense", false),
            ClientError::Protocol { .. }
        ));
    }
}
