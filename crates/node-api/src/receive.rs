//! What the records of a body mean, as the streams of [`crate::api`].

use std::future::Future;

use dayfly_types::ErrorCode;
use dayfly_types::limits::CONTEXT_LINE_BYTES_MAX;
use futures::StreamExt;
use futures::stream::BoxStream;
use serde::de::DeserializeOwned;

use crate::api::{ContextLines, ExecEvents, FileBytes, Watch};
use crate::error::NodeError;
use crate::files::FileChanges;
use crate::record::{Record, RecordKind};
use crate::stream::{LineReader, RecordReader, parse_json};
use crate::types::WatchLine;
use dayfly_types::exec::ExecEvent;
use dayfly_types::file::WatchEvent;

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
        RecordKind::Stdout => Ok(Step::Item(ExecEvent::Stdout(record.payload))),
        RecordKind::Stderr => Ok(Step::Item(ExecEvent::Stderr(record.payload))),
        RecordKind::Gap => Ok(Step::Item(ExecEvent::Gap(parse_json(&record.payload)?))),
        RecordKind::Exit => Ok(Step::LastItem(ExecEvent::Exited(parse_json(
            &record.payload,
        )?))),
        RecordKind::Error
        | RecordKind::Head
        | RecordKind::Data
        | RecordKind::End
        | RecordKind::Alive => Err(misplaced(&record)),
    }
}

pub(crate) fn context_lines(reader: RecordReader) -> ContextLines {
    stream_of(reader, context_step)
}

/// Joins the records of one line, which an empty `Head` closes.
async fn context_step(reader: &mut RecordReader) -> Result<Step<bytes::Bytes>, NodeError> {
    let mut line = bytes::BytesMut::new();
    loop {
        let Some(record) = reader.next().await? else {
            return Err(NodeError::unavailable("the connection to the node broke"));
        };
        match record.kind {
            RecordKind::Data if line.len() + record.payload.len() <= CONTEXT_LINE_BYTES_MAX => {
                line.extend_from_slice(&record.payload);
            }
            RecordKind::Head => return Ok(Step::Item(line.freeze())),
            RecordKind::End => return Ok(Step::End),
            RecordKind::Data
            | RecordKind::Stdout
            | RecordKind::Stderr
            | RecordKind::Exit
            | RecordKind::Gap
            | RecordKind::Error
            | RecordKind::Alive => return Err(misplaced(&record)),
        }
    }
}

pub(crate) fn file_bytes(reader: RecordReader) -> FileBytes {
    stream_of(reader, file_step)
}

async fn file_step(reader: &mut RecordReader) -> Result<Step<bytes::Bytes>, NodeError> {
    let Some(record) = reader.next().await? else {
        return Err(NodeError::unavailable("the transfer broke off"));
    };
    match record.kind {
        RecordKind::Data => Ok(Step::Item(record.payload)),
        RecordKind::End => Ok(Step::End),
        RecordKind::Stdout
        | RecordKind::Stderr
        | RecordKind::Exit
        | RecordKind::Gap
        | RecordKind::Error
        | RecordKind::Head
        | RecordKind::Alive => Err(misplaced(&record)),
    }
}

pub(crate) fn file_changes(reader: RecordReader) -> FileChanges {
    stream_of(reader, change_step)
}

async fn change_step(reader: &mut RecordReader) -> Result<Step<WatchEvent>, NodeError> {
    match file_step(reader).await? {
        Step::Item(bytes) | Step::LastItem(bytes) => Ok(Step::Item(parse_json(&bytes)?)),
        Step::End => Ok(Step::End),
    }
}

pub(crate) fn reports(reader: LineReader) -> Watch {
    stream_of(reader, watch_step)
}

async fn watch_step(
    reader: &mut LineReader,
) -> Result<Step<crate::types::SandboxReport>, NodeError> {
    match reader.next::<WatchLine>().await? {
        None => Err(NodeError::unavailable("the node ended the watch")),
        Some(WatchLine::Report(report)) => Ok(Step::Item(*report)),
        Some(WatchLine::Error(error)) => Err(error),
    }
}

/// Reads the record that opens a file transfer.
pub(crate) async fn head<T: DeserializeOwned>(reader: &mut RecordReader) -> Result<T, NodeError> {
    match reader.next().await? {
        Some(record) if record.kind == RecordKind::Head => parse_json(&record.payload),
        Some(record) => Err(misplaced(&record)),
        None => Err(NodeError::unavailable(
            "the transfer broke off before it began",
        )),
    }
}

fn misplaced(record: &Record) -> NodeError {
    tracing::warn!(kind = ?record.kind, "record in the wrong place");
    NodeError::internal("a record of the node connection is in the wrong place")
}
