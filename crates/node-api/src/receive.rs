//! What the records of a body mean, as the streams of [`crate::api`].

use std::future::Future;

use bytes::{Bytes, BytesMut};
use dayfly_types::ErrorCode;
use dayfly_types::limits::CONTEXT_LINE_BYTES_MAX;
use futures::StreamExt;
use futures::stream::BoxStream;
use serde::de::DeserializeOwned;

use crate::api::{ContextLines, ExecEvents, FileBytes, FileChanges, Watch};
use crate::error::NodeError;
use crate::record::{StreamRecord, StreamRecordKind};
use crate::stream::{RecordReader, parse_json};
use crate::types::SandboxReport;
use dayfly_types::exec::ExecEvent;

/// The longest thing: a line of a guest's context bridge.
const ITEM_BYTES_MAX: usize = CONTEXT_LINE_BYTES_MAX;

/// What a step of reading found.
enum Step<T> {
    Item(T),
    LastItem(T),
    End,
}

/// Reads until the end, the last item or the first error, whichever comes first.
fn stream_of<S, T, F>(source: S, step: F) -> BoxStream<'static, Result<T, NodeError>>
where
    S: Send + 'static,
    T: Send + 'static,
    F: for<'a> StepFn<'a, S, T> + Send + Sync + Copy + 'static,
{
    futures::stream::unfold(Some(source), move |source| async move {
        let mut source = source?;
        match step.call(&mut source).await {
            Ok(Step::Item(item)) => Some((Ok(item), Some(source))),
            Ok(Step::LastItem(item)) => Some((Ok(item), None)),
            Ok(Step::End) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

/// An async function of a borrowed source whose future can move between threads.
trait StepFn<'a, S: 'a, T> {
    type Future: Future<Output = Result<Step<T>, NodeError>> + Send + 'a;
    fn call(&self, source: &'a mut S) -> Self::Future;
}

impl<'a, S, T, F, R> StepFn<'a, S, T> for F
where
    S: 'a,
    F: Fn(&'a mut S) -> R,
    R: Future<Output = Result<Step<T>, NodeError>> + Send + 'a,
{
    type Future = R;
    fn call(&self, source: &'a mut S) -> R {
        self(source)
    }
}

pub(crate) fn exec_events(reader: RecordReader) -> ExecEvents {
    stream_of(reader, exec_step)
}

async fn exec_step(reader: &mut RecordReader) -> Result<Step<ExecEvent>, NodeError> {
    let Some(record) = reader.next().await? else {
        let message = "the guest was lost before the command ended";
        return Err(NodeError::new(ErrorCode::GuestUnavailable, message));
    };
    match record.kind {
        StreamRecordKind::Stdout => Ok(Step::Item(ExecEvent::Stdout(record.payload))),
        StreamRecordKind::Stderr => Ok(Step::Item(ExecEvent::Stderr(record.payload))),
        StreamRecordKind::Gap => Ok(Step::Item(ExecEvent::Gap(parse_json(&record.payload)?))),
        StreamRecordKind::Exit => Ok(Step::LastItem(ExecEvent::Exited(parse_json(
            &record.payload,
        )?))),
        StreamRecordKind::Error
        | StreamRecordKind::Head
        | StreamRecordKind::Data
        | StreamRecordKind::Item
        | StreamRecordKind::Part
        | StreamRecordKind::End
        | StreamRecordKind::Alive => Err(misplaced(&record)),
    }
}

pub(crate) fn context_lines(reader: RecordReader) -> ContextLines {
    stream_of(reader, item_step)
}

/// Joins the pieces of one thing.
async fn item_step(reader: &mut RecordReader) -> Result<Step<Bytes>, NodeError> {
    let mut item = BytesMut::new();
    loop {
        let Some(record) = reader.next().await? else {
            return Err(NodeError::unavailable("the connection to the node broke"));
        };
        let fits = item.len() + record.payload.len() <= ITEM_BYTES_MAX;
        match record.kind {
            StreamRecordKind::Item if item.is_empty() => return Ok(Step::Item(record.payload)),
            StreamRecordKind::Part | StreamRecordKind::Item if fits => {
                item.extend_from_slice(&record.payload);
                if record.kind == StreamRecordKind::Item {
                    return Ok(Step::Item(item.freeze()));
                }
            }
            StreamRecordKind::End if item.is_empty() => return Ok(Step::End),
            StreamRecordKind::Data
            | StreamRecordKind::Item
            | StreamRecordKind::Part
            | StreamRecordKind::End
            | StreamRecordKind::Head
            | StreamRecordKind::Stdout
            | StreamRecordKind::Stderr
            | StreamRecordKind::Exit
            | StreamRecordKind::Gap
            | StreamRecordKind::Error
            | StreamRecordKind::Alive => return Err(misplaced(&record)),
        }
    }
}

pub(crate) fn file_bytes(reader: RecordReader) -> FileBytes {
    stream_of(reader, file_step)
}

async fn file_step(reader: &mut RecordReader) -> Result<Step<Bytes>, NodeError> {
    let Some(record) = reader.next().await? else {
        return Err(NodeError::unavailable("the transfer broke off"));
    };
    match record.kind {
        StreamRecordKind::Data => Ok(Step::Item(record.payload)),
        StreamRecordKind::End => Ok(Step::End),
        StreamRecordKind::Stdout
        | StreamRecordKind::Stderr
        | StreamRecordKind::Exit
        | StreamRecordKind::Gap
        | StreamRecordKind::Error
        | StreamRecordKind::Item
        | StreamRecordKind::Part
        | StreamRecordKind::Head
        | StreamRecordKind::Alive => Err(misplaced(&record)),
    }
}

pub(crate) fn file_changes(reader: RecordReader) -> FileChanges {
    stream_of(reader, json_step)
}

async fn json_step<T: DeserializeOwned>(reader: &mut RecordReader) -> Result<Step<T>, NodeError> {
    match item_step(reader).await? {
        Step::Item(bytes) | Step::LastItem(bytes) => Ok(Step::Item(parse_json(&bytes)?)),
        Step::End => Ok(Step::End),
    }
}

pub(crate) fn reports(reader: RecordReader) -> Watch {
    stream_of(reader, watch_step)
}

async fn watch_step(reader: &mut RecordReader) -> Result<Step<SandboxReport>, NodeError> {
    match json_step(reader).await? {
        Step::End => Err(NodeError::unavailable("the node ended the watch")),
        step @ (Step::Item(_) | Step::LastItem(_)) => Ok(step),
    }
}

/// Reads the record that opens a file transfer.
pub(crate) async fn head<T: DeserializeOwned>(reader: &mut RecordReader) -> Result<T, NodeError> {
    match reader.next().await? {
        Some(record) if record.kind == StreamRecordKind::Head => parse_json(&record.payload),
        Some(record) => Err(misplaced(&record)),
        None => Err(NodeError::unavailable(
            "the transfer broke off before it began",
        )),
    }
}

fn misplaced(record: &StreamRecord) -> NodeError {
    tracing::warn!(kind = ?record.kind, "record in the wrong place");
    NodeError::internal("a record of the node connection is in the wrong place")
}
