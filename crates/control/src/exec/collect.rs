//! Running a command to its end, and collecting what a plain exec answers.

use std::time::Duration;

use dayfly_node_api::{ExecEvents, NodeError};
use dayfly_types::ErrorCode;
use dayfly_types::exec::{ExecEnd, ExecEvent, ExitReason, OutputStream};
use futures::StreamExt;

use crate::admission::limit::OutputRoom;
use crate::exec::output::Output;

/// The node ends a command at its limit; this is how late its word may come.
pub(crate) const TIMEOUT_GRACE: Duration = Duration::from_secs(15);

/// Why a command has no exit code.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    #[error("timeout: the command ran longer than its limit of {} seconds", limit.as_secs_f64())]
    TimedOut { limit: Duration },
    /// The caller set no limit, the node has one.
    #[error("timeout: the command ran longer than the node lets it")]
    TimedOutByNode,
    /// Whether the command ended, and how, is not known.
    #[error("the command was lost before it ended")]
    Lost(#[source] NodeError),
}

/// All that a plain exec answers.
#[derive(Debug)]
pub struct Collected {
    pub stdout: Output,
    pub stderr: Output,
    pub end: ExecEnd,
}

/// Reads a command's output to its end, keeping what a plain exec keeps. What is over the limit
/// is read and dropped. Dropping the future leaves the command alone.
///
/// # Errors
/// [`ExecError`].
pub async fn collect(
    events: ExecEvents,
    limit: Option<Duration>,
    shaped_bytes: Option<usize>,
    room: &OutputRoom,
) -> Result<Collected, ExecError> {
    let work = collect_to_the_end(events, limit, shaped_bytes, room);
    match limit {
        None => work.await,
        Some(limit) => tokio::time::timeout(limit.saturating_add(TIMEOUT_GRACE), work)
            .await
            .unwrap_or(Err(ExecError::TimedOut { limit })),
    }
}

async fn collect_to_the_end(
    mut events: ExecEvents,
    limit: Option<Duration>,
    shaped_bytes: Option<usize>,
    room: &OutputRoom,
) -> Result<Collected, ExecError> {
    let (mut stdout, mut stderr) = (Output::new(shaped_bytes), Output::new(shaped_bytes));
    while let Some(event) = events.next().await {
        match event.map_err(|error| failed(error, limit))? {
            ExecEvent::Stdout(bytes) => stdout.push(&bytes, room),
            ExecEvent::Stderr(bytes) => stderr.push(&bytes, room),
            ExecEvent::Gap(gap) => match gap.stream {
                OutputStream::Stdout => stdout.skip(gap.bytes),
                OutputStream::Stderr => stderr.skip(gap.bytes),
            },
            ExecEvent::Exited(end) if end.exit.reason == ExitReason::TimedOut => {
                return Err(timed_out(limit));
            }
            ExecEvent::Exited(end) => {
                return Ok(Collected {
                    stdout,
                    stderr,
                    end,
                });
            }
        }
    }
    Err(ExecError::Lost(lost()))
}

/// An error of a running command.
pub(crate) fn failed(error: NodeError, limit: Option<Duration>) -> ExecError {
    if error.code == ErrorCode::Timeout {
        return timed_out(limit);
    }
    ExecError::Lost(error)
}

pub(crate) fn timed_out(limit: Option<Duration>) -> ExecError {
    limit.map_or(ExecError::TimedOutByNode, |limit| ExecError::TimedOut {
        limit,
    })
}

/// The stream of a command ended without a word.
pub(crate) fn lost() -> NodeError {
    NodeError::new(
        ErrorCode::GuestUnavailable,
        "the guest was lost before the command ended",
    )
}
