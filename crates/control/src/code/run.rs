//! A run of code in a context, followed to its end over a restart of its node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dayfly_node_api::{ContextLines, NodeApi, NodeError};
use dayfly_types::limits::EXEC_RESULT_BYTES_MAX;
use dayfly_types::{Backoff, ErrorCode, ExecId, SandboxId};
use futures::StreamExt;
use tokio::time::Instant;

use crate::admission::limit::OutputRoom;
use crate::code::context::{BridgeCall, BridgeLine, RunStatus, accept, ask, broken};
use crate::code::environment::{Interpreter, equip};
use crate::exec::audit::Observer;
use crate::exec::output::{Output, StreamText};
use crate::sandbox::environment::Environment;

/// How long a node may be away before its readers are told.
const PATIENCE: Duration = Duration::from_secs(30);
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(1);
/// How an interpreter ended that was started anew before the run.
const ENDED: &str = "it had ended before this run";
/// Things that one run may display.
const RESULTS_MAX: usize = 256;
/// Lines of a traceback, and of what a name or a value of an error may hold.
const TRACEBACK_LINES_MAX: usize = 200;
const ERROR_TEXT_BYTES_MAX: usize = 16 << 10;

/// What to run, and where.
#[derive(Debug, Clone)]
pub(crate) struct RunPlan {
    pub(crate) sandbox: SandboxId,
    pub(crate) context: ExecId,
    pub(crate) run: ExecId,
    pub(crate) code: String,
    pub(crate) timeout_ms: Option<u64>,
    /// Of the sandbox, for an interpreter in which no code has run.
    pub(crate) environment: Environment,
}

/// A run and how far it was read.
pub(crate) struct Run {
    node: Arc<dyn NodeApi>,
    plan: RunPlan,
    lines: ContextLines,
    seen: u64,
    is_over: bool,
    /// What nobody has heard of yet.
    is_started_anew: bool,
    observer: Observer,
}

impl Run {
    /// Begins it. From here on code may run, whatever becomes of the request.
    pub(crate) async fn start(
        node: Arc<dyn NodeApi>,
        plan: RunPlan,
        mut observer: Observer,
    ) -> Result<Self, NodeError> {
        let begun = begin(node.as_ref(), &plan).await;
        let (interpreter, lines) = begun.inspect_err(|error| observer.refused(error))?;
        Ok(Self {
            node,
            plan,
            lines,
            seen: 0,
            is_over: false,
            is_started_anew: interpreter == Interpreter::StartedAnew,
            observer,
        })
    }

    /// The next line; `None` after the end.
    pub(crate) async fn next(&mut self) -> Result<Option<BridgeLine>, NodeError> {
        let next = self.read().await;
        match &next {
            Ok(Some(line)) => self.observer.see_line(line),
            Ok(None) => {}
            Err(error) => self.observer.refused(error),
        }
        next
    }

    async fn read(&mut self) -> Result<Option<BridgeLine>, NodeError> {
        if self.is_over {
            return Ok(None);
        }
        if std::mem::take(&mut self.is_started_anew) {
            let (seq, reason) = (0, ENDED.to_owned());
            return Ok(Some(BridgeLine::Restarted { seq, reason }));
        }
        loop {
            let line = match self.lines.next().await.unwrap_or_else(|| Err(broken())) {
                Ok(line) => accept(&line)?,
                Err(error) if error.code == ErrorCode::NodeUnavailable => {
                    self.lines =
                        ask_again(self.node.as_ref(), &self.plan, self.seen, error).await?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.note(&line)?;
            return Ok(Some(line));
        }
    }

    fn note(&mut self, line: &BridgeLine) -> Result<(), NodeError> {
        match line {
            BridgeLine::Restarted { seq, .. }
            | BridgeLine::Stdout { seq, .. }
            | BridgeLine::Stderr { seq, .. }
            | BridgeLine::Result { seq, .. }
            | BridgeLine::Error { seq, .. } => self.seen = self.seen.max(*seq),
            BridgeLine::End { .. } => self.is_over = true,
            BridgeLine::Dropped { .. } => {}
            BridgeLine::Created { .. }
            | BridgeLine::Contexts { .. }
            | BridgeLine::Done
            | BridgeLine::Refused { .. } => return Err(broken()),
        }
        Ok(())
    }
}

async fn begin(
    node: &dyn NodeApi,
    plan: &RunPlan,
) -> Result<(Interpreter, ContextLines), NodeError> {
    let interpreter = equip(node, &plan.sandbox, &plan.context, &plan.environment).await?;
    let lines = ask(node, &plan.sandbox, &call(plan, 0)).await?;
    Ok((interpreter, lines))
}

/// The same run once more: the bridge knows it by its id and does not start it again.
async fn ask_again(
    node: &dyn NodeApi,
    plan: &RunPlan,
    seen: u64,
    first: NodeError,
) -> Result<ContextLines, NodeError> {
    let end = Instant::now() + PATIENCE;
    let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MAX);
    while Instant::now() + backoff.peek() < end {
        tokio::time::sleep(backoff.pause()).await;
        match ask(node, &plan.sandbox, &call(plan, seen)).await {
            Ok(lines) => return Ok(lines),
            Err(error) if error.code == ErrorCode::NodeUnavailable => {}
            Err(error) => return Err(error),
        }
    }
    Err(first)
}

fn call(plan: &RunPlan, after: u64) -> BridgeCall<'_> {
    BridgeCall::Run {
        context: &plan.context,
        run: &plan.run,
        code: &plan.code,
        timeout_ms: plan.timeout_ms,
        after,
    }
}

