//! Stateful interpreters.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Json};
use bytes::Bytes;
use dayfly_api::{
    Advice, Context, ContextList, CreateContext, Hint, RunCode, RunResult, RunStreamEvent,
};
use dayfly_node_api::NodeError;
use dayfly_types::ids::ID_RANDOM_BYTES;
use dayfly_types::{ErrorCode, ExecId, SandboxId};
use http::StatusCode;
use serde::Serialize;
use serde_json::json;

use crate::admission::limit::Permit;
use crate::code::context::{BridgeCall, BridgeLine, RunStatus, ask_once, broken, present};
use crate::code::environment::equip;
use crate::code::parameter::ContextParameter;
use crate::code::run::{CollectedRun, Failure, Run, RunPlan, collect, shorten};
use crate::control::Control;
use crate::exec::audit::{Observer, code_detail};
use crate::exec::spec::{check_cwd, shaped_bytes};
use crate::http::answer::{ContextReadRefusals, ContextRefusals};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::SandboxParameter;
use crate::http::sse;
use crate::input::invalid::without_nul;
use crate::network::denials::denied_since;
use crate::sandbox::environment::{self, Environment};
use crate::sandbox::read::locate;
use crate::time::now_ms;

const LANGUAGE_DEFAULT: &str = "python";
const LANGUAGE_CHARACTERS_MAX: usize = 32;
const TIMEOUT_MS_MAX: u64 = 86_400_000;
const CLOCK_ERROR_MS: i64 = 100;
/// What a context says when it had to be started anew to end a run.
const RESTARTED: &str = "ContextRestarted";
/// What it says of a run that never had its turn.
const BUSY: &str = "ContextBusy";

/// Makes a context: an interpreter that keeps its state between runs.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/repl/sessions", operation_id = "create_context", tag = "contexts",
    params(SandboxParameter), request_body = CreateContext,
    responses((status = 201, body = Context), ContextRefusals))]
pub(crate) async fn create(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<CreateContext>,
) -> Result<(StatusCode, Json<Context>), ApiError> {
    let language = body.language.as_deref().unwrap_or(LANGUAGE_DEFAULT);
    let language = known_name(language)?;
    if let Some(cwd) = &body.cwd {
        check_cwd(cwd)?;
    }
    let context = given_or_new("id", body.id.as_deref(), "ctx")?;
    let environment = environment::of(&control, &caller.project, &id).await?;
    make(&control, &id, &context, &language, body.cwd.as_deref()).await?;
    equip(control.node.as_ref(), &id, &context, &environment).await?;
    let context = Context {
        id: context.to_string(),
        language,
        state: "idle".to_owned(),
        execution_count: 0,
        created_at: crate::time::rfc3339(now_ms()),
    };
    Ok((StatusCode::CREATED, Json(context)))
}

pub(crate) async fn make(
    control: &Control,
    id: &SandboxId,
    context: &ExecId,
    language: &str,
    cwd: Option<&str>,
) -> Result<(), ApiError> {
    let call = BridgeCall::Create {
        context,
        language,
        cwd,
    };
    let answer = ask_once(control.node.as_ref(), id, &call).await?;
    let BridgeLine::Created { .. } = answer else {
        return Err(broken().into());
    };
    Ok(())
}

/// Language names as people write them.
fn known_name(text: &str) -> Result<String, ApiError> {
    let text = text.to_ascii_lowercase();
    let is_plain = text.len() <= LANGUAGE_CHARACTERS_MAX
        && !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_plain {
        return Err(ApiError::invalid("language must be a word such as python"));
    }
    Ok(match text.as_str() {
        "py" | "python3" => "python".to_owned(),
        "js" | "node" => "javascript".to_owned(),
        "sh" | "shell" => "bash".to_owned(),
        _ => text,
    })
}

fn given_or_new(
    field: &'static str,
    given: Option<&str>,
    prefix: &str,
) -> Result<ExecId, ApiError> {
    if let Some(text) = given {
        return ExecId::parse(text)
            .map_err(|error| ApiError::invalid(format!("{field} does not fit: {error}")));
    }
    let mut random = [0; ID_RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|error| ApiError::internal(&error))?;
    let text = ExecId::from_random(random).to_string();
    let text = text.replacen("ex", prefix, 1);
    ExecId::parse(&text).map_err(|error| ApiError::internal(&error))
}

