//! Execs as control and node speak of them. JSON, additive only.

use std::collections::BTreeMap;

use dayfly_types::ExecId;
use dayfly_types::limits::EXEC_LOG_BYTES_DEFAULT;
use serde::{Deserialize, Serialize};

/// A process to run in a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRequest {
    pub id: ExecId,
    pub command: ExecCommand,
    #[serde(default)]
    pub cwd: Option<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub user: Option<String>,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Given to the process at once, then its standard input ends. Base 64 on the wire, because
    /// a JSON list of numbers is four times as long as its bytes.
    #[serde(default, with = "base64_bytes")]
    pub stdin: Option<Vec<u8>>,
    /// Leaves standard input open for [`NodeApi::write_stdin`](crate::NodeApi::write_stdin).
    #[serde(default)]
    pub keeps_stdin_open: bool,
    #[serde(default)]
    pub terminal: Option<TerminalSize>,
    #[serde(default)]
    pub log: LogRule,
    #[serde(default)]
    pub limits: ExecLimits,
}

impl ExecRequest {
    /// A command with everything else as the guest defaults it.
    #[must_use]
    pub fn new(id: ExecId, command: ExecCommand) -> Self {
        Self {
            id,
            command,
            cwd: None,
            env: BTreeMap::new(),
            user: None,
            timeout_ms: None,
            stdin: None,
            keeps_stdin_open: false,
            terminal: None,
            log: LogRule::default(),
            limits: ExecLimits::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    pub columns: u16,
    pub rows: u16,
}

/// How much of each stream the guest keeps, and what happens to more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRule {
    pub bytes_max: u64,
    pub when_full: WhenFull,
}

impl Default for LogRule {
    fn default() -> Self {
        Self {
            bytes_max: EXEC_LOG_BYTES_DEFAULT,
            when_full: WhenFull::DropOldest,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    DropOldest,
    Block,
}

/// What one exec may use, with all its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ExecLimits {
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    #[serde(default)]
    pub cpu_ms: Option<u64>,
    #[serde(default)]
    pub processes_max: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecCommand {
    /// One program and its arguments.
    Argv(Vec<String>),
    /// A text for the guest's shell.
    Shell(String),
}

/// What comes out of an exec, in order. Exactly one `Exited` ends it, unless the guest is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecEvent {
    Stdout(bytes::Bytes),
    Stderr(bytes::Bytes),
    /// The guest no longer has the bytes that come next in the stream.
    Gap(OutputGap),
    Exited(ExecExit),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputGap {
    pub stream: OutputStream,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// A reader for an exec that was started before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachExec {
    pub exec: ExecId,
    /// Where to begin; without it the stream is not read.
    pub stdout_offset: Option<u64>,
    pub stderr_offset: Option<u64>,
}

/// What a guest says of one exec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecReport {
    pub id: ExecId,
    /// The beginning of the command, for people.
    pub title: String,
    pub user: String,
    pub pid: u32,
    pub started_unix_ms: i64,
    /// `None` while it runs.
    pub exit: Option<ExecExit>,
    pub duration_ms: u64,
    pub is_terminal: bool,
    pub takes_stdin: bool,
    /// Bytes of input that were taken so far.
    pub stdin_bytes: u64,
    pub stdout: LogExtent,
    pub stderr: LogExtent,
}

/// The part of a stream that can still be read: from `start` up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LogExtent {
    pub start: u64,
    pub end: u64,
}

/// Input for an exec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StdinWrite {
    pub exec: ExecId,
    /// Where the first byte is in the input as a whole; what was taken already is left out.
    /// Without it the bytes are added.
    #[serde(default)]
    pub offset: Option<u64>,
    /// Nothing follows these bytes.
    #[serde(default)]
    pub is_last: bool,
}

/// Answer to a write of input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StdinWritten {
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignalExec {
    pub(crate) signal: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecExit {
    /// 0 to 255; 128 + n for signal n.
    pub exit_code: i32,
    pub signal: Option<i32>,
    pub reason: ExitReason,
    pub duration_ms: u64,
    /// Limits of its own that it ran into.
    #[serde(default)]
    pub limits_hit: Vec<LimitKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    Memory,
    Cpu,
    Processes,
}

impl LimitKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Processes => "processes",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    Exited,
    Signaled,
    TimedOut,
    OutOfMemory,
    Killed,
    LimitExceeded,
}

impl ExitReason {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Signaled => "signaled",
            Self::TimedOut => "timed_out",
            Self::OutOfMemory => "out_of_memory",
            Self::Killed => "killed",
            Self::LimitExceeded => "limit_exceeded",
        }
    }
}

mod base64_bytes {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        bytes
            .as_ref()
            .map(|bytes| STANDARD.encode(bytes))
            .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| STANDARD.decode(text).map_err(serde::de::Error::custom))
            .transpose()
    }
}
