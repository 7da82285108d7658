//! The audit record of a command, or of code in a context: what was asked for, how it ended, and
//! sizes and digests of what went in and came out.

use std::borrow::Cow;
use std::sync::Arc;

use dayfly_node_api::{ExecEvents, NodeError};
use dayfly_types::ExecId;
use dayfly_types::exec::{ExecCommand, ExecEvent};
use dayfly_types::limits::{AUDIT_INPUT_BYTES_MAX, AUDIT_OUTPUT_BYTES_MAX};
use futures::StreamExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::code::context::BridgeLine;
use crate::code::run::RunPlan;
use crate::control::Control;
use crate::exec::spec::ExecPlan;
use crate::http::audit::PendingAudit;
use crate::http::auth::Caller;
use crate::metrics::{ExecCounter, ExecOutcome};

const BACKGROUND: &str = "background";

/// Watches a command or a run, and writes the entry when it is over: at its end, or when nobody
/// reads on.
pub(crate) struct Observer {
    notebook: Arc<PendingAudit>,
    keeps_output: bool,
    asked: Value,
    stdout: Seen,
    stderr: Seen,
    end: Option<Value>,
    status: u16,
    /// None for code in a context, which is no command, and for what was not started.
    execs: Option<ExecCounter>,
    outcome: ExecOutcome,
}

/// What passed of one stream.
#[derive(Debug, Default)]
struct Seen {
    bytes: u64,
    digest: Sha256,
    kept: Vec<u8>,
}

impl Observer {
    /// Takes over the entry of a request that is about to start a command.
    pub(crate) fn new(control: &Control, caller: &Caller, plan: &ExecPlan) -> Self {
        caller.notebook.take_over();
        let command = text_of(&plan.request.spec.command);
        let mut asked = json!({
            "exec_id": plan.request.spec.exec_id.as_str(),
            "cmd": head_of(command.as_bytes(), AUDIT_INPUT_BYTES_MAX),
            "cmd_bytes": command.len(),
        });
        if let Some(stdin) = &plan.request.input {
            asked["stdin"] = content(stdin);
        }
        if plan.is_background {
            asked[BACKGROUND] = true.into();
        }
        Self::of(caller, asked).counted(control)
    }

    /// For a second entry of a request, about the end of the command that it left in the background.
    pub(crate) fn of_ending(control: &Control, caller: &Caller, exec: &ExecId) -> Self {
        Self::of(caller, json!({"exec_id": exec.as_str()})).counted(control)
    }

    /// Takes over the entry of a request that is about to run code in a context. The code is noted
    /// in it already, see [`code_detail`].
    pub(crate) fn of_run(caller: &Caller, plan: &RunPlan) -> Self {
        let mut asked = caller.notebook.take_over();
        asked["run_id"] = plan.run.as_str().into();
        asked["context"] = plan.context.as_str().into();
        Self::of(caller, asked)
    }

    fn of(caller: &Caller, asked: Value) -> Self {
        Self {
            notebook: Arc::clone(&caller.notebook),
            keeps_output: caller.limits.keeps_output,
            asked,
            stdout: Seen::default(),
            stderr: Seen::default(),
            end: None,
            status: 200,
            execs: None,
            outcome: ExecOutcome::Unseen,
        }
    }

    fn counted(mut self, control: &Control) -> Self {
        self.execs = Some(control.metrics.execs());
        self
    }

    /// Looks at what a run says.
    pub(crate) fn see_line(&mut self, line: &BridgeLine) {
        match line {
            BridgeLine::Stdout { text, .. } => self.stdout.add(text.as_bytes(), self.keeps_output),
            BridgeLine::Stderr { text, .. } => self.stderr.add(text.as_bytes(), self.keeps_output),
            BridgeLine::End {
                status,
                duration_ms,
                ..
            } => {
                self.end = Some(json!({"status": status.as_str(), "duration_ms": duration_ms}));
            }
            BridgeLine::Restarted { .. }
            | BridgeLine::Result { .. }
            | BridgeLine::Error { .. }
            | BridgeLine::Dropped { .. }
            | BridgeLine::Created { .. }
            | BridgeLine::Contexts { .. }
            | BridgeLine::Done
            | BridgeLine::Refused { .. } => {}
        }
    }

