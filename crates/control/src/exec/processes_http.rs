//! Execs that were started before: looking at them, reading them again, talking to them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use dayfly_api::{ExecStreamEvent, Process, ProcessList, SignalRequest, StdinTaken, TerminalSize};
use dayfly_node_api::{AttachExec, NodeCalls, StdinWrite};
use dayfly_types::exec::{ExecEvent, ExecInfo, LogExtent, ReadOffsets};
use futures::StreamExt;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};

use crate::control::Control;
use crate::exec::follow::{Position, follow};
use crate::exec::process::process;
use crate::exec::process_parameter::{
    AttachParameter, OUTPUT_BYTES_DEFAULT, OutputParameter, ProcessParameter, StdinParameter,
    WaitParameter,
};
use crate::exec::spec::terminal_size;
use crate::exec::{process_parameter, stream_http};
use crate::files::http::upload;
use crate::http::answer::{ExecRefusals, ProcessRefusals};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::Output;
use crate::http::parameter::SandboxParameter;
use crate::sandbox::read::locate;

/// Where the first byte of the answer is in its stream, and where the stream ends by now.
const OFFSET_HEADER: &str = "dayfly-offset";
const END_HEADER: &str = "dayfly-end";

/// Lists the execs of a sandbox, those that ended included, oldest first.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/processes", operation_id = "list_processes", tag = "exec",
    params(SandboxParameter), responses((status = 200, body = ProcessList), ProcessRefusals))]
pub(crate) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
) -> Result<Json<ProcessList>, ApiError> {
    locate(&control, &caller.project, &id).await?;
    let reports = control.node.list_execs(&id).await?;
    Ok(Json(ProcessList {
        items: reports.into_iter().map(process).collect(),
    }))
}

/// Describes an exec. With `wait_seconds`, returns when it has ended or the wait is over.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/processes/{exec_id}", operation_id = "get_process", tag = "exec",
    params(ProcessParameter, WaitParameter), responses((status = 200, body = Process), ProcessRefusals))]
pub(crate) async fn get(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ProcessParameter {
        id: sandbox,
        exec_id: exec,
    }: ProcessParameter,
    WaitParameter { wait_seconds }: WaitParameter,
) -> Result<Json<Process>, ApiError> {
    locate(&control, &caller.project, &sandbox).await?;
    let mut report = control.node.describe_exec(&sandbox, &exec).await?;
    let wait = wait_seconds.map(Duration::from_secs);
    if let Some(limit) = wait.filter(|_| report.exit.is_none()) {
        let place = control.limits.exec(&caller.project)?;
        let request = AttachExec {
            exec: exec.clone(),
            stdout_offset: None,
            stderr_offset: None,
        };
        let (_, events) = control.node.attach_exec(&sandbox, request).await?;
        wait_for_exit(events, limit).await;
        drop(place);
        report = control.node.describe_exec(&sandbox, &exec).await?;
    }
    Ok(Json(process(report)))
}

/// Without streams the only event is the exit.
async fn wait_for_exit(mut events: dayfly_node_api::ExecEvents, limit: Duration) {
    let end = async {
        while let Some(Ok(event)) = events.next().await {
            if matches!(event, ExecEvent::Exited(_)) {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(limit, end).await;
}

/// Ends an exec with its child processes and drops its output. Repeating it is fine.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/processes/{exec_id}", operation_id = "delete_process", tag = "exec",
    params(ProcessParameter), responses((status = 204), ProcessRefusals))]
pub(crate) async fn delete(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ProcessParameter {
        id: sandbox,
        exec_id: exec,
    }: ProcessParameter,
) -> Result<StatusCode, ApiError> {
    locate(&control, &caller.project, &sandbox).await?;
    control.node.forget_exec(&sandbox, &exec).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sends the output of an exec from offsets on, as `exec/stream` does.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/processes/{exec_id}/attach", operation_id = "attach_process", tag = "exec",
    params(ProcessParameter, AttachParameter),
    responses((status = 200, content_type = "text/event-stream", body = ExecStreamEvent), ProcessRefusals))]
pub(crate) async fn attach(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ProcessParameter {
        id: sandbox,
        exec_id: exec,
    }: ProcessParameter,
    from: AttachParameter,
) -> Result<Response, ApiError> {
    let (stdout, stderr) = from.offsets();
    locate(&control, &caller.project, &sandbox).await?;
    let place = control.limits.exec(&caller.project)?;
    let request = AttachExec {
        exec: exec.clone(),
        stdout_offset: Some(stdout),
        stderr_offset: Some(stderr),
    };
    let (_, events) = control.node.attach_exec(&sandbox, request).await?;
    let position = Position {
        sandbox,
        exec,
        offsets: ReadOffsets {
            stdout: Some(stdout),
            stderr: Some(stderr),
        },
    };
    let events = follow(Arc::clone(&control.node), position.clone(), events);
    Ok(stream_http::response(events, &position, None, None, place))
}

