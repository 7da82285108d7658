//! Running a command: checking the request, and collecting what a plain exec answers.

use std::time::Duration;

use dayfly_api::{Command, ExecRequest as WireRequest};
use dayfly_node_api::{
    ExecCommand, ExecEvent, ExecEvents, ExecExit, ExecRequest, ExitReason, NodeError,
};
use dayfly_types::ids::ID_RANDOM_BYTES;
use dayfly_types::{ErrorCode, ExecId, limits};
use futures::StreamExt;

use super::Invalid;
use super::exec_output::Output;
use super::invalid::without_nul;
use super::path::PATH_CHARACTERS_MAX;
use crate::limit::Limits;

const TIMEOUT_SECONDS_MIN: f64 = 0.001;
const USER_CHARACTERS_MAX: usize = 32;
/// The node ends a command at its limit; this is how late its word may come.
pub(crate) const TIMEOUT_GRACE: Duration = Duration::from_secs(15);

/// A checked command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecPlan {
    pub request: ExecRequest,
    pub limit: Option<Duration>,
}

/// Why a command has no exit code.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    #[error("timeout: the command ran longer than its limit of {} seconds", limit.as_secs_f64())]
    TimedOut { limit: Duration },
    /// The caller set no limit, the node has one.
    #[error("timeout: the command ran longer than the node lets it")]
    TimedOutByNode,
    /// Whether the command ended, and how, is not known.
    #[error("the command was lost before it ended")]
    Lost(#[source] NodeError),
}

/// All that a plain exec answers.
#[derive(Debug)]
pub struct Collected {
    pub stdout: Output,
    pub stderr: Output,
    pub exit: ExecExit,
}

impl TryFrom<WireRequest> for ExecPlan {
    type Error = Invalid;

    fn try_from(body: WireRequest) -> Result<Self, Invalid> {
        check_size(&body)?;
        let command = command(body.cmd)?;
        if let Some(cwd) = &body.cwd {
            check_cwd(cwd)?;
        }
        if let Some(user) = &body.user {
            check_user(user)?;
        }
        let env = body.env.unwrap_or_default();
        for (name, value) in &env {
            if name.is_empty() || name.contains('=') {
                return Err(Invalid::field("env", "names must not be empty or hold `=`"));
            }
            without_nul("env", name)?;
            without_nul("env", value)?;
        }
        let limit = body.timeout_seconds.map(limit).transpose()?;
        let request = ExecRequest {
            id: random_id()?,
            command,
            cwd: body.cwd,
            env,
            user: body.user,
            timeout_ms: limit
                .map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1)),
            stdin: body.stdin.map(String::into_bytes),
        };
        Ok(Self { request, limit })
    }
}

fn command(command: Command) -> Result<ExecCommand, Invalid> {
    match command {
        Command::Shell(text) => {
            if text.is_empty() {
                return Err(Invalid::field("cmd", "must not be empty"));
            }
            without_nul("cmd", &text)?;
            Ok(ExecCommand::Shell(text))
        }
        Command::Argv(words) => {
            if words.first().is_none_or(String::is_empty) {
                return Err(Invalid::field(
                    "cmd",
                    "must begin with the name of a program",
                ));
            }
            for word in &words {
                without_nul("cmd", word)?;
            }
            Ok(ExecCommand::Argv(words))
        }
    }
}

fn check_size(body: &WireRequest) -> Result<(), Invalid> {
    let command: usize = match &body.cmd {
        Command::Shell(text) => text.len(),
        Command::Argv(words) => words.iter().map(|word| word.len() + 1).sum(),
    };
    let env: usize = body
        .env
        .iter()
        .flatten()
        .map(|(name, value)| name.len() + value.len() + 2)
        .sum();
    if command.saturating_add(env) > limits::EXEC_SPEC_BYTES_MAX {
        let what = "the command with its environment";
        return Err(Invalid::TooLarge {
            what,
            limit: limits::EXEC_SPEC_BYTES_MAX,
        });
    }
    Ok(())
}

fn check_cwd(cwd: &str) -> Result<(), Invalid> {
    if !cwd.starts_with('/') || cwd.chars().count() > PATH_CHARACTERS_MAX {
        let rule = format!("must be an absolute path of at most {PATH_CHARACTERS_MAX} characters");
        return Err(Invalid::field("cwd", rule));
    }
    without_nul("cwd", cwd)
}

fn check_user(user: &str) -> Result<(), Invalid> {
    let first_ok = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let inner_ok = |byte: u8| first_ok(byte) || byte == b'.' || byte == b'-';
    let fits = user.len() <= USER_CHARACTERS_MAX && user.bytes().all(inner_ok);
    if fits && user.bytes().next().is_some_and(first_ok) {
        return Ok(());
    }
    Err(Invalid::field(
        "user",
        "must be a user name of at most 32 letters, digits, `_`, `.` or `-`",
    ))
}

