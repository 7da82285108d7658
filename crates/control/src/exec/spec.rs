//! A command as a caller asks for it, checked.

use std::collections::BTreeMap;
use std::time::Duration;

use dayfly_api::{Command, ExecRequest as WireRequest};
use dayfly_node_api::EnsureExec;
use dayfly_types::exec::{ExecCommand, ExecLimits, ExecSpec, LogRule, WhenFull, WindowSize};
use dayfly_types::ids::ID_RANDOM_BYTES;
use dayfly_types::{ExecId, limits};

use crate::files::path::PATH_CHARACTERS_MAX;
use crate::input::Invalid;
use crate::input::invalid::without_nul;
use crate::input::quantity::between;
use crate::sandbox::environment::{self, Environment};

const TIMEOUT_SECONDS_MIN: f64 = 0.001;
const USER_CHARACTERS_MAX: usize = 32;
/// Less could not hold a head, a tail and their marks.
const SHAPED_BYTES_MIN: usize = 256;
const TERMINAL_SIDE_MAX: u16 = 1000;

/// A checked command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecPlan {
    pub request: EnsureExec,
    pub limit: Option<Duration>,
    /// Into how many bytes each stream is shaped.
    pub shaped_bytes: Option<usize>,
    pub is_background: bool,
    pub reports_changes: bool,
}

impl ExecPlan {
    /// What the node is asked for: the command with the environment variables of its sandbox, and
    /// over them its own. The only place that puts the two together.
    ///
    /// # Errors
    /// [`Invalid`] when they are too long together.
    pub(crate) fn in_sandbox(&self, sandbox: Environment) -> Result<EnsureExec, Invalid> {
        let mut request = self.request.clone();
        request.spec.env = sandbox.under(&request.spec.env);
        check_size(&request.spec.command, &request.spec.env)?;
        Ok(request)
    }

    /// The same, for somebody who stays to hear it, whatever the request says.
    #[must_use]
    pub fn in_the_foreground(self) -> Self {
        Self {
            is_background: false,
            ..self
        }
    }
}

impl TryFrom<WireRequest> for ExecPlan {
    type Error = Invalid;

