//! Running commands.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use dayfly_api::{Advice, ExecRequest, ExecResult, ExecStreamEvent, Hint, Process};
use dayfly_node_api::{ChangesSince, ExecEvents, ListChanges, NodeCalls};
use dayfly_types::exec::ExecEnd;
use dayfly_types::{ExecId, SandboxId};
use http::StatusCode;

use crate::admission::limit::Permit;
use crate::control::Control;
use crate::exec::audit::Observer;
use crate::exec::background;
use crate::exec::collect::{Collected, ExecError, collect};
use crate::exec::follow::{Position, follow};
use crate::exec::hint::Awaited;
use crate::exec::process::{limits_hit, process};
use crate::exec::spec::ExecPlan;
use crate::exec::stream_http;
use crate::http::answer::ExecRefusals;
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::SandboxParameter;
use crate::sandbox::{environment, read};
use crate::time::now_ms;
use crate::trace;

/// Changed files that one answer lists.
const CHANGES_MAX: usize = 200;

/// A started command.
pub(crate) struct Started {
    pub(crate) exec: ExecId,
    pub(crate) events: ExecEvents,
    pub(crate) place: Permit,
}

/// Runs a command and returns when it has ended, or at once with `background`. Hanging up leaves
/// the command alone: `processes` has it.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/exec", operation_id = "exec", tag = "exec", params(SandboxParameter),
    request_body = ExecRequest,
    responses((status = 200, body = ExecResult), (status = 202, body = Process), ExecRefusals))]
pub(crate) async fn plain(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<ExecRequest>,
) -> Result<Response, ApiError> {
    let plan = ExecPlan::try_from(body)?;
    if plan.is_background {
        let place = control.limits.exec(&caller.project)?;
        let started = start(&control, &caller, &id, &plan, place).await?;
        drop(started.events);
        background::record_its_end(&control, &caller, id.clone(), started.exec.clone());
        let report = control.node.describe_exec(&id, &started.exec).await?;
        return Ok((StatusCode::ACCEPTED, Json(process(report))).into_response());
    }
    let result = run_to_the_end(&control, &caller, &id, &plan).await?;
    Ok(Json(result).into_response())
}

/// Starts a command and waits for its end.
pub(crate) async fn run_to_the_end(
    control: &Arc<Control>,
    caller: &Caller,
    id: &SandboxId,
    plan: &ExecPlan,
) -> Result<ExecResult, ApiError> {
    let awaited = awaited(control, caller, id);
    let place = control.limits.exec(&caller.project)?;
    let starting = start(control, caller, id, plan, place);
    let started = trace::stage("control.start", starting).await?;
    let output = control.limits.output_of(&caller.project);
    let collecting = collect(started.events, plan.limit, plan.shaped_bytes, &output);
    let collected = trace::stage("control.wait", collecting).await;
    let collected = match collected {
        Ok(collected) => collected,
        Err(error) => return Err(broken_off(control, caller, id, &started.exec, error).await),
    };
    drop(started.place);
    let changed_files = if plan.reports_changes {
        Some(changed_files(control, id, &started.exec).await?)
    } else {
        None
    };
    let hint = awaited.hint(&collected.end.exit).await;
    let result = present(collected, &started.exec, plan.shaped_bytes.is_some());
    Ok(ExecResult {
        changed_files,
        advice: hint.map_or(result.advice, Advice::from),
        ..result
    })
}

fn awaited(control: &Arc<Control>, caller: &Caller, id: &SandboxId) -> Awaited {
    Awaited {
        control: Arc::clone(control),
        project: caller.project.clone(),
        sandbox: id.clone(),
        began_ms: now_ms(),
    }
}

/// Runs a command and sends its output as it comes, as server-sent events: `started` with the
/// exec's id, `stdout` and `stderr` with `{"chunk": text}`, then one `exit` with
/// `{"exit_code": number}` or one `error` with `{"error": text}`. Hanging up leaves the command
/// alone: `processes/{exec_id}/attach` goes on.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/exec/stream", operation_id = "exec_stream", tag = "exec",
    params(SandboxParameter), request_body = ExecRequest,
    responses((status = 200, content_type = "text/event-stream", body = ExecStreamEvent), ExecRefusals))]
