//! Running commands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};

use crate::environment;

use crate::hint::Advice;

/// What to run: a text for the shell, or a program with its arguments. No text may hold a NUL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "cmd must be a string or a list of strings")]
pub enum Command {
    Shell(String),
    Argv(Vec<String>),
}

/// Body of `POST /v1/sandboxes/{id}/exec` and `.../exec/stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecRequest {
    #[schema(schema_with = command_schema)]
    pub cmd: Command,
    /// Default `/workspace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^/[^\\u0000]*$", max_length = 4096)]
    pub cwd: Option<String>,
    /// Over those of the sandbox. Names hold no `=`; neither names nor values hold a NUL.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "environment::variables"
    )]
    #[schema(schema_with = environment::command_schema)]
    pub env: Option<BTreeMap<String, String>>,
    /// Default `agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$")]
    pub user: Option<String>,
    /// Given to the process as its whole standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// After this many seconds the process is killed and the response is `timeout`. May be a
    /// fraction. Default: no limit but the sandbox's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.001, maximum = 86_400)]
    pub timeout_seconds: Option<f64>,
    /// Names the exec, so that the request may be repeated and its output read again: the same id
    /// with the same command never starts a second process. Made up when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    pub exec_id: Option<String>,
    /// Returns at once, with the process as it is; `processes/{exec_id}` follows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
    /// Leaves standard input open: more comes through `processes/{exec_id}/stdin` or a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin_open: Option<bool>,
    /// Runs the command in a terminal of this size. All output is stdout then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// What the guest keeps of each stream. Default 64 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 65_536, maximum = 4_294_967_296_u64)]
    pub log_max_bytes: Option<u64>,
    /// What happens to more than that: `drop_oldest` (default; readers learn of the gap), or
    /// `block` (the process waits for a reader).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(drop_oldest|block)$")]
    pub log_when_full: Option<String>,
    /// Memory of the command and all its children. Over it they are killed, with the reason
    /// `limit_exceeded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 4, maximum = 65_536)]
    pub memory_mb: Option<u64>,
    /// CPU time of the command and all its child processes, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.001, maximum = 86_400)]
    pub cpu_seconds: Option<f64>,
    /// Processes and threads of the command at once. More cannot be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 4096)]
    pub max_processes: Option<u64>,
    /// Shapes the output for a model: of a longer stream the head, the tail and the lines around
    /// errors are given, with a mark for what is left out. Counted for each stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 256, maximum = 8_388_608)]
    pub max_output_bytes: Option<u64>,
    /// Lists the files that changed while the command ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_changes: Option<bool>,
}

impl ExecRequest {
    /// A command with everything else as the server defaults it.
    #[must_use]
    pub const fn new(cmd: Command) -> Self {
        Self {
            cmd,
            cwd: None,
            env: None,
            user: None,
            stdin: None,
            timeout_seconds: None,
            exec_id: None,
            background: None,
            stdin_open: None,
            terminal: None,
            log_max_bytes: None,
            log_when_full: None,
            memory_mb: None,
            cpu_seconds: None,
            max_processes: None,
            max_output_bytes: None,
            report_changes: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    #[schema(minimum = 1, maximum = 1000)]
    pub columns: u16,
    #[schema(minimum = 1, maximum = 1000)]
    pub rows: u16,
}

/// Response of `POST /v1/sandboxes/{id}/exec`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecResult {
    /// Bytes that are not UTF-8 are replaced; `exec/stream` and files carry the rest.
    pub stdout: String,
    pub stderr: String,
    /// Always a number: 128 + n for signal n.
    pub exit_code: i32,
    pub duration_ms: u64,
    /// exited, signaled, out_of_memory, limit_exceeded or killed.
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// A stream was longer than what is given here; `processes/{exec_id}/output` has the rest.
    pub truncated: bool,
    pub exec_id: String,
    /// Limits of its own that the command ran into: memory, cpu, processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_hit: Vec<String>,
    /// How long the streams really were.
    #[serde(default)]
    pub stdout_bytes: u64,
    #[serde(default)]
    pub stderr_bytes: u64,
    /// What is left out of `stdout` and `stderr`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<Omission>,
    #[serde(flatten)]
    pub advice: Advice,
    /// With `report_changes`: what changed while the command ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_files: Option<Vec<String>>,
}

/// A part of a stream that a response leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Omission {
    /// stdout or stderr.
    pub stream: String,
    pub offset: u64,
    pub bytes: u64,
    /// False when the guest has dropped it.
    pub readable: bool,
}

