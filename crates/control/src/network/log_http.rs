//! The record of what a sandbox tried to reach, in pages and as server-sent events.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use dayfly_api::{NetworkLog, NetworkLost};
use dayfly_node_api::{NodeApi, NodeCalls, NodeError, ReadNetworkLog};
use dayfly_types::{ErrorCode, SandboxId};
use http::HeaderMap;
use http::header::ACCEPT;
use serde::Serialize;
use tokio::time::Instant;

use crate::admission::limit::Permit;
use crate::admission::rates::WatchUnderWay;
use crate::control::Control;
use crate::http::answer::NetworkLogRefusals;
use crate::http::auth::Caller;
use crate::http::error::ApiError;
use crate::http::parameter::{
    Number, SEQUENCE_MAX, SandboxParameter, WAIT_SECONDS_MAX, parameters,
};
use crate::http::sse;
use crate::network::read::{self, present_record};
use crate::sandbox::read::locate;

const LIMIT_MAX: u64 = 1000;
const LIMIT_DEFAULT: u64 = 500;
/// Records that a stream asks for at once.
const STREAM_RECORDS: usize = 256;
/// How long a node may be away before a stream's reader is told.
const PATIENCE: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_millis(500);

parameters! {
    /// Which part of a record is wanted.
    Query LogParameter {
        /// Only records with a greater sequence. Default 0.
        after: Option<Number<0, SEQUENCE_MAX>>,
        /// At most this many records. Default 500.
        limit: Option<Number<1, LIMIT_MAX>>,
        /// Wait this long for a first record when there is none yet. Default 0.
        wait_seconds: Option<Number<0, WAIT_SECONDS_MAX>>,
    }
}

impl From<LogParameter> for ReadNetworkLog {
    fn from(given: LogParameter) -> Self {
        let max = given.limit.unwrap_or(LIMIT_DEFAULT);
        Self {
            after: given.after.unwrap_or(0),
            max: usize::try_from(max).unwrap_or(usize::MAX),
            wait: Duration::from_secs(given.wait_seconds.unwrap_or(0)),
        }
    }
}

/// Whether the caller wants events.
fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(ACCEPT).iter();
    accepts
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/event-stream"))
}

/// What the sandbox tried to reach, and what was decided. With `Accept: text/event-stream` it is a
/// stream: a `record` event for each record from `after` on, for as long as the caller stays,
/// `lost` where some are gone, `end` when the sandbox is, `error` when its host is.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/network/log", operation_id = "read_network_log", tag = "network",
    params(SandboxParameter, LogParameter),
    responses((status = 200, content(
        (NetworkLog = "application/json"),
        (dayfly_api::NetworkRecord = "text/event-stream"))), NetworkLogRefusals))]
pub(crate) async fn read(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    wanted: LogParameter,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let wanted = ReadNetworkLog::from(wanted);
    if !wants_stream(&headers) {
        let log = read::log(&control, &caller.project, &id, wanted).await?;
        return Ok(Json(log).into_response());
    }
    locate(&control, &caller.project, &id).await?;
    let share = control
        .rates
        .watch(&caller.project, std::time::Instant::now())?;
    let place = control.limits.watch(&caller.project)?;
    let stream = Stream {
        node: Arc::clone(&control.node),
        id,
        after: wanted.after,
        unwritten: 0,
        pending: VecDeque::new(),
        is_over: false,
        away_since: None,
        _place: (place, share),
    };
    Ok(sse::response(futures::stream::unfold(
        stream,
        async |mut stream| {
            let chunk = stream.next().await?;
            Some((chunk, stream))
        },
    )))
}

/// Data of an event that says nothing but its name.
#[derive(Debug, Serialize)]
struct Nothing {}

/// Data of the `error` event.
#[derive(Debug, Serialize)]
struct ErrorEvent {
    error: String,
    code: &'static str,
}

/// Where one stream is. It asks the node for more only when all that it has was taken.
struct Stream {
    node: Arc<dyn NodeApi>,
    id: SandboxId,
    after: u64,
    /// How many records the node never wrote, as far as it was told.
    unwritten: u64,
    pending: VecDeque<Bytes>,
    is_over: bool,
    away_since: Option<Instant>,
    _place: (Permit, WatchUnderWay),
}

impl Stream {
    /// The next event, whole; `None` after the last.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            let request = ReadNetworkLog {
                after: self.after,
                max: STREAM_RECORDS,
                wait: sse::COMMENT_INTERVAL,
            };
            match self.node.network_log(&self.id, request).await {
                Ok(log) => {
                    self.away_since = None;
                    self.take(&log);
                    if self.pending.is_empty() {
                        return Some(Bytes::from_static(sse::COMMENT));
                    }
                }
                Err(error) if self.may_pass(&error) => {
                    tokio::time::sleep(RETRY).await;
                    return Some(Bytes::from_static(sse::COMMENT));
                }
                Err(error) => self.end(error),
            }
        }
    }

    fn take(&mut self, log: &dayfly_node_api::NetworkLogPage) {
        // Of the number that the node gives, one part is about this reader and the other, which
        // only grows, about everybody.
        let dropped = log.oldest.saturating_sub(self.after.saturating_add(1));
        let unwritten = log.lost.saturating_sub(dropped);
        let count = dropped + unwritten.saturating_sub(self.unwritten);
        self.unwritten = unwritten;
        if count > 0 {
            let event = sse::event("lost", &NetworkLost { count });
            self.pending.push_back(event);
        }
        for record in &log.records {
            self.after = self.after.max(record.sequence);
            let event = sse::event("record", &present_record(record));
            self.pending.push_back(event);
        }
        // Also past what is gone, so that it is told once.
        self.after = self.after.max(log.oldest.saturating_sub(1));
    }

    /// Whether the node is away and may come back in time.
    fn may_pass(&mut self, error: &NodeError) -> bool {
        let since = *self.away_since.get_or_insert_with(Instant::now);
        error.code == ErrorCode::NodeUnavailable && since.elapsed() < PATIENCE
    }

    fn end(&mut self, error: NodeError) {
        self.is_over = true;
        let event = if error.code == ErrorCode::NotFound {
            sse::event("end", &Nothing {})
        } else {
            let error = ApiError::from(error);
            let data = ErrorEvent {
                error: error.message,
                code: error.code.as_str(),
            };
            sse::event("error", &data)
        };
        self.pending.push_back(event);
    }
}