/// Lists the contexts of a sandbox.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/repl/sessions", operation_id = "list_contexts", tag = "contexts",
    params(SandboxParameter), responses((status = 200, body = ContextList), ContextReadRefusals))]
pub(crate) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
) -> Result<Json<ContextList>, ApiError> {
    locate(&control, &caller.project, &id).await?;
    let answer = ask_once(control.node.as_ref(), &id, &BridgeCall::List).await?;
    let BridgeLine::Contexts { contexts } = answer else {
        return Err(broken().into());
    };
    Ok(Json(ContextList {
        items: present(contexts),
    }))
}

/// Ends a context. Repeating it is fine.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/repl/sessions/{sid}", operation_id = "delete_context", tag = "contexts",
    params(ContextParameter), responses((status = 204), ContextReadRefusals))]
pub(crate) async fn delete(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    parameter: ContextParameter,
) -> Result<StatusCode, ApiError> {
    let call = |context| BridgeCall::Delete { context };
    change(&control, &caller, &parameter, call).await
}

/// Interrupts what runs in a context. Its state stays.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/repl/sessions/{sid}/interrupt", operation_id = "interrupt_context", tag = "contexts",
    params(ContextParameter), responses((status = 204), ContextReadRefusals))]
pub(crate) async fn interrupt(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    parameter: ContextParameter,
) -> Result<StatusCode, ApiError> {
    let call = |context| BridgeCall::Interrupt { context };
    change(&control, &caller, &parameter, call).await
}

/// Starts a context afresh: its variables are gone, and it has the environment variables that the
/// sandbox has now.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/repl/sessions/{sid}/restart", operation_id = "restart_context", tag = "contexts",
    params(ContextParameter), responses((status = 204), ContextReadRefusals))]
pub(crate) async fn restart(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    parameter: ContextParameter,
) -> Result<StatusCode, ApiError> {
    let environment = environment::of(&control, &caller.project, &parameter.id).await?;
    let call = |context| BridgeCall::Restart { context };
    let done = change(&control, &caller, &parameter, call).await?;
    let node = control.node.as_ref();
    equip(node, &parameter.id, &parameter.sid, &environment).await?;
    Ok(done)
}

async fn change<'a>(
    control: &Control,
    caller: &Caller,
    parameter: &'a ContextParameter,
    call: impl FnOnce(&'a ExecId) -> BridgeCall<'a>,
) -> Result<StatusCode, ApiError> {
    locate(control, &caller.project, &parameter.id).await?;
    let call = call(&parameter.sid);
    let answer = ask_once(control.node.as_ref(), &parameter.id, &call).await?;
    let BridgeLine::Done = answer else {
        return Err(broken().into());
    };
    Ok(StatusCode::NO_CONTENT)
}

/// Runs code in a context and returns when it has ended. Code that raises is a success with
/// `error` set.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/repl/sessions/{sid}/run", operation_id = "run_code", tag = "contexts",
    params(ContextParameter), request_body = RunCode,
    responses((status = 200, body = RunResult), ContextRefusals))]
pub(crate) async fn run(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ContextParameter {
        id: sandbox,
        sid: context,
    }: ContextParameter,
    JsonObject(body): JsonObject<RunCode>,
) -> Result<Json<RunResult>, ApiError> {
    let environment = environment::of(&control, &caller.project, &sandbox).await?;
    caller.notebook.adds_detail(code_detail(&body.code));
    let plan = plan(sandbox, context, environment, &body)?;
    run_to_the_end(&control, &caller, plan, &body)
        .await
        .map(Json)
}

