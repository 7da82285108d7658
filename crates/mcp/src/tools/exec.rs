//! Commands and code.

use dayfly_api::{
    Advice, Command, CreateContext, ExecRequest, ExecResult, RunCode, RunResult, whole_milliseconds,
};
use dayfly_client::ClientError;
use dayfly_types::limits::MCP_TEXT_BYTES_MAX;
use dayfly_types::{ErrorCode, ExecId};
use serde::Deserialize;

use super::{Site, unless_cancelled};
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::{resources, text};

const PYTHON: &str = "python";
/// The context of a sandbox's own, as the SDKs name it.
const CONTEXT: &str = "default";
pub(super) const TIMED_OUT: &str = "timed_out";
const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";

#[derive(Debug, Deserialize)]
pub(super) struct ShellArguments {
    command: String,
    working_directory: Option<String>,
    timeout_seconds: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct CodeArguments {
    code: String,
    language: String,
    timeout_seconds: f64,
}

pub(super) async fn run_shell(
    site: Site<'_>,
    arguments: ShellArguments,
) -> Result<ToolOutput, ToolError> {
    let mut request = ExecRequest::new(Command::Shell(arguments.command));
    request.cwd = arguments.working_directory.map(below_workspace);
    request.timeout_seconds = Some(arguments.timeout_seconds);
    request.report_changes = Some(true);
    let result = run(site, request).await?;
    let mut output = ToolOutput::text(text::exec(&result, MCP_TEXT_BYTES_MAX));
    link_to_the_rest(&mut output, site, &result);
    let is_error = result.exit_code != 0 || result.reason == TIMED_OUT;
    Ok(output.failed_if(is_error))
}

/// A working directory as a command takes it.
fn below_workspace(directory: String) -> String {
    if directory.starts_with('/') {
        return directory;
    }
    format!("/workspace/{directory}")
}

/// Runs a command to its end. One that took too long is a result, with what it printed until then;
/// one that nobody waits for any more is ended.
pub(super) async fn run(site: Site<'_>, mut request: ExecRequest) -> Result<ExecResult, ToolError> {
    let exec = fresh_id()?;
    request.exec_id = Some(exec.clone());
    let room = MCP_TEXT_BYTES_MAX as u64;
    request.max_output_bytes.get_or_insert(room);
    let running = site.client.exec(site.sandbox, &request);
    match unless_cancelled(site.cancel, running).await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) if error.api_code() == Some(ErrorCode::Timeout) => late(site, &exec).await,
        Ok(Err(error)) => Err(error.into()),
        Err(cancelled) => {
            // It may have ended by itself meanwhile, or never have begun.
            let _ = site.client.delete_process(site.sandbox, &exec).await;
            Err(cancelled)
        }
    }
}

fn fresh_id() -> Result<String, ToolError> {
    let mut random = [0; dayfly_types::ids::ID_RANDOM_BYTES];
    getrandom::fill(&mut random)
        .map_err(|error| ToolError::refused(format!("the system gives no randomness: {error}")))?;
    Ok(ExecId::from_random(random).to_string())
}

/// A command that ran past its limit, as far as it came.
async fn late(site: Site<'_>, exec: &str) -> Result<ExecResult, ToolError> {
    let process = site.client.get_process(site.sandbox, exec).await?;
    let stdout = printed(site, exec, STDOUT, process.stdout.end).await?;
    let stderr = printed(site, exec, STDERR, process.stderr.end).await?;
    Ok(ExecResult {
        stdout,
        stderr,
        exit_code: process.exit_code.unwrap_or_default(),
        duration_ms: process.duration_ms,
        reason: TIMED_OUT.to_owned(),
        signal: process.signal,
        truncated: false,
        exec_id: exec.to_owned(),
        limits_hit: Vec::new(),
        stdout_bytes: process.stdout.end,
        stderr_bytes: process.stderr.end,
        omitted: Vec::new(),
        advice: Advice::default(),
        changed_files: None,
    })
}

/// The beginning and the end of what a command printed.
async fn printed(
    site: Site<'_>,
    exec: &str,
    stream: &str,
    total: u64,
) -> Result<String, ToolError> {
    let room = MCP_TEXT_BYTES_MAX as u64;
    let client = site.client;
    let (first, head) = client
        .read_output(site.sandbox, exec, stream, 0, room)
        .await?;
    let mut text = String::from_utf8_lossy(&head).into_owned();
    let end = first + head.len() as u64;
    if end >= total {
        return Ok(text);
    }
    let from = end.max(total.saturating_sub(room / 2));
    let (from, tail) = client
        .read_output(site.sandbox, exec, stream, from, room / 2)
        .await?;
    if from > end {
        text.push_str(&format!("\n[... {} bytes left out ...]\n", from - end));
    }
    text.push_str(&String::from_utf8_lossy(&tail));
    Ok(text)
}

