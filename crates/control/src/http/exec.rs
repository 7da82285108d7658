//! Running commands.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Json};
use dayfly_api::{ExecRequest, ExecResult, ExecStreamEvent};
use dayfly_node_api::ExecEvents;
use dayfly_types::SandboxId;

use super::answer::ExecRefusals;
use super::auth::Caller;
use super::body::JsonObject;
use super::error::ApiError;
use super::exec_stream;
use super::parameter::{SandboxParameter, SandboxParameters};
use crate::app::exec::{ExecPlan, collect};
use crate::app::sandbox_read;
use crate::control::Control;
use crate::limit::Place;

/// A started command.
struct Started {
    events: ExecEvents,
    limit: Option<std::time::Duration>,
    place: Place,
}

/// Runs a command and answers when it has ended. Hanging up ends the command.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/exec", operation_id = "exec", tag = "exec", params(SandboxParameters),
    request_body = ExecRequest,
    responses((status = 200, body = ExecResult), ExecRefusals))]
pub(super) async fn plain(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter(id): SandboxParameter,
    JsonObject(body): JsonObject<ExecRequest>,
) -> Result<Json<ExecResult>, ApiError> {
    let started = start(&control, &caller, &id, body).await?;
    let collected = collect(started.events, started.limit, &control.limits).await?;
    drop(started.place);
    let truncated = collected.stdout.is_truncated() || collected.stderr.is_truncated();
    Ok(Json(ExecResult {
        stdout: collected.stdout.into_text(),
        stderr: collected.stderr.into_text(),
        exit_code: collected.exit.exit_code,
        duration_ms: collected.exit.duration_ms,
        reason: collected.exit.reason.as_str().to_owned(),
        signal: collected.exit.signal,
        truncated,
    }))
}

/// Runs a command and sends its output as it comes, as server-sent events: `stdout` and `stderr`
/// with `{"chunk": text}`, then one `exit` with `{"exit_code": number}` or one `error` with
/// `{"error": text}`. Hanging up ends the command.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/exec/stream", operation_id = "exec_stream", tag = "exec",
    params(SandboxParameters), request_body = ExecRequest,
    responses((status = 200, content_type = "text/event-stream", body = ExecStreamEvent), ExecRefusals))]
pub(super) async fn stream(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter(id): SandboxParameter,
    JsonObject(body): JsonObject<ExecRequest>,
) -> Result<Response, ApiError> {
    let started = start(&control, &caller, &id, body).await?;
    Ok(exec_stream::response(
        started.events,
        started.limit,
        started.place,
    ))
}

async fn start(
    control: &Control,
    caller: &Caller,
    id: &SandboxId,
    body: ExecRequest,
) -> Result<Started, ApiError> {
    let plan = ExecPlan::try_from(body)?;
    sandbox_read::locate(control, &caller.project, id).await?;
    let place = control.limits.exec()?;
    let events = control.node.exec(id, plan.request).await?;
    Ok(Started {
        events,
        limit: plan.limit,
        place,
    })
}