pub(crate) async fn stream(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<ExecRequest>,
) -> Result<Response, ApiError> {
    let plan = ExecPlan::try_from(body)?.in_the_foreground();
    let awaited = awaited(&control, &caller, &id);
    let place = control.limits.exec(&caller.project)?;
    let started = start(&control, &caller, &id, &plan, place).await?;
    let position = Position::start(id, started.exec);
    Ok(stream_http::response(
        started.events,
        &position,
        plan.limit,
        Some(awaited),
        started.place,
    ))
}

pub(crate) async fn start(
    control: &Control,
    caller: &Caller,
    id: &SandboxId,
    plan: &ExecPlan,
    place: Permit,
) -> Result<Started, ApiError> {
    let sandbox = environment::of(control, &caller.project, id).await?;
    let request = plan.in_sandbox(sandbox)?;
    let exec = request.spec.exec_id.clone();
    // From here on there may be a command, whatever becomes of this request.
    let mut observer = Observer::new(control, caller, plan);
    let started = control.node.exec(id, request).await;
    let events = started.inspect_err(|error| observer.not_started(error))?;
    let position = Position::start(id.clone(), exec.clone());
    let events = follow(Arc::clone(&control.node), position, events);
    let events = observer.watch(events);
    Ok(Started {
        exec,
        events,
        place,
    })
}

/// A command that took too long, or whose end is not known: with its sandbox, it and its output are
/// gone.
async fn broken_off(
    control: &Control,
    caller: &Caller,
    id: &SandboxId,
    exec: &ExecId,
    error: ExecError,
) -> ApiError {
    let gone = match &error {
        ExecError::Lost(_) => read::gone(control, &caller.project, id).await,
        ExecError::TimedOut { .. } | ExecError::TimedOutByNode => None,
    };
    match gone {
        Some(gone) => gone.into(),
        None => {
            let exec_id = exec.to_string();
            ApiError::from(error).hint(Hint::OutputKept { exec_id })
        }
    }
}

fn present(collected: Collected, exec: &ExecId, is_for_a_model: bool) -> ExecResult {
    let ExecEnd { exit, duration_ms } = collected.end;
    let stdout = collected.stdout.give("stdout");
    let stderr = collected.stderr.give("stderr");
    let is_silent = stdout.total == 0 && stderr.total == 0 && exit.code == 0;
    let mut omitted = stdout.omitted;
    omitted.extend(stderr.omitted);
    ExecResult {
        stdout: stdout.text,
        stderr: stderr.text,
        exit_code: exit.code,
        duration_ms,
        reason: exit.reason.as_str().to_owned(),
        signal: exit.signal,
        truncated: !omitted.is_empty(),
        exec_id: exec.to_string(),
        limits_hit: limits_hit(&exit),
        stdout_bytes: stdout.total,
        stderr_bytes: stderr.total,
        omitted,
        advice: (is_for_a_model && is_silent)
            .then_some(Hint::SilentCommand)
            .into(),
        changed_files: None,
    }
}

/// What changed in the guest since the command began.
async fn changed_files(
    control: &Control,
    id: &SandboxId,
    exec: &ExecId,
) -> Result<Vec<String>, ApiError> {
    let report = control.node.describe_exec(id, exec).await?;
    changed_since(control, id, report.started_unix_ms).await
}

/// The paths that changed since a moment of the guest's clock.
pub(crate) async fn changed_since(
    control: &Control,
    id: &SandboxId,
    unix_ms: i64,
) -> Result<Vec<String>, ApiError> {
    let nanos = u64::try_from(unix_ms)
        .unwrap_or(0)
        .saturating_mul(1_000_000);
    let request = ListChanges {
        path: "/".to_owned(),
        since: ChangesSince::UnixNanos(nanos),
        limit: CHANGES_MAX,
    };
    let changes = control.node.list_changes(id, request).await?;
    let files = changes.entries.into_iter().filter(|entry| !entry.is_dir);
    let mut paths: Vec<String> = files.map(|entry| entry.path).collect();
    paths.sort();
    if changes.truncated {
        paths.push("[and more]".to_owned());
    }
    Ok(paths)
}
