//! Records over HTTP bodies, both directions, both sides.
//!
//! Nothing here reads ahead: a body is polled only when its reader wants the next record, so that
//! a slow reader holds back the guest at the other end.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use http_body_util::BodyExt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::NodeError;
use crate::record::{self, RecordDecoder, StreamRecord, StreamRecordKind};

/// A writer with nothing to say says so after this long.
pub(crate) const ALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// A reader that heard nothing for this long takes the other side for dead.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(40);
/// What is kept of an error's text, so that it fits one record.
const ERROR_TEXT_BYTES_MAX: usize = 4 << 10;

/// One step of what a side writes: records, and whether more may follow.
#[derive(Debug)]
pub(crate) enum Outgoing {
    More(StreamRecordKind, Bytes),
    /// One thing of any length.
    Item(Bytes),
    Last(StreamRecordKind, Bytes),
}

impl Outgoing {
    pub(crate) fn item<T: Serialize>(value: &T) -> Self {
        Self::Item(serde_json::to_vec(value).unwrap_or_default().into())
    }

    pub(crate) fn json<T: Serialize>(kind: StreamRecordKind, value: &T) -> Self {
        // Plain data with string keys always serialises.
        Self::Last(kind, serde_json::to_vec(value).unwrap_or_default().into())
    }

    pub(crate) fn error(mut error: NodeError) -> Self {
        if error.message.len() > ERROR_TEXT_BYTES_MAX {
            let end = error.message.floor_char_boundary(ERROR_TEXT_BYTES_MAX);
            error.message.truncate(end);
        }
        Self::json(StreamRecordKind::Error, &error)
    }
}

/// A body of records, with signs of life while `source` is silent. Dropping the body drops
/// `source`.
pub(crate) fn body_of_records(
    first: VecDeque<Bytes>,
    source: impl Stream<Item = Outgoing> + Send + Unpin + 'static,
) -> Body {
    struct State<S> {
        pending: VecDeque<Bytes>,
        source: Option<S>,
    }
    let state = State {
        pending: first,
        source: Some(source),
    };
    Body::from_stream(futures::stream::unfold(state, async |mut state| {
        loop {
            if let Some(piece) = state.pending.pop_front() {
                return Some((Ok::<_, std::convert::Infallible>(piece), state));
            }
            let source = state.source.as_mut()?;
            match tokio::time::timeout(ALIVE_INTERVAL, source.next()).await {
                Err(_) => record::encode(StreamRecordKind::Alive, Bytes::new(), &mut state.pending),
                Ok(None) => return None,
                Ok(Some(Outgoing::More(kind, payload))) => {
                    record::encode(kind, payload, &mut state.pending);
                }
                Ok(Some(Outgoing::Item(payload))) => {
                    record::encode_item(payload, &mut state.pending);
                }
                Ok(Some(Outgoing::Last(kind, payload))) => {
                    record::encode(kind, payload, &mut state.pending);
                    state.source = None;
                }
            }
        }
    }))
}

/// The record that says what a stream is about.
pub(crate) fn head_record<T: Serialize>(value: &T) -> VecDeque<Bytes> {
    let mut first = VecDeque::new();
    let head = serde_json::to_vec(value).unwrap_or_default();
    record::encode(StreamRecordKind::Head, head.into(), &mut first);
    first
}

/// Reads a body as records.
#[derive(Debug)]
pub(crate) struct RecordReader {
    body: Body,
    decoder: RecordDecoder,
}

impl RecordReader {
    pub(crate) fn new(body: Body) -> Self {
        Self {
            body,
            decoder: RecordDecoder::default(),
        }
    }

    /// The next record that is not a sign of life; `None` at the end of the body.
    pub(crate) async fn next(&mut self) -> Result<Option<StreamRecord>, NodeError> {
        loop {
            match self.decoder.take() {
                Ok(Some(record)) if record.kind == StreamRecordKind::Alive => continue,
                Ok(Some(record)) if record.kind == StreamRecordKind::Error => {
                    return Err(parse_json(&record.payload)?);
                }
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => {}
                Err(error) => return Err(broken(&error)),
            }
            match next_bytes(&mut self.body).await? {
                Some(bytes) => self.decoder.push(&bytes),
                None => {
                    self.decoder.finish().map_err(|error| broken(&error))?;
                    return Ok(None);
                }
            }
        }
    }
}

async fn next_bytes(body: &mut Body) -> Result<Option<Bytes>, NodeError> {
    loop {
        let frame = tokio::time::timeout(SILENCE_MAX, body.frame())
            .await
            .map_err(|_| NodeError::unavailable("the connection to the node went silent"))?;
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
            Some(Err(error)) => return Err(broken(&error)),
        }
    }
}

pub(crate) fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, NodeError> {
    serde_json::from_slice(bytes).map_err(|error| {
        tracing::warn!(%error, "cannot read what the node sent");
        NodeError::internal("the node's answer cannot be read")
    })
}

fn broken(error: &dyn std::error::Error) -> NodeError {
    tracing::debug!(error = %error, "connection to the node broke");
    NodeError::unavailable("the connection to the node broke")
}