    /// The node did not start it, or nobody knows.
    pub(crate) fn not_started(&mut self, error: &NodeError) {
        self.refused(error);
        self.execs = None;
    }

    /// Nobody knows how it ended.
    pub(crate) fn refused(&mut self, error: &NodeError) {
        self.outcome = error.into();
        self.status = error.code.http_status();
        self.end = Some(json!({"error": error.code.as_str()}));
    }

    /// The same events, watched.
    pub(crate) fn watch(self, events: ExecEvents) -> ExecEvents {
        futures::stream::unfold((self, events), |(mut observer, mut events)| async move {
            let event = events.next().await?;
            observer.see(&event);
            Some((event, (observer, events)))
        })
        .boxed()
    }

    /// Looks at what a command says.
    pub(crate) fn see(&mut self, event: &Result<ExecEvent, NodeError>) {
        match event {
            Ok(ExecEvent::Stdout(bytes)) => self.stdout.add(bytes, self.keeps_output),
            Ok(ExecEvent::Stderr(bytes)) => self.stderr.add(bytes, self.keeps_output),
            // What was gone before it was read is in no size and no digest.
            Ok(ExecEvent::Gap(_)) => {}
            Ok(ExecEvent::Exited(end)) => {
                self.outcome = (&end.exit).into();
                self.end = Some(json!({
                    "exit_code": end.exit.code,
                    "reason": end.exit.reason.as_str(),
                    "duration_ms": end.duration_ms,
                }));
            }
            Err(error) => self.refused(error),
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let mut detail = self.asked.take();
        let end = self.end.take();
        // One in the background has an entry of its own for its end, unless it did not even start.
        if end.is_some() || detail.get(BACKGROUND).is_none() {
            // Null: nobody stayed to see it.
            detail["end"] = end.unwrap_or_default();
            detail["stdout"] = self.stdout.tell(self.keeps_output);
            detail["stderr"] = self.stderr.tell(self.keeps_output);
            if let Some(execs) = &self.execs {
                execs.count(self.outcome);
            }
        }
        self.notebook.write(self.status, &detail);
    }
}

impl Seen {
    fn add(&mut self, bytes: &[u8], keeps: bool) {
        self.bytes += bytes.len() as u64;
        self.digest.update(bytes);
        if keeps {
            let room = AUDIT_OUTPUT_BYTES_MAX.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    fn tell(&self, keeps: bool) -> Value {
        let mut told = json!({
            "bytes": self.bytes,
            "sha256": hex::encode(self.digest.clone().finalize()),
        });
        if keeps {
            told["text"] = head_of(&self.kept, AUDIT_OUTPUT_BYTES_MAX).into();
        }
        told
    }
}

/// The record of code that runs in a context.
pub(crate) fn code_detail(code: &str) -> Value {
    json!({"code": head_of(code.as_bytes(), AUDIT_INPUT_BYTES_MAX), "input": content(code.as_bytes())})
}

/// The record of a socket by which somebody reads and types into a command.
pub(crate) fn attached_detail(exec: &str) -> Value {
    json!({"exec_id": exec, "attached": true})
}

fn content(bytes: &[u8]) -> Value {
    json!({
        "head": head_of(bytes, AUDIT_INPUT_BYTES_MAX),
        "bytes": bytes.len(),
        "sha256": hex::encode(Sha256::digest(bytes)),
    })
}

fn text_of(command: &ExecCommand) -> Cow<'_, str> {
    match command {
        ExecCommand::Shell(text) => Cow::Borrowed(text),
        // Plain texts always serialise.
        ExecCommand::Argv(words) => serde_json::to_string(words).unwrap_or_default().into(),
    }
}

/// The beginning of a text, without what is not UTF-8.
fn head_of(bytes: &[u8], limit: usize) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(limit)]).into_owned()
}
