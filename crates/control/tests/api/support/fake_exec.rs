//! Commands that follow a script.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use dayfly_node_api::{ExecEvent, ExecEvents, ExecExit, ExitReason, NodeError};
use futures::StreamExt;

/// One thing that a scripted command does.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Stdout(Bytes),
    Stderr(Bytes),
    Pause(Duration),
    Exit(ExecExit),
    Fail(NodeError),
    /// Ends the stream without an exit, as a lost guest does.
    Vanish,
    /// Writes this for ever.
    Endless(Bytes),
}

#[must_use]
pub(crate) fn exited(exit_code: i32) -> ExecExit {
    ExecExit {
        exit_code,
        signal: None,
        reason: ExitReason::Exited,
        duration_ms: 7,
    }
}

/// What a test counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Bytes that execs and reads handed out.
    pub(crate) bytes_out: AtomicU64,
    /// Bytes that writes took in.
    pub(crate) bytes_in: AtomicU64,
    /// Exec streams that were dropped before their end.
    pub(crate) dropped: AtomicU64,
}

/// Follows the script for as long as somebody reads.
pub(crate) fn run(steps: Vec<Step>, counters: Arc<Counters>) -> ExecEvents {
    let run = Run {
        steps: steps.into(),
        ended: false,
        counters,
    };
    futures::stream::unfold(run, async |mut run| {
        let event = run.next().await?;
        Some((event, run))
    })
    .boxed()
}

/// One running command.
struct Run {
    steps: VecDeque<Step>,
    ended: bool,
    counters: Arc<Counters>,
}

impl Run {
    async fn next(&mut self) -> Option<Result<ExecEvent, NodeError>> {
        loop {
            let Some(step) = self.steps.pop_front() else {
                self.ended = true;
                return None;
            };
            let count = |bytes: &Bytes| {
                self.counters
                    .bytes_out
                    .fetch_add(bytes.len() as u64, Ordering::SeqCst);
            };
            match step {
                Step::Stdout(bytes) => {
                    count(&bytes);
                    return Some(Ok(ExecEvent::Stdout(bytes)));
                }
                Step::Stderr(bytes) => {
                    count(&bytes);
                    return Some(Ok(ExecEvent::Stderr(bytes)));
                }
                Step::Endless(bytes) => {
                    count(&bytes);
                    self.steps.push_front(Step::Endless(bytes.clone()));
                    return Some(Ok(ExecEvent::Stdout(bytes)));
                }
                Step::Pause(length) => tokio::time::sleep(length).await,
                Step::Exit(exit) => {
                    self.ended = true;
                    return Some(Ok(ExecEvent::Exited(exit)));
                }
                Step::Fail(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
                Step::Vanish => self.steps.clear(),
            }
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.ended {
            self.counters.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}
