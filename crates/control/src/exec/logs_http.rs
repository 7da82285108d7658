//! What the commands of a sandbox have printed, all together.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use dayfly_api::utf8::Utf8Pieces;
use dayfly_node_api::{AttachExec, ExecEvents, NodeApi, NodeCalls};
use dayfly_types::SandboxId;
use dayfly_types::exec::{ExecEvent, ExecInfo};
use futures::stream::SelectAll;
use futures::{Stream, StreamExt};
use http::header::CONTENT_TYPE;
use serde::Serialize;

use crate::admission::limit::Permit;
use crate::control::Control;
use crate::http::answer::ProcessRefusals;
use crate::http::auth::Caller;
use crate::http::error::ApiError;
use crate::http::parameter::{LooseFlag, OutputNames, Outputs, SandboxParameter, parameters};
use crate::http::sse;
use crate::sandbox::read::locate;

/// A longer line comes in pieces of this many characters.
const LINE_CHARACTERS_MAX: usize = 8 << 10;

parameters! {
    /// Which output is wanted, and in which form.
    Query LogsParameter {
        /// `stdout`, `stderr` or `both`. Default `both`.
        stream: OutputNames,
        /// Whether to wait for what the commands that run now will print. `true`, `1`, `false` or `0`.
        follow: LooseFlag,
    }
}

#[derive(Debug, Clone, Copy)]
struct Wanted {
    outputs: Outputs,
    is_followed: bool,
}

/// What the sandbox's commands have printed, oldest command first, as text. With `follow` as
/// server-sent events of `{"line": text}`, until the last of those that run now has ended.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/logs", operation_id = "read_logs", tag = "exec",
    params(SandboxParameter, LogsParameter),
    responses((status = 200, content(
        (String = "text/plain"), (String = "text/event-stream"))), ProcessRefusals))]
pub(crate) async fn read(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    LogsParameter { stream, follow }: LogsParameter,
) -> Result<Response, ApiError> {
    let wanted = Wanted {
        outputs: stream,
        is_followed: follow,
    };
    locate(&control, &caller.project, &id).await?;
    let place = control.limits.exec(&caller.project)?;
    let reports = control.node.list_execs(&id).await?;
    let node = Arc::clone(&control.node);
    if wanted.is_followed {
        return Ok(sse::response(followed(node, id, wanted, reports, place)));
    }
    let headers = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
    let text = kept(node, id, wanted, reports, place);
    Ok((headers, Body::from_stream(text.map(Ok::<_, Infallible>))).into_response())
}

/// Everything that is kept now, one command after the other.
fn kept(
    node: Arc<dyn NodeApi>,
    id: SandboxId,
    wanted: Wanted,
    reports: Vec<ExecInfo>,
    place: Permit,
) -> impl Stream<Item = Bytes> + Send + 'static {
    futures::stream::iter(reports)
        .then(move |report| {
            let (node, id) = (Arc::clone(&node), id.clone());
            async move { open(node.as_ref(), &id, wanted, &report).await }
        })
        .flatten()
        .map(move |piece| {
            // Held until the last byte.
            let _ = &place;
            piece
        })
}

/// The same as events, and then what comes, of all commands at once.
fn followed(
    node: Arc<dyn NodeApi>,
    id: SandboxId,
    wanted: Wanted,
    reports: Vec<ExecInfo>,
    place: Permit,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let opening = async move {
        let mut all = SelectAll::new();
        for report in reports {
            all.push(open(node.as_ref(), &id, wanted, &report).await);
        }
        all
    };
    // Headers go out with the first byte.
    let first = futures::stream::iter([Bytes::from_static(sse::COMMENT)]);
    let lines = futures::stream::once(opening).flatten().boxed();
    let lines = futures::stream::unfold((lines, place), async |(mut lines, place)| {
        let next = tokio::time::timeout(sse::COMMENT_INTERVAL, lines.next()).await;
        let piece = match next {
            Ok(piece) => piece?,
            Err(_) => Bytes::from_static(sse::COMMENT),
        };
        Some((piece, (lines, place)))
    });
    first.chain(lines)
}

