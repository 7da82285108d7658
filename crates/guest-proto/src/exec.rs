//! Execs as the two ends describe them.

use std::collections::BTreeMap;

use dayfly_types::ExecId;
use serde::{Deserialize, Serialize};

use crate::frame::ChannelId;

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartExec {
    pub channel: ChannelId,
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
    /// The stdin stream of the channel.
    Piped,
}

/// How an exec ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecExit {
    /// Always a number: 128 plus the signal for a process that died by one.
    pub code: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    pub reason: ExitReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExitReason {
    Exited,
    Signaled,
    TimedOut,
    OutOfMemory,
    Killed,
    /// A word that this side does not know yet.
    #[serde(other)]
    Unknown,
}