/// Where the whole output is, when the text has only a part.
fn link_to_the_rest(output: &mut ToolOutput, site: Site<'_>, result: &ExecResult) {
    for (stream, bytes) in [(STDOUT, result.stdout_bytes), (STDERR, result.stderr_bytes)] {
        let is_cut = result.omitted.iter().any(|part| part.stream == stream)
            || bytes > MCP_TEXT_BYTES_MAX as u64;
        if is_cut {
            output.add_link(resources::output_link(
                site.sandbox,
                &result.exec_id,
                stream,
                bytes,
            ));
        }
    }
}

pub(super) async fn run_code(
    site: Site<'_>,
    arguments: CodeArguments,
) -> Result<ToolOutput, ToolError> {
    let context = if arguments.language == PYTHON {
        CONTEXT.to_owned()
    } else {
        format!("{CONTEXT}-{}", arguments.language)
    };
    let wish = CreateContext {
        language: Some(arguments.language.clone()),
        id: Some(context.clone()),
        cwd: None,
    };
    // Repeating it is cheap, and finds the one that is there.
    let made = site.client.create_context(site.sandbox, &wish);
    unless_cancelled(site.cancel, made).await??;
    let request = RunCode {
        code: arguments.code,
        timeout_ms: Some(whole_milliseconds(arguments.timeout_seconds)),
        run_id: Some(fresh_id()?),
        max_output_bytes: Some(MCP_TEXT_BYTES_MAX as u64),
        report_changes: Some(true),
    };
    let running = site.client.run_code(site.sandbox, &context, &request);
    let result = match unless_cancelled(site.cancel, running).await {
        Ok(Ok(result)) => result,
        Ok(Err(error)) if error.api_code() == Some(ErrorCode::Timeout) => {
            late_code(site, &context, &request, &error).await?
        }
        Ok(Err(error)) => return Err(error.into()),
        Err(cancelled) => {
            // It may have ended by itself meanwhile.
            let _ = site.client.interrupt_context(site.sandbox, &context).await;
            return Err(cancelled);
        }
    };
    let mut output = ToolOutput::text(text::code(&result, MCP_TEXT_BYTES_MAX));
    add_images(&mut output, &result);
    Ok(output.failed_if(result.status != "ok"))
}

/// Code that ran past its limit, with what it printed until then. The context knows the run by its
/// id and does not run it again.
async fn late_code(
    site: Site<'_>,
    context: &str,
    request: &RunCode,
    error: &ClientError,
) -> Result<RunResult, ToolError> {
    let read = site
        .client
        .read_run(site.sandbox, context, request, MCP_TEXT_BYTES_MAX);
    let printed = unless_cancelled(site.cancel, read)
        .await?
        .unwrap_or_default();
    Ok(RunResult {
        results: Vec::new(),
        stdout: printed.stdout,
        stderr: printed.stderr,
        error: None,
        traceback: Vec::new(),
        exit: 1,
        exit_code: 1,
        status: TIMED_OUT.to_owned(),
        duration_ms: printed.duration_ms,
        execution_count: None,
        run_id: request.run_id.clone(),
        exec_id: None,
        truncated: false,
        omitted: Vec::new(),
        advice: more_than_a_timeout(error),
        changed_files: None,
        state_lost: false,
    })
}

/// What the server adds when the code never began, or when its state is lost.
fn more_than_a_timeout(error: &ClientError) -> Advice {
    let ClientError::Api(api) = error else {
        return Advice::default();
    };
    let hint = api.advice.hint.as_ref();
    Advice {
        hint: hint.map(|hint| format!("{}; {hint}", api.message)),
        ..Advice::default()
    }
}

fn add_images(output: &mut ToolOutput, result: &RunResult) {
    let mut left_out = 0_usize;
    for displayed in &result.results {
        for kind in text::IMAGES {
            let Some(data) = displayed.get(kind) else {
                continue;
            };
            if !output.add_image(data, kind) {
                left_out += 1;
            }
        }
    }
    if left_out > 0 {
        output.add_text(format!(
            "{left_out} of the images are left out: they are too large together, or no images; save \
             them as files or draw them smaller"
        ));
    }
}