/// One exec of a sandbox, as `processes` gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Process {
    pub exec_id: String,
    /// The beginning of the command.
    pub title: String,
    pub user: String,
    pub pid: u32,
    pub started_at: String,
    /// running or exited.
    pub state: String,
    /// Of an exited one. Always a number then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// exited, signaled, timed_out, out_of_memory, limit_exceeded or killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_hit: Vec<String>,
    pub duration_ms: u64,
    pub terminal: bool,
    pub takes_stdin: bool,
    /// Bytes of input that the guest has taken: where a client that was cut off goes on.
    pub stdin_bytes: u64,
    pub stdout: StreamExtent,
    pub stderr: StreamExtent,
}

/// The part of a stream that can be read: from `start` up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StreamExtent {
    pub start: u64,
    pub end: u64,
}

/// Response of `GET /v1/sandboxes/{id}/processes`, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessList {
    pub items: Vec<Process>,
}

/// Body of `POST /v1/sandboxes/{id}/processes/{exec_id}/signal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalRequest {
    /// A number, such as 15. Goes to the process group; 9 ends everything of the exec.
    #[schema(minimum = 1, maximum = 64)]
    pub signal: i32,
}

/// Response of `POST /v1/sandboxes/{id}/processes/{exec_id}/stdin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StdinTaken {
    /// Bytes of input that the guest has taken in total.
    pub stdin_bytes: u64,
}

/// A text message of an exec socket from the client. Binary messages are input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum SocketCall {
    /// The first message on `exec/socket`.
    Start(Box<ExecRequest>),
    Resize(TerminalSize),
    Signal {
        signal: i32,
    },
    CloseStdin,
}

/// A text message of an exec socket from the server. Binary messages are output: one byte for the
/// stream (1 stdout, 2 stderr), eight for the offset (big endian), then the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SocketEvent {
    /// The first message: the process as it is now.
    Attached(Box<Process>),
    /// The guest no longer has these bytes.
    Gap {
        stream: String,
        offset: u64,
        bytes: u64,
    },
    /// The last message of a process that ended.
    Exit(ExecExitEvent),
    /// The last message when there is no exit. `processes/{exec_id}` knows whether it goes on.
    Error { error: String, code: String },
}

/// What begins a binary message of an exec socket.
pub const SOCKET_HEADER_BYTES: usize = 9;
pub const SOCKET_STDOUT: u8 = 1;
pub const SOCKET_STDERR: u8 = 2;

/// One event of `POST /v1/sandboxes/{id}/exec/stream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecStreamEvent {
    /// `started`, `stdout`, `stderr`, `gap`, `exit`, `error` or `lost`. The last event is `exit`
    /// or `error`.
    #[schema(pattern = "^(started|stdout|stderr|gap|exit|error|lost)$")]
    pub event: String,
    /// A JSON object in pure ASCII: `{"exec_id": id}` with `started`, `{"chunk": text}` with
    /// output, `{"stream": name, "offset": number, "bytes": number}` with `gap`,
    /// `{"exit_code": number, ...}` with `exit`, `{"error": text, "code": word}` with `error`,
    /// `{}` with `lost`.
    pub data: String,
}

/// Data of the `stdout` and `stderr` events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecOutputEvent {
    pub chunk: String,
}

/// Data of the `exit` event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecExitEvent {
    pub exit_code: i32,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_hit: Vec<String>,
    /// Help for whoever reads that it failed: hosts that the network denied, or how much memory there
    /// is. Only for the request that started it.
    #[serde(flatten)]
    pub advice: Advice,
}

fn text_schema(pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
}

pub(crate) fn command_schema() -> Schema {
    let argv = ArrayBuilder::new()
        .prefix_items([Schema::from(text_schema("^[^\\u0000]+$"))])
        .items(text_schema("^[^\\u0000]*$"))
        .min_items(Some(1));
    OneOfBuilder::new()
        .item(text_schema("^[^\\u0000]+$"))
        .item(argv)
        .description(Some(
            "A text for the shell, or a program with its arguments.",
        ))
        .into()
}
