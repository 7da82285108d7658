//! Execs: a command that runs in a guest, what it says and how it ends.
//!
//! These are the nouns of the guest's protocol, of the node's contract and of the host's code
//! alike. What the guest sends is frozen in `guest-proto/schema`: a change here is seen there.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::ExecId;
use crate::limits::EXEC_LOG_BYTES_DEFAULT;

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecSpec {
    pub exec_id: ExecId,
    pub command: ExecCommand,
    /// `/workspace` when absent, or the home of the user, or the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// `agent` when absent, or root in a guest without that user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub stdin: StdinMode,
    /// Runs it in a terminal of its own. Everything it prints is stdout then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<WindowSize>,
    #[serde(default)]
    pub log: LogRule,
    #[serde(default)]
    pub limits: ExecLimits,
    /// Part of the template and no work of a user: it keeps no guest awake and is not listed.
    #[serde(default)]
    pub is_service: bool,
}

impl ExecSpec {
    /// A command with everything else as the guest defaults it.
    #[must_use]
    pub fn new(exec_id: ExecId, command: ExecCommand) -> Self {
        Self {
            exec_id,
            command,
            cwd: None,
            env: BTreeMap::new(),
            user: None,
            timeout_ms: None,
            stdin: StdinMode::Null,
            terminal: None,
            log: LogRule::default(),
            limits: ExecLimits::default(),
            is_service: false,
        }
    }
}

/// How a command is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecCommand {
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
    /// A line for the shell.
    Shell(String),
}

/// Where an exec reads its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdinMode {
    /// `/dev/null`.
    #[default]
    Null,
    /// The stdin stream of any channel on it.
    Piped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    pub columns: u16,
    pub rows: u16,
}

/// How much of each stream is kept, and what happens to more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRule {
    pub bytes_max: u64,
    #[serde(default)]
    pub when_full: WhenFull,
}

impl Default for LogRule {
    fn default() -> Self {
        Self {
            bytes_max: EXEC_LOG_BYTES_DEFAULT,
            when_full: WhenFull::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// The newest bytes stay. Readers are told how many they missed.
    #[default]
    DropOldest,
    /// The process waits until a reader takes bytes.
    Block,
}

/// What one exec may use, with all its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ExecLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes_max: Option<u32>,
}

/// What comes out of an exec, in order. Exactly one `Exited` ends it, unless the guest is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecEvent {
    Stdout(Bytes),
    Stderr(Bytes),
    /// The guest no longer has the bytes that come next in the stream.
    Gap(OutputGap),
    Exited(ExecEnd),
}

/// How far the output of a command was read. `None` for a stream that is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOffsets {
    pub stdout: Option<u64>,
    pub stderr: Option<u64>,
}

impl ReadOffsets {
    /// Of a command that has just been started.
    pub const BEGINNING: Self = Self {
        stdout: Some(0),
        stderr: Some(0),
    };

    /// Notes what was read.
    pub fn advance(&mut self, event: &ExecEvent) {
        let (offset, bytes) = match event {
            ExecEvent::Stdout(bytes) => (&mut self.stdout, bytes.len() as u64),
            ExecEvent::Stderr(bytes) => (&mut self.stderr, bytes.len() as u64),
            ExecEvent::Gap(gap) => match gap.stream {
                OutputStream::Stdout => (&mut self.stdout, gap.bytes),
                OutputStream::Stderr => (&mut self.stderr, gap.bytes),
            },
            ExecEvent::Exited(_) => return,
        };
        if let Some(offset) = offset {
            *offset += bytes;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputGap {
    pub stream: OutputStream,
    pub bytes: u64,
}

/// The stream that output belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// How an exec ended, and after how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecEnd {
    pub exit: ExecExit,
    pub duration_ms: u64,
}

/// How an exec ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecExit {
    /// Always a number: 128 plus the signal for a process that died by one.
    pub code: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    pub reason: ExitReason,
    /// Limits of its own that it ran into. Only memory and cpu end it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_hit: Vec<LimitKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    Exited,
    Signaled,
    TimedOut,
    /// The guest had no memory left.
    OutOfMemory,
    Killed,
    /// It was ended because it went over a limit of its own.
    LimitExceeded,
    /// A word that this side does not know yet.
    #[serde(other)]
    Unknown,
}

impl ExitReason {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            // A newer guest may know more reasons; its exit code still holds.
            Self::Exited | Self::Unknown => "exited",
            Self::Signaled => "signaled",
            Self::TimedOut => "timed_out",
            Self::OutOfMemory => "out_of_memory",
            Self::Killed => "killed",
            Self::LimitExceeded => "limit_exceeded",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    Memory,
    Cpu,
    Processes,
    /// A word that this side does not know yet.
    #[serde(other)]
    Unknown,
}

impl LimitKind {
    /// The word for it, if this side knows one.
    #[must_use]
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Memory => Some("memory"),
            Self::Cpu => Some("cpu"),
            Self::Processes => Some("processes"),
            Self::Unknown => None,
        }
    }
}

/// What the guest knows of one exec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecInfo {
    pub exec_id: ExecId,
    /// Grows by one with each exec of the guest.
    pub number: u64,
    /// The beginning of the command, for people.
    pub title: String,
    pub user: String,
    pub pid: u32,
    pub started_unix_ms: i64,
    /// `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExecExit>,
    /// Until now, or until its end.
    pub duration_ms: u64,
    pub is_terminal: bool,
    /// Whether it takes input now.
    pub takes_stdin: bool,
    /// Bytes of input that were taken so far: who was cut off goes on from here.
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