/// The output of one command. What cannot be read any more is left out.
async fn open(
    node: &dyn NodeApi,
    id: &SandboxId,
    wanted: Wanted,
    report: &ExecInfo,
) -> futures::stream::BoxStream<'static, Bytes> {
    let request = AttachExec {
        exec: report.exec_id.clone(),
        stdout_offset: wanted.outputs.stdout.then_some(report.stdout.start),
        stderr_offset: wanted.outputs.stderr.then_some(report.stderr.start),
    };
    let extent = |is_wanted: bool, start: u64, end: u64| if is_wanted { end - start } else { 0 };
    let now = extent(
        wanted.outputs.stdout,
        report.stdout.start,
        report.stdout.end,
    ) + extent(
        wanted.outputs.stderr,
        report.stderr.start,
        report.stderr.end,
    );
    let left = (!wanted.is_followed).then_some(now);
    if left == Some(0) {
        return futures::stream::empty().boxed();
    }
    let Ok((_, events)) = node.attach_exec(id, request).await else {
        return futures::stream::empty().boxed();
    };
    let reading = Reading {
        events,
        left,
        lines: Lines {
            is_events: wanted.is_followed,
            ..Lines::default()
        },
        pending: VecDeque::new(),
        is_over: false,
    };
    futures::stream::unfold(reading, async |mut reading| {
        let piece = reading.next().await?;
        Some((piece, reading))
    })
    .boxed()
}

/// One command that is being read.
struct Reading {
    events: ExecEvents,
    /// How many bytes were there when it was asked; without it, until the end.
    left: Option<u64>,
    lines: Lines,
    pending: VecDeque<Bytes>,
    is_over: bool,
}

impl Reading {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.pending.pop_front() {
                return Some(piece);
            }
            if self.is_over {
                return None;
            }
            match self.events.next().await {
                Some(Ok(ExecEvent::Stdout(bytes))) => self.take(&bytes, "stdout"),
                Some(Ok(ExecEvent::Stderr(bytes))) => self.take(&bytes, "stderr"),
                Some(Ok(ExecEvent::Gap(_))) => {}
                Some(Ok(ExecEvent::Exited(_)) | Err(_)) | None => self.end(),
            }
        }
    }

    fn take(&mut self, bytes: &[u8], stream: &'static str) {
        let room = usize::try_from(self.left.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(room)];
        self.lines.push(bytes, stream, &mut self.pending);
        if let Some(left) = &mut self.left {
            *left -= bytes.len() as u64;
            if *left == 0 {
                self.end();
            }
        }
    }

    fn end(&mut self) {
        self.is_over = true;
        self.lines.finish(&mut self.pending);
    }
}

/// Data of an event.
#[derive(Debug, Serialize)]
struct Line<'a> {
    line: &'a str,
}

/// How bytes become what is sent.
#[derive(Debug, Default)]
struct Lines {
    is_events: bool,
    stdout: Begun,
    stderr: Begun,
}

/// A line whose end is yet to come.
#[derive(Debug, Default)]
struct Begun {
    pieces: Utf8Pieces,
    text: String,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], stream: &'static str, out: &mut VecDeque<Bytes>) {
        let begun = match stream {
            "stdout" => &mut self.stdout,
            _ => &mut self.stderr,
        };
        let text = begun.pieces.push(bytes);
        if !self.is_events {
            out.push_back(text.into());
            return;
        }
        for character in text.chars() {
            let is_end = character == '\n';
            if !is_end {
                begun.text.push(character);
            }
            if is_end || begun.text.len() >= LINE_CHARACTERS_MAX {
                out.push_back(sse::event(stream, &Line { line: &begun.text }));
                begun.text.clear();
            }
        }
    }

    fn finish(&mut self, out: &mut VecDeque<Bytes>) {
        for (begun, stream) in [(&mut self.stdout, "stdout"), (&mut self.stderr, "stderr")] {
            begun.text.extend(begun.pieces.finish());
            if begun.text.is_empty() {
                continue;
            }
            if self.is_events {
                out.push_back(sse::event(stream, &Line { line: &begun.text }));
            } else {
                out.push_back(std::mem::take(&mut begun.text).into());
            }
        }
    }
}