pub(crate) async fn run_to_the_end(
    control: &Control,
    caller: &Caller,
    plan: RunPlan,
    body: &RunCode,
) -> Result<RunResult, ApiError> {
    let shaped = body.max_output_bytes.map(shaped_bytes).transpose()?;
    let _place = control.limits.exec(&caller.project)?;
    let (sandbox, run_id) = (plan.sandbox.clone(), plan.run.clone());
    // The guest's clock is the host's but for this much.
    let began = now_ms() - CLOCK_ERROR_MS;
    let observer = Observer::of_run(caller, &plan);
    let run = Run::start(Arc::clone(&control.node), plan, observer).await?;
    let kept_in = control.limits.output_of(&caller.project);
    let collected = collect(run, shaped, &kept_in).await?;
    if collected.status == RunStatus::TimedOut {
        return Err(timed_out(&collected));
    }
    let mut result = present_run(collected, &run_id, shaped.is_some());
    if result.advice.hint.is_none() && result.exit_code != 0 {
        result.advice = denied_since(control, &sandbox, began).await.into();
    }
    if body.report_changes == Some(true) {
        let changes = crate::exec::http::changed_since(control, &sandbox, began).await?;
        result.changed_files = Some(changes);
    }
    Ok(result)
}

fn timed_out(run: &CollectedRun) -> ApiError {
    let text = "timeout: the code ran longer than its limit and was interrupted";
    let error = ApiError::new(ErrorCode::Timeout, text);
    let said = run.failure.as_ref().map(|failure| failure.line.as_str());
    match said {
        Some(line) if line.starts_with(BUSY) => {
            let text = "timeout: the context was busy with other code for the whole limit; \
                        this code did not run";
            ApiError::new(ErrorCode::Timeout, text).hint(Hint::ContextBusy)
        }
        Some(line) if line.starts_with(RESTARTED) => error.hint(Hint::ContextRestarted),
        Some(_) | None => error,
    }
}

pub(crate) fn plan(
    sandbox: SandboxId,
    context: ExecId,
    environment: Environment,
    body: &RunCode,
) -> Result<RunPlan, ApiError> {
    without_nul("code", &body.code)?;
    if body
        .timeout_ms
        .is_some_and(|limit| !(1..=TIMEOUT_MS_MAX).contains(&limit))
    {
        let text = format!("timeout_ms must be between 1 and {TIMEOUT_MS_MAX}");
        return Err(ApiError::invalid(text));
    }
    Ok(RunPlan {
        sandbox,
        context,
        run: given_or_new("run_id", body.run_id.as_deref(), "run")?,
        code: body.code.clone(),
        timeout_ms: body.timeout_ms,
        environment,
    })
}

fn present_run(run: CollectedRun, run_id: &ExecId, is_for_a_model: bool) -> RunResult {
    let is_silent = run.stdout.total == 0
        && run.stderr.total == 0
        && run.results.is_empty()
        && run.status == RunStatus::Ok;
    let hint = match (run.is_state_lost, is_for_a_model && is_silent) {
        (true, _) => Some(Hint::StateLost),
        (false, true) => Some(Hint::SilentCode),
        (false, false) => None,
    };
    let exit = i32::from(run.status != RunStatus::Ok);
    let (error, traceback) = match run.failure {
        Some(Failure { line, traceback }) => (Some(line), traceback),
        None if run.status == RunStatus::Ok => (None, Vec::new()),
        None => (Some(run.status.as_str().to_owned()), Vec::new()),
    };
    let mut omitted = run.stdout.omitted;
    omitted.extend(run.stderr.omitted);
    RunResult {
        results: run.results,
        stdout: run.stdout.text,
        stderr: run.stderr.text,
        error,
        traceback,
        exit,
        exit_code: exit,
        status: run.status.as_str().to_owned(),
        duration_ms: run.duration_ms,
        execution_count: run.execution_count,
        run_id: Some(run_id.to_string()),
        exec_id: None,
        truncated: run.is_cut || !omitted.is_empty(),
        omitted,
        advice: hint.into(),
        changed_files: None,
        state_lost: run.is_state_lost,
    }
}

/// Runs code in a context and sends what it gives as it comes, as server-sent events.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/repl/sessions/{sid}/run/stream", operation_id = "run_code_stream", tag = "contexts",
    params(ContextParameter), request_body = RunCode,
    responses((status = 200, content_type = "text/event-stream", body = RunStreamEvent), ContextRefusals))]
