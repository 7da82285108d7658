//! Running a command in a sandbox that exists.

use std::io::Read as _;
use std::time::{Duration, Instant};

use dayfly_api::{Command, ExecExitEvent, ExecRequest};
use dayfly_client::{ClientError, ExecEvent, StreamLoss};
use dayfly_types::ErrorCode;
use dayfly_types::limits::JSON_BODY_BYTES_MAX;
use serde::Serialize;

use crate::args::ProcessArgs;
use crate::commands::Session;
use crate::exit_status;
use crate::failure::CommandError;
use crate::guest_output::{GuestOutput, KeptOutput};

/// The request that the flags ask for. Reads standard input, so do this before anything exists.
pub(crate) async fn request(
    args: &ProcessArgs,
    command: &[String],
) -> Result<ExecRequest, CommandError> {
    let stdin = match args.stdin {
        true => Some(read_stdin().await?),
        false => None,
    };
    Ok(ExecRequest {
        // A list keeps the quoting of the caller's shell.
        cmd: Command::Argv(command.to_vec()),
        cwd: args.cwd.clone(),
        env: (!args.env.is_empty()).then(|| args.env.iter().cloned().collect()),
        user: args.user.clone(),
        stdin,
        timeout_seconds: args.timeout.map(|limit| limit.as_secs_f64()),
    })
}

async fn read_stdin() -> Result<String, CommandError> {
    let reading = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        let limit = u64::try_from(JSON_BODY_BYTES_MAX).unwrap_or(u64::MAX);
        std::io::stdin()
            .take(limit + 1)
            .read_to_end(&mut bytes)
            .map(|_| bytes)
    });
    let bytes = reading
        .await
        .map_err(std::io::Error::other)
        .and_then(|outcome| outcome)
        .map_err(|source| CommandError::local("cannot read standard input", source))?;
    if bytes.len() > JSON_BODY_BYTES_MAX {
        return Err(CommandError::Refused {
            what: "standard input is longer than 1 MiB".to_owned(),
            hint: "copy it with `dayfly cp - ID:/path` and let the command read that file",
        });
    }
    String::from_utf8(bytes).map_err(|_| CommandError::Refused {
        what: "standard input is not text".to_owned(),
        hint: "copy it with `dayfly cp - ID:/path` and let the command read that file",
    })
}

/// How a command ended.
#[derive(Debug)]
pub(crate) enum Ending {
    Exit(ExecExitEvent),
    /// The server killed it at its time limit.
    TimedOut {
        error: CommandError,
        elapsed: Duration,
    },
}

/// Runs a command to its end.
pub(crate) async fn follow(
    session: &Session<'_>,
    id: &str,
    request: &ExecRequest,
    output: &mut GuestOutput,
) -> Result<Ending, CommandError> {
    let start = Instant::now();
    match stream(session, id, request, output).await {
        Err(error @ CommandError::TimedOut { .. }) => Ok(Ending::TimedOut {
            error,
            elapsed: start.elapsed(),
        }),
        outcome => outcome.map(Ending::Exit),
    }
}

async fn stream(
    session: &Session<'_>,
    id: &str,
    request: &ExecRequest,
    output: &mut GuestOutput,
) -> Result<ExecExitEvent, CommandError> {
    let failed = |source| CommandError::call(format!("cannot run the command in {id}"), source);
    let mut stream = session
        .client
        .exec_stream(id, request)
        .await
        .map_err(failed)?;
    // Only a command that has started can run past its limit; before, it is the server that did.
    let ended = |source: ClientError| match source.api_code() {
        Some(ErrorCode::Timeout) => CommandError::TimedOut { source },
        Some(_) | None => failed(source),
    };
    let mut last = None;
    // On to the end after the exit status, so that the connection serves the next call.
    while let Some(event) = stream.next().await.map_err(ended)? {
        match event {
            ExecEvent::Stdout(chunk) => output.stdout(&chunk).await?,
            ExecEvent::Stderr(chunk) => output.stderr(&chunk).await?,
            ExecEvent::Exit(exit) => last = Some(exit),
        }
    }
    let unknown = || ClientError::OutcomeUnknown {
        source: StreamLoss::Ended,
    };
    last.ok_or_else(|| failed(unknown()))
}

/// The one object of `run --json` and `exec --json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    sandbox_id: &'a str,
    stdout: &'a str,
    stderr: &'a str,
    /// 124 when `reason` is `timeout`.
    exit_code: i32,
    /// exited, signaled, out_of_memory, killed or timeout.
    reason: &'a str,
    signal: Option<i32>,
    duration_ms: u64,
    /// A stream was longer than what is kept.
    truncated: bool,
    /// Only with `run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox_deleted: Option<bool>,
}

/// Tells how a command ended, and gives the exit status for it.
pub(crate) fn conclude(
    session: &Session<'_>,
    id: &str,
    ending: Ending,
    output: &GuestOutput,
    sandbox_deleted: Option<bool>,
) -> Result<u8, CommandError> {
    match output {
        GuestOutput::Live => conclude_live(session, ending),
        GuestOutput::Kept(kept) => conclude_kept(session, id, &ending, kept, sandbox_deleted),
    }
}

fn conclude_live(session: &Session<'_>, ending: Ending) -> Result<u8, CommandError> {
    let exit = match ending {
        Ending::TimedOut { error, .. } => return Err(error),
        Ending::Exit(exit) => exit,
    };
    if exit.reason == "out_of_memory" {
        session
            .printer
            .note("the command was killed: the sandbox is out of memory");
    }
    Ok(exit_status::of_command(exit.exit_code))
}

fn conclude_kept(
    session: &Session<'_>,
    id: &str,
    ending: &Ending,
    kept: &KeptOutput,
    sandbox_deleted: Option<bool>,
) -> Result<u8, CommandError> {
    let mut report = Report {
        sandbox_id: id,
        stdout: &kept.stdout,
        stderr: &kept.stderr,
        exit_code: i32::from(exit_status::TIMED_OUT),
        reason: "timeout",
        signal: None,
        duration_ms: 0,
        truncated: kept.is_truncated,
        sandbox_deleted,
    };
    match ending {
        Ending::Exit(exit) => {
            report.exit_code = exit.exit_code;
            report.reason = &exit.reason;
            report.signal = exit.signal;
            report.duration_ms = exit.duration_ms;
        }
        Ending::TimedOut { elapsed, .. } => {
            report.duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        }
    }
    session.printer.json(&report)?;
    Ok(exit_status::of_command(report.exit_code))
}