/// Gives a part of a stream as bytes, as far as it was written by now. The header
/// `Dayfly-Offset` says where it really begins: behind the asked offset when the guest has
/// dropped bytes. `Dayfly-End` says where the stream ends by now.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/processes/{exec_id}/output", operation_id = "read_process_output", tag = "exec",
    params(ProcessParameter, OutputParameter),
    responses((status = 200, content_type = "application/octet-stream", body = Vec<u8>), ProcessRefusals))]
pub(crate) async fn output(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ProcessParameter {
        id: sandbox,
        exec_id: exec,
    }: ProcessParameter,
    part: OutputParameter,
) -> Result<Response, ApiError> {
    let stream = part.stream;
    let offset = part.offset.unwrap_or(0);
    let limit = part.limit.unwrap_or(OUTPUT_BYTES_DEFAULT);
    locate(&control, &caller.project, &sandbox).await?;
    let place = control.limits.exec(&caller.project)?;
    let report = control.node.describe_exec(&sandbox, &exec).await?;
    let extent = extent_of(&report, stream);
    if offset > extent.end {
        let text = format!("the stream ends at {} by now", extent.end);
        return Err(ApiError::invalid(text));
    }
    let from = offset.max(extent.start);
    let until = extent.end.min(from.saturating_add(limit));
    let is_stdout = stream == Output::Stdout;
    let request = AttachExec {
        exec,
        stdout_offset: is_stdout.then_some(from),
        stderr_offset: (!is_stdout).then_some(from),
    };
    let headers = [
        (CONTENT_TYPE.as_str(), "application/octet-stream".to_owned()),
        (X_CONTENT_TYPE_OPTIONS.as_str(), "nosniff".to_owned()),
        (CONTENT_LENGTH.as_str(), (until - from).to_string()),
        (OFFSET_HEADER, from.to_string()),
        (END_HEADER, extent.end.to_string()),
    ];
    if until == from {
        return Ok((headers, Body::empty()).into_response());
    }
    let (_, events) = control.node.attach_exec(&sandbox, request).await?;
    let bytes = process_parameter::part_of(events, until - from, place);
    Ok((headers, Body::from_stream(bytes)).into_response())
}

fn extent_of(report: &ExecInfo, stream: Output) -> LogExtent {
    match stream {
        Output::Stdout => report.stdout,
        Output::Stderr => report.stderr,
    }
}

/// Sends input to an exec that was started with `stdin_open`. With `offset`, bytes that the guest
/// has taken already are left out, so the request may be repeated.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/processes/{exec_id}/stdin", operation_id = "write_process_stdin", tag = "exec",
    params(ProcessParameter, StdinParameter),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = StdinTaken), ExecRefusals))]
pub(crate) async fn stdin(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ProcessParameter {
        id: sandbox,
        exec_id: exec,
    }: ProcessParameter,
    StdinParameter {
        offset,
        close: is_last,
    }: StdinParameter,
    request: Request,
) -> Result<Json<StdinTaken>, ApiError> {
    locate(&control, &caller.project, &sandbox).await?;
    let _place = control.limits.transfer(&caller.project)?;
    let wanted = StdinWrite {
        exec,
        offset,
        is_last,
    };
    let content = upload(request.into_body());
    let stdin_bytes = control.node.write_stdin(&sandbox, wanted, content).await?;
    Ok(Json(StdinTaken { stdin_bytes }))
}

/// Sends a signal to the process group of an exec; 9 ends its child processes too.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/processes/{exec_id}/signal", operation_id = "signal_process", tag = "exec",
    params(ProcessParameter), request_body = SignalRequest,
    responses((status = 204), ExecRefusals))]
pub(crate) async fn signal(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ProcessParameter {
        id: sandbox,
        exec_id: exec,
    }: ProcessParameter,
    JsonObject(body): JsonObject<SignalRequest>,
) -> Result<StatusCode, ApiError> {
    if !(1..=64).contains(&body.signal) {
        return Err(ApiError::invalid("signal must be between 1 and 64"));
    }
    locate(&control, &caller.project, &sandbox).await?;
    control
        .node
        .signal_exec(&sandbox, &exec, body.signal)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tells the terminal of an exec how large it is.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/processes/{exec_id}/resize", operation_id = "resize_process", tag = "exec",
    params(ProcessParameter), request_body = TerminalSize,
    responses((status = 204), ExecRefusals))]
pub(crate) async fn resize(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ProcessParameter {
        id: sandbox,
        exec_id: exec,
    }: ProcessParameter,
    JsonObject(body): JsonObject<TerminalSize>,
) -> Result<StatusCode, ApiError> {
    let size = terminal_size(body)?;
    locate(&control, &caller.project, &sandbox).await?;
    control.node.resize_exec(&sandbox, &exec, size).await?;
    Ok(StatusCode::NO_CONTENT)
}
