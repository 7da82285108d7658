//! Running code as the template declares it.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{Command, ExecRequest, RunCode, RunRequest, RunResult, whole_milliseconds};
use dayfly_types::{ExecId, RunMeaning, SandboxId, TemplateName};

use crate::code::http as contexts;
use crate::control::Control;
use crate::exec::audit::code_detail;
use crate::exec::http as exec;
use crate::exec::spec::ExecPlan;
use crate::http::answer::ContextRefusals;
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::SandboxParameter;
use crate::sandbox::{environment, read};
use crate::template::read::{self as template, TemplateError};

/// The context of code that keeps its state without naming one.
const CONTEXT: &str = "default";

/// Runs code and returns when it has ended: as a shell command, in a fresh Python, or in a Python
/// context that keeps its state, as the template declares unless `mode` says so.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/run", operation_id = "run", tag = "contexts",
    params(SandboxParameter), request_body = RunRequest,
    responses((status = 200, body = RunResult), ContextRefusals))]
pub(crate) async fn run(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<RunRequest>,
) -> Result<Json<RunResult>, ApiError> {
    let sandbox = read::get(&control, &caller.project, &id).await?;
    let meaning = match body.mode.as_deref() {
        Some("shell") => RunMeaning::Shell,
        Some("python") => RunMeaning::Python,
        Some("python_context") => RunMeaning::PythonContext,
        Some(_) => {
            let text = "mode must be shell, python or python_context";
            return Err(ApiError::invalid(text));
        }
        None => declared(&control, &sandbox.template).await?,
    };
    let result = match meaning {
        RunMeaning::PythonContext => {
            caller.notebook.adds_detail(code_detail(&body.code));
            in_context(&control, &caller, id, body).await?
        }
        RunMeaning::Shell | RunMeaning::Python => {
            in_process(&control, &caller, &id, body, meaning).await?
        }
    };
    Ok(Json(result))
}

async fn declared(control: &Control, name: &str) -> Result<RunMeaning, ApiError> {
    let Ok(name) = TemplateName::parse(name) else {
        return Ok(RunMeaning::default());
    };
    match template::find(control.node.as_ref(), &name).await {
        Ok(report) => Ok(report.run),
        // A template of the project, or one that was given up since.
        Err(TemplateError::Unknown { .. }) => Ok(RunMeaning::default()),
        Err(error) => Err(error.into()),
    }
}

async fn in_context(
    control: &Control,
    caller: &Caller,
    id: SandboxId,
    body: RunRequest,
) -> Result<RunResult, ApiError> {
    let context = ExecId::parse(CONTEXT).map_err(|error| ApiError::internal(&error))?;
    // Repeating it is cheap, and finds the one that is there.
    contexts::make(control, &id, &context, "python", None).await?;
    let timeout_ms = body.timeout_seconds.map(whole_milliseconds);
    let request = RunCode {
        code: body.code,
        timeout_ms,
        run_id: None,
        max_output_bytes: body.max_output_bytes,
        report_changes: body.report_changes,
    };
    let environment = environment::of(control, &caller.project, &id).await?;
    let plan = contexts::plan(id, context, environment, &request)?;
    contexts::run_to_the_end(control, caller, plan, &request).await
}

async fn in_process(
    control: &Arc<Control>,
    caller: &Caller,
    id: &SandboxId,
    body: RunRequest,
    meaning: RunMeaning,
) -> Result<RunResult, ApiError> {
    let mut request = match meaning {
        // Through its input: an argument has a limit that a program may pass.
        RunMeaning::Python => {
            let words = ["python3", "-"].map(str::to_owned);
            ExecRequest {
                stdin: Some(body.code),
                ..ExecRequest::new(Command::Argv(words.to_vec()))
            }
        }
        RunMeaning::Shell | RunMeaning::PythonContext => {
            ExecRequest::new(Command::Shell(body.code))
        }
    };
    request.timeout_seconds = body.timeout_seconds;
    request.max_output_bytes = body.max_output_bytes;
    request.report_changes = body.report_changes;
    let plan = ExecPlan::try_from(request)?;
    let result = exec::run_to_the_end(control, caller, id, &plan).await?;
    let is_ok = result.exit_code == 0;
    Ok(RunResult {
        results: Vec::new(),
        stdout: result.stdout,
        stderr: result.stderr,
        error: (!is_ok).then(|| format!("exit status {}", result.exit_code)),
        traceback: Vec::new(),
        exit: result.exit_code,
        exit_code: result.exit_code,
        status: if is_ok { "ok" } else { "error" }.to_owned(),
        duration_ms: result.duration_ms,
        execution_count: None,
        run_id: None,
        exec_id: Some(result.exec_id),
        truncated: result.truncated,
        omitted: result.omitted,
        advice: result.advice,
        changed_files: result.changed_files,
        state_lost: false,
    })
}