/// All that a run gave.
#[derive(Debug)]
pub(crate) struct CollectedRun {
    pub(crate) stdout: StreamText,
    pub(crate) stderr: StreamText,
    pub(crate) results: Vec<BTreeMap<String, String>>,
    pub(crate) failure: Option<Failure>,
    pub(crate) status: RunStatus,
    pub(crate) execution_count: Option<u64>,
    pub(crate) duration_ms: u64,
    pub(crate) is_cut: bool,
    /// It had to begin with a new interpreter.
    pub(crate) is_state_lost: bool,
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) line: String,
    pub(crate) traceback: Vec<String>,
}

/// Reads a run to its end.
pub(crate) async fn collect(
    mut run: Run,
    shaped_bytes: Option<usize>,
    kept_in: &OutputRoom,
) -> Result<CollectedRun, NodeError> {
    let (mut stdout, mut stderr) = (Output::new(shaped_bytes), Output::new(shaped_bytes));
    let mut results = Vec::new();
    let mut room = EXEC_RESULT_BYTES_MAX;
    let mut failure = None;
    let (mut is_cut, mut is_state_lost) = (false, false);
    while let Some(line) = run.next().await? {
        match line {
            BridgeLine::Stdout { text, .. } => stdout.push(text.as_bytes(), kept_in),
            BridgeLine::Stderr { text, .. } => stderr.push(text.as_bytes(), kept_in),
            BridgeLine::Result { data, .. } if results.len() < RESULTS_MAX => {
                results.push(fit(data, &mut room, &mut is_cut));
            }
            BridgeLine::Error {
                name,
                value,
                traceback,
                ..
            } => failure = Some(Failure::new(&name, &value, traceback)),
            BridgeLine::End {
                status,
                execution_count,
                duration_ms,
            } => {
                return Ok(CollectedRun {
                    stdout: stdout.give("stdout"),
                    stderr: stderr.give("stderr"),
                    results,
                    failure,
                    status,
                    execution_count,
                    duration_ms,
                    is_cut,
                    is_state_lost,
                });
            }
            BridgeLine::Restarted { .. } => is_state_lost = true,
            BridgeLine::Result { .. } | BridgeLine::Dropped { .. } => is_cut = true,
            // Refused when they arrive.
            BridgeLine::Created { .. }
            | BridgeLine::Contexts { .. }
            | BridgeLine::Done
            | BridgeLine::Refused { .. } => {}
        }
    }
    Err(broken())
}

/// Keeps of a result what there is room for; what there is none for is named.
fn fit(
    data: BTreeMap<String, String>,
    room: &mut usize,
    is_cut: &mut bool,
) -> BTreeMap<String, String> {
    let mut kept = BTreeMap::new();
    for (kind, text) in data {
        match room.checked_sub(text.len()) {
            Some(left) => {
                *room = left;
                kept.insert(kind, text);
            }
            None => {
                *is_cut = true;
                let note = format!("[{kind} of {} bytes left out]", text.len());
                kept.entry("text/plain".to_owned()).or_insert(note);
            }
        }
    }
    kept
}

impl Failure {
    pub(crate) fn new(name: &str, value: &str, mut traceback: Vec<String>) -> Self {
        let surplus = traceback.len().saturating_sub(TRACEBACK_LINES_MAX);
        traceback.drain(..surplus);
        let mut line = if value.is_empty() {
            name.to_owned()
        } else {
            format!("{name}: {value}")
        };
        shorten(&mut line);
        traceback.iter_mut().for_each(shorten);
        Self { line, traceback }
    }
}

/// Cuts what a guest says of an error to what is passed on.
pub(crate) fn shorten(text: &mut String) {
    text.truncate(text.floor_char_boundary(ERROR_TEXT_BYTES_MAX));
}
