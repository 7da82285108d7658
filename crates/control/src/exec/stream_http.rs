//! A command's output as server-sent events.

use std::collections::VecDeque;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use dayfly_api::ExecExitEvent;
use dayfly_api::utf8::Utf8Pieces;
use dayfly_node_api::{ExecEvents, NodeError};
use dayfly_types::exec::{ExecEnd, ExecEvent, ExitReason, OutputStream};
use futures::StreamExt;
use serde::Serialize;
use tokio::time::Instant;

use crate::admission::limit::Permit;
use crate::exec::collect::{ExecError, TIMEOUT_GRACE, failed, lost, timed_out};
use crate::exec::follow::Position;
use crate::exec::hint::Awaited;
use crate::exec::process::exit_event;
use crate::http::error::ApiError;
use crate::http::sse;

/// Where one stream is. It asks the node for more only when all that it has was taken.
struct State {
    position: Position,
    events: Option<ExecEvents>,
    limit: Option<Duration>,
    /// Of a command that was started here; whoever attaches later does not know since when.
    awaited: Option<Awaited>,
    /// When the node should long have ended the command.
    deadline: Option<Instant>,
    stdout: Utf8Pieces,
    stderr: Utf8Pieces,
    pending: VecDeque<Bytes>,
    _place: Permit,
}

/// Data of the `started` event.
#[derive(Debug, Serialize)]
struct StartedEvent<'a> {
    exec_id: &'a str,
}

/// Data of the `gap` event.
#[derive(Debug, Serialize)]
struct GapEvent {
    stream: OutputStream,
    offset: u64,
    bytes: u64,
}

/// The answer of one command. Dropping it leaves the command alone.
pub(crate) fn response(
    events: ExecEvents,
    position: &Position,
    limit: Option<Duration>,
    awaited: Option<Awaited>,
    place: Permit,
) -> Response {
    let started = StartedEvent {
        exec_id: position.exec.as_str(),
    };
    let state = State {
        position: position.clone(),
        events: Some(events),
        limit,
        awaited,
        deadline: limit.map(|limit| Instant::now() + limit + TIMEOUT_GRACE),
        stdout: Utf8Pieces::default(),
        stderr: Utf8Pieces::default(),
        pending: VecDeque::from([sse::event("started", &started)]),
        _place: place,
    };
    sse::response(futures::stream::unfold(state, async |mut state| {
        let chunk = state.next().await?;
        Some((chunk, state))
    }))
}

impl State {
    /// The next event, whole; `None` after the last.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            let events = self.events.as_mut()?;
            let comment_at = Instant::now() + sse::COMMENT_INTERVAL;
            let wake_at = self
                .deadline
                .map_or(comment_at, |deadline| deadline.min(comment_at));
            match tokio::time::timeout_at(wake_at, events.next()).await {
                Err(_) if Some(wake_at) == self.deadline => self.end(timed_out(self.limit)),
                Err(_) => return Some(Bytes::from_static(sse::COMMENT)),
                Ok(Some(Ok(ExecEvent::Exited(end)))) => self.exit(&end).await,
                Ok(event) => self.take(event.unwrap_or_else(|| Err(lost()))),
            }
        }
    }

    fn take(&mut self, event: Result<ExecEvent, NodeError>) {
        let before = self.position.offsets;
        if let Ok(event) = &event {
            self.position.offsets.advance(event);
        }
        match event {
            Ok(ExecEvent::Gap(gap)) => {
                // Only of the stream that has the gap: the other may be inside a character.
                let (name, pieces, offset) = match gap.stream {
                    OutputStream::Stdout => ("stdout", &mut self.stdout, before.stdout),
                    OutputStream::Stderr => ("stderr", &mut self.stderr, before.stderr),
                };
                if let Some(text) = pieces.finish() {
                    sse::output_events(name, &text, &mut self.pending);
                }
                let data = GapEvent {
                    stream: gap.stream,
                    offset: offset.unwrap_or(0),
                    bytes: gap.bytes,
                };
                self.pending.push_back(sse::event("gap", &data));
            }
            Ok(ExecEvent::Stdout(bytes)) => {
                let text = self.stdout.push(&bytes);
                sse::output_events("stdout", &text, &mut self.pending);
            }
            Ok(ExecEvent::Stderr(bytes)) => {
                let text = self.stderr.push(&bytes);
                sse::output_events("stderr", &text, &mut self.pending);
            }
            // Taken before: what it says may have to be asked for.
            Ok(ExecEvent::Exited(_)) => {}
            Err(error) => {
                let error = failed(error, self.limit);
                self.end(error);
            }
        }
    }

    async fn exit(&mut self, end: &ExecEnd) {
        if end.exit.reason == ExitReason::TimedOut {
            return self.end(timed_out(self.limit));
        }
        self.flush();
        self.events = None;
        let hint = match &self.awaited {
            Some(awaited) => awaited.hint(&end.exit).await,
            None => None,
        };
        let event = ExecExitEvent {
            advice: hint.into(),
            ..exit_event(end)
        };
        self.pending.push_back(sse::event("exit", &event));
    }

    fn end(&mut self, error: ExecError) {
        self.flush();
        self.events = None;
        let timed_out = !matches!(error, ExecError::Lost(_));
        let data = sse::ErrorEvent::from(ApiError::from(error));
        if timed_out {
            self.pending.push_back(sse::event("error", &data));
        } else {
            self.pending.extend(sse::lost_events(&data));
        }
    }

    /// Sends what stands for characters that were cut by the end.
    fn flush(&mut self) {
        if let Some(text) = self.stdout.finish() {
            sse::output_events("stdout", &text, &mut self.pending);
        }
        if let Some(text) = self.stderr.finish() {
            sse::output_events("stderr", &text, &mut self.pending);
        }
    }
}