fn limit(seconds: f64) -> Result<Duration, Invalid> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a day of seconds is exact in a float"
    )]
    let max = limits::EXEC_TIMEOUT_SECONDS_MAX as f64;
    if !(TIMEOUT_SECONDS_MIN..=max).contains(&seconds) {
        let rule = format!("must be between {TIMEOUT_SECONDS_MIN} and {max}");
        return Err(Invalid::field("timeout_seconds", rule));
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn random_id() -> Result<ExecId, Invalid> {
    let mut random = [0; ID_RANDOM_BYTES];
    getrandom::fill(&mut random)
        .map_err(|_| Invalid::field("exec", "has no id: the system has no randomness"))?;
    Ok(ExecId::from_random(random))
}

/// Reads a command's output to its end, keeping what a plain exec keeps. What is over the limit
/// is read and dropped, so that the process can end. Dropping the future ends the command.
///
/// # Errors
/// [`ExecError`].
pub async fn collect(
    events: ExecEvents,
    limit: Option<Duration>,
    limits: &Limits,
) -> Result<Collected, ExecError> {
    let work = collect_to_the_end(events, limit, limits);
    match limit {
        None => work.await,
        Some(limit) => tokio::time::timeout(limit.saturating_add(TIMEOUT_GRACE), work)
            .await
            .unwrap_or(Err(ExecError::TimedOut { limit })),
    }
}

async fn collect_to_the_end(
    mut events: ExecEvents,
    limit: Option<Duration>,
    limits: &Limits,
) -> Result<Collected, ExecError> {
    let (mut stdout, mut stderr) = (Output::default(), Output::default());
    while let Some(event) = events.next().await {
        match event.map_err(|error| failed(error, limit))? {
            ExecEvent::Stdout(bytes) => stdout.push(&bytes, limits),
            ExecEvent::Stderr(bytes) => stderr.push(&bytes, limits),
            ExecEvent::Exited(exit) if exit.reason == ExitReason::TimedOut => {
                return Err(timed_out(limit));
            }
            ExecEvent::Exited(exit) => {
                return Ok(Collected {
                    stdout,
                    stderr,
                    exit,
                });
            }
        }
    }
    Err(ExecError::Lost(lost()))
}

/// An error of a running command.
pub(crate) fn failed(error: NodeError, limit: Option<Duration>) -> ExecError {
    if error.code == ErrorCode::Timeout {
        return timed_out(limit);
    }
    ExecError::Lost(error)
}

pub(crate) fn timed_out(limit: Option<Duration>) -> ExecError {
    limit.map_or(ExecError::TimedOutByNode, |limit| ExecError::TimedOut {
        limit,
    })
}

/// The stream of a command ended without a word.
pub(crate) fn lost() -> NodeError {
    NodeError::new(
        ErrorCode::GuestUnavailable,
        "the guest was lost before the command ended",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<ExecPlan, Invalid> {
        serde_json::from_str::<WireRequest>(json)
            .unwrap()
            .try_into()
    }

    #[test]
    fn fractions_of_a_second_are_kept() {
        let plan = parse(r#"{"cmd":"true","timeout_seconds":0.25}"#).unwrap();
        assert_eq!(plan.request.timeout_ms, Some(250));
    }

    #[test]
    fn what_a_process_cannot_be_given_is_refused() {
        let bad = [
            r#"{"cmd":""}"#,
            r#"{"cmd":[]}"#,
            r#"{"cmd":[""]}"#,
            r#"{"cmd":"a\u0000b"}"#,
            r#"{"cmd":["a","\u0000"]}"#,
            r#"{"cmd":"a","cwd":"relative"}"#,
            r#"{"cmd":"a","env":{"A=B":"c"}}"#,
            r#"{"cmd":"a","env":{"":"c"}}"#,
            r#"{"cmd":"a","user":"-x"}"#,
            r#"{"cmd":"a","timeout_seconds":0}"#,
            r#"{"cmd":"a","timeout_seconds":86401}"#,
        ];
        for json in bad {
            assert!(matches!(parse(json), Err(Invalid::Field { .. })), "{json}");
        }
    }

    #[test]
    fn a_command_over_the_limit_is_too_large() {
        let json = format!(
            r#"{{"cmd":"{}"}}"#,
            "x".repeat(limits::EXEC_SPEC_BYTES_MAX + 1)
        );
        assert!(matches!(parse(&json), Err(Invalid::TooLarge { .. })));
    }
}