    fn try_from(body: WireRequest) -> Result<Self, Invalid> {
        let command = command(body.cmd)?;
        if let Some(cwd) = &body.cwd {
            check_cwd(cwd)?;
        }
        if let Some(user) = &body.user {
            check_user(user)?;
        }
        let env = body.env.unwrap_or_default();
        environment::check(&env)?;
        let limit = body
            .timeout_seconds
            .map(|given| seconds("timeout_seconds", given))
            .transpose()?;
        let id = match body.exec_id.as_deref() {
            Some(text) => {
                ExecId::parse(text).map_err(|error| Invalid::field("exec_id", error.to_string()))?
            }
            None => random_id()?,
        };
        let limits = exec_limits(body.memory_mb, body.cpu_seconds, body.max_processes)?;
        let shaped_bytes = body.max_output_bytes.map(shaped_bytes).transpose()?;
        check_size(&command, &env)?;
        let spec = ExecSpec {
            cwd: body.cwd,
            env,
            user: body.user,
            timeout_ms: limit.map(milliseconds),
            terminal: body.terminal.map(terminal_size).transpose()?,
            log: log_rule(body.log_max_bytes, body.log_when_full.as_deref())?,
            limits,
            ..ExecSpec::new(id, command)
        };
        let request = EnsureExec {
            spec,
            input: body.stdin.map(String::into_bytes),
            keeps_stdin_open: body.stdin_open.unwrap_or(false),
        };
        Ok(Self {
            request,
            limit,
            shaped_bytes,
            is_background: body.background.unwrap_or(false),
            reports_changes: body.report_changes.unwrap_or(false),
        })
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

fn check_size(command: &ExecCommand, env: &BTreeMap<String, String>) -> Result<(), Invalid> {
    let command: usize = match command {
        ExecCommand::Shell(text) => text.len(),
        ExecCommand::Argv(words) => words.iter().map(|word| word.len() + 1).sum(),
    };
    if command.saturating_add(environment::bytes(env)) > limits::EXEC_SPEC_BYTES_MAX {
        let what = "the command with its environment";
        return Err(Invalid::TooLarge {
            what,
            limit: limits::EXEC_SPEC_BYTES_MAX,
        });
    }
    Ok(())
}

pub(crate) fn check_cwd(cwd: &str) -> Result<(), Invalid> {
    if !cwd.starts_with('/') || cwd.chars().count() > PATH_CHARACTERS_MAX {
        let rule = format!("must be an absolute path of at most {PATH_CHARACTERS_MAX} characters");
        return Err(Invalid::field("cwd", rule));
    }
    without_nul("cwd", cwd)
}

/// A name or a number, and behind a colon perhaps one of a group, as images write it.
pub(crate) fn check_user(user: &str) -> Result<(), Invalid> {
    let first_ok = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let inner_ok = |byte: u8| first_ok(byte) || byte == b'.' || byte == b'-';
    let is_name = |name: &str| {
        let fits = name.len() <= USER_CHARACTERS_MAX && name.bytes().all(inner_ok);
        fits && name.bytes().next().is_some_and(first_ok)
    };
    let (name, group) = user.split_once(':').unwrap_or((user, "0"));
    if is_name(name) && is_name(group) {
        return Ok(());
    }
    Err(Invalid::field(
        "user",
        "must be a user of at most 32 letters, digits, `_`, `.` or `-`, perhaps with `:` and a group",
    ))
}

fn seconds(field: &'static str, seconds: f64) -> Result<Duration, Invalid> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a day of seconds is exact in a float"
    )]
    let max = limits::EXEC_TIMEOUT_SECONDS_MAX as f64;
    if !(TIMEOUT_SECONDS_MIN..=max).contains(&seconds) {
        let rule = format!("must be between {TIMEOUT_SECONDS_MIN} and {max}");
        return Err(Invalid::field(field, rule));
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn random_id() -> Result<ExecId, Invalid> {
    let mut random = [0; ID_RANDOM_BYTES];
    getrandom::fill(&mut random)
        .map_err(|_| Invalid::field("exec", "has no id: the system has no randomness"))?;
    Ok(ExecId::from_random(random))
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .max(1)
}

fn exec_limits(
    memory_mb: Option<u64>,
    cpu_seconds: Option<f64>,
    max_processes: Option<u64>,
) -> Result<ExecLimits, Invalid> {
    let memory = limits::EXEC_MEMORY_MIB_MIN..=limits::MEMORY_MIB_MAX;
    if memory_mb.is_some_and(|given| !memory.contains(&given)) {
        return Err(between("memory_mb", memory.start(), memory.end()));
    }
    let processes = 1..=limits::EXEC_PROCESSES_MAX;
    if max_processes.is_some_and(|given| !processes.contains(&given)) {
        return Err(between("max_processes", processes.start(), processes.end()));
    }
    let cpu = cpu_seconds
        .map(|given| seconds("cpu_seconds", given))
        .transpose()?;
    Ok(ExecLimits {
        memory_bytes: memory_mb.map(|given| given << 20),
        cpu_ms: cpu.map(milliseconds),
        processes_max: max_processes.and_then(|given| u32::try_from(given).ok()),
    })
}

pub(crate) fn shaped_bytes(given: u64) -> Result<usize, Invalid> {
    let max = limits::EXEC_RESULT_BYTES_MAX;
    let bytes = usize::try_from(given).unwrap_or(usize::MAX);
    if !(SHAPED_BYTES_MIN..=max).contains(&bytes) {
        return Err(between("max_output_bytes", SHAPED_BYTES_MIN, max));
    }
    Ok(bytes)
}

pub(crate) fn terminal_size(given: dayfly_api::TerminalSize) -> Result<WindowSize, Invalid> {
    let allowed = 1..=TERMINAL_SIDE_MAX;
    if !allowed.contains(&given.columns) || !allowed.contains(&given.rows) {
        return Err(between("terminal", 1, TERMINAL_SIDE_MAX));
    }
    Ok(WindowSize {
        columns: given.columns,
        rows: given.rows,
    })
}

fn log_rule(bytes_max: Option<u64>, when_full: Option<&str>) -> Result<LogRule, Invalid> {
    let allowed = limits::EXEC_LOG_BYTES_MIN..=limits::EXEC_LOG_BYTES_MAX;
    let bytes_max = bytes_max.unwrap_or(limits::EXEC_LOG_BYTES_DEFAULT);
    if !allowed.contains(&bytes_max) {
        return Err(between("log_max_bytes", allowed.start(), allowed.end()));
    }
    let when_full = match when_full {
        None | Some("drop_oldest") => WhenFull::DropOldest,
        Some("block") => WhenFull::Block,
        Some(_) => {
            let rule = "must be drop_oldest or block";
            return Err(Invalid::field("log_when_full", rule));
        }
    };
    Ok(LogRule {
        bytes_max,
        when_full,
    })
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
        assert_eq!(plan.request.spec.timeout_ms, Some(250));
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
            r#"{"cmd":"a","user":"a:"}"#,
            r#"{"cmd":"a","user":":a"}"#,
            r#"{"cmd":"a","user":"a:b:c"}"#,
            r#"{"cmd":"a","timeout_seconds":0}"#,
            r#"{"cmd":"a","timeout_seconds":86401}"#,
        ];
        for json in bad {
            assert!(matches!(parse(json), Err(Invalid::Field { .. })), "{json}");
        }
    }

    #[test]
    fn users_are_names_and_numbers_perhaps_with_a_group() {
        for user in ["agent", "1000", "app:app", "1000:1000", "_x:a-b"] {
            let plan = parse(&format!(r#"{{"cmd":"a","user":"{user}"}}"#)).unwrap();
            assert_eq!(plan.request.spec.user.as_deref(), Some(user));
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