pub(crate) async fn stream(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ContextParameter {
        id: sandbox,
        sid: context,
    }: ContextParameter,
    JsonObject(body): JsonObject<RunCode>,
) -> Result<Response, ApiError> {
    let environment = environment::of(&control, &caller.project, &sandbox).await?;
    caller.notebook.adds_detail(code_detail(&body.code));
    let plan = plan(sandbox.clone(), context, environment, &body)?;
    let place = control.limits.exec(&caller.project)?;
    let began_ms = now_ms() - CLOCK_ERROR_MS;
    let started = sse::event("started", &json!({"run_id": plan.run.as_str()}));
    let observer = Observer::of_run(&caller, &plan);
    let run = Run::start(Arc::clone(&control.node), plan, observer).await?;
    let state = Streaming {
        run: Some(run),
        control,
        sandbox,
        began_ms,
        pending: VecDeque::from([started]),
        _place: place,
    };
    Ok(sse::response(futures::stream::unfold(
        state,
        async |mut state| {
            let chunk = state.next().await?;
            Some((chunk, state))
        },
    )))
}

/// Data of the `end` event.
#[derive(Debug, Serialize)]
struct EndEvent {
    status: RunStatus,
    execution_count: Option<u64>,
    duration_ms: u64,
    #[serde(flatten)]
    advice: Advice,
}

/// What may help whoever reads that code failed.
async fn advice(
    control: &Control,
    sandbox: &SandboxId,
    began_ms: i64,
    status: RunStatus,
) -> Advice {
    if status == RunStatus::Ok {
        return Advice::default();
    }
    denied_since(control, sandbox, began_ms).await.into()
}

struct Streaming {
    run: Option<Run>,
    control: Arc<Control>,
    sandbox: SandboxId,
    began_ms: i64,
    pending: VecDeque<Bytes>,
    _place: Permit,
}

impl Streaming {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            let run = self.run.as_mut()?;
            match tokio::time::timeout(sse::COMMENT_INTERVAL, run.next()).await {
                Err(_) => return Some(Bytes::from_static(sse::COMMENT)),
                Ok(Ok(Some(BridgeLine::End {
                    status,
                    execution_count,
                    duration_ms,
                }))) => {
                    let advice = advice(&self.control, &self.sandbox, self.began_ms, status).await;
                    let data = EndEvent {
                        status,
                        execution_count,
                        duration_ms,
                        advice,
                    };
                    self.pending.push_back(sse::event("end", &data));
                }
                Ok(Ok(Some(line))) => self.take(line),
                Ok(Ok(None)) => self.run = None,
                Ok(Err(error)) => self.fail(error),
            }
        }
    }

    fn take(&mut self, line: BridgeLine) {
        let event = match line {
            BridgeLine::Restarted { mut reason, .. } => {
                shorten(&mut reason);
                sse::event("restarted", &json!({"reason": reason}))
            }
            BridgeLine::Stdout { text, .. } => {
                return sse::output_events("stdout", &text, &mut self.pending);
            }
            BridgeLine::Stderr { text, .. } => {
                return sse::output_events("stderr", &text, &mut self.pending);
            }
            BridgeLine::Result { data, .. } => sse::event("result", &json!({"data": data})),
            BridgeLine::Error {
                name,
                value,
                traceback,
                ..
            } => {
                let failure = Failure::new(&name, &value, traceback);
                let data = json!({"error": failure.line, "traceback": failure.traceback});
                sse::event("failure", &data)
            }
            BridgeLine::Dropped { bytes } => sse::event("dropped", &json!({"bytes": bytes})),
            BridgeLine::End { .. }
            | BridgeLine::Created { .. }
            | BridgeLine::Contexts { .. }
            | BridgeLine::Done
            | BridgeLine::Refused { .. } => return,
        };
        self.pending.push_back(event);
    }

    fn fail(&mut self, error: NodeError) {
        self.run = None;
        let data = sse::ErrorEvent::from(ApiError::from(error));
        self.pending.push_back(sse::event("error", &data));
    }
}
