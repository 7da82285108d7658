//! Commands that follow a script.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use dayfly_node_api::{ExecEvents, NodeError};
use dayfly_types::ExecId;
use dayfly_types::exec::{
    ExecEnd, ExecEvent, ExecExit, ExecInfo, ExitReason, LogExtent, OutputGap,
};
use futures::StreamExt;

/// One thing that a scripted command does.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Stdout(Bytes),
    Stderr(Bytes),
    Pause(Duration),
    Exit(ExecEnd),
    Gap(OutputGap),
    Fail(NodeError),
    /// Fails for the first reader; whoever attaches reads on.
    FailOnce(NodeError),
    /// Ends the stream without an exit, as a lost guest does.
    Vanish,
    /// Writes this for ever.
    Endless(Bytes),
}

#[must_use]
pub(crate) fn exited(code: i32) -> ExecEnd {
    let exit = ExecExit {
        code,
        signal: None,
        reason: ExitReason::Exited,
        limits_hit: Vec::new(),
    };
    ExecEnd {
        exit,
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
    /// Questions for everything of a kind, whoever it is of.
    pub(crate) lists_of_all: AtomicU64,
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
                Step::Exit(end) => {
                    self.ended = true;
                    return Some(Ok(ExecEvent::Exited(end)));
                }
                Step::Gap(gap) => return Some(Ok(ExecEvent::Gap(gap))),
                Step::Fail(error) | Step::FailOnce(error) => {
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

/// The script without what a reader has already, and without streams that it does not read.
pub(crate) fn from_offsets(
    steps: Vec<Step>,
    stdout: Option<u64>,
    stderr: Option<u64>,
) -> Vec<Step> {
    let (mut stdout, mut stderr) = (stdout, stderr);
    let rest = |bytes: Bytes, left: &mut Option<u64>| {
        let skipped = left.as_mut()?;
        let cut = usize::try_from(*skipped)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        *skipped -= cut as u64;
        Some(bytes.slice(cut..)).filter(|bytes| !bytes.is_empty())
    };
    let kept = steps.into_iter().filter_map(|step| match step {
        Step::Stdout(bytes) => rest(bytes, &mut stdout).map(Step::Stdout),
        Step::Stderr(bytes) => rest(bytes, &mut stderr).map(Step::Stderr),
        Step::FailOnce(_) => None,
        other @ (Step::Pause(_)
        | Step::Exit(_)
        | Step::Gap(_)
        | Step::Fail(_)
        | Step::Vanish
        | Step::Endless(_)) => Some(other),
    });
    kept.collect()
}

/// What a guest would say of a command that followed its script to the end.
pub(crate) fn report(exec: &ExecId, steps: &[Step]) -> ExecInfo {
    let mut report = ExecInfo {
        exec_id: exec.clone(),
        number: 1,
        title: "scripted".to_owned(),
        user: "agent".to_owned(),
        pid: 42,
        started_unix_ms: 1_700_000_000_000,
        exit: None,
        duration_ms: 7,
        is_terminal: false,
        takes_stdin: true,
        stdin_bytes: 0,
        stdout: LogExtent::default(),
        stderr: LogExtent::default(),
    };
    for step in steps {
        match step {
            Step::Stdout(bytes) => report.stdout.end += bytes.len() as u64,
            Step::Stderr(bytes) => report.stderr.end += bytes.len() as u64,
            Step::Exit(end) => report.exit = Some(end.exit.clone()),
            Step::Gap(gap) => report.stdout.end += gap.bytes,
            Step::Pause(_)
            | Step::Fail(_)
            | Step::FailOnce(_)
            | Step::Vanish
            | Step::Endless(_) => {}
        }
    }
    report
}
