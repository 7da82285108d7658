//! Stateful interpreters in a guest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::exec::Omission;
use crate::hint::Advice;

/// Body of `POST /v1/sandboxes/{id}/repl/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateContext {
    /// python, bash or javascript, as the template has them. Default python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9]{1,32}$")]
    pub language: Option<String>,
    /// Names the context, so that the request may be repeated. Made up when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    pub id: Option<String>,
    /// Default `/workspace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^/[^\\u0000]*$", max_length = 4096)]
    pub cwd: Option<String>,
}

/// A stateful interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Context {
    pub id: String,
    pub language: String,
    /// idle, busy or dead.
    pub state: String,
    pub execution_count: u64,
    pub created_at: String,
}

/// Response of `GET /v1/sandboxes/{id}/repl/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextList {
    pub items: Vec<Context>,
}

/// Body of `POST /v1/sandboxes/{id}/repl/sessions/{sid}/run`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCode {
    #[schema(pattern = "^[^\\u0000]*$")]
    pub code: String,
    /// After this the code is interrupted and the response is `timeout`; the context stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub timeout_ms: Option<u64>,
    /// Names the run, so that the request may be repeated: it then gives the same results and the
    /// code does not run a second time. Made up when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    pub run_id: Option<String>,
    /// Shapes stdout and stderr for a model, each into so many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 256, maximum = 8_388_608)]
    pub max_output_bytes: Option<u64>,
    /// Lists the files that changed while the code ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_changes: Option<bool>,
}

/// Response of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunResult {
    /// What the code displayed, each as MIME types with their data: text as it is, JSON as its
    /// text, images in base 64.
    pub results: Vec<BTreeMap<String, String>>,
    pub stdout: String,
    pub stderr: String,
    /// The error that ended the code, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traceback: Vec<String>,
    /// 0, or 1 after an error. Twice, because clients differ in where they look.
    pub exit: i32,
    pub exit_code: i32,
    /// ok, error, interrupted or died.
    pub status: String,
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_id: Option<String>,
    /// Something was longer than what is given here.
    pub truncated: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<Omission>,
    #[serde(flatten)]
    pub advice: Advice,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_files: Option<Vec<String>>,
    /// The interpreter of the context had ended, and this run has a new one: variables and imports
    /// of before are gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub state_lost: bool,
}

/// One event of `POST /v1/sandboxes/{id}/repl/sessions/{sid}/run/stream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunStreamEvent {
    /// `started`, `restarted` (the interpreter had ended, and its state is lost), `stdout`, `stderr`,
    /// `result`, `failure`, `dropped`, `end` or `error`. The last is `end`, or `error` when the
    /// outcome is not known.
    #[schema(pattern = "^(started|restarted|stdout|stderr|result|failure|dropped|end|error)$")]
    pub event: String,
    /// A JSON object in pure ASCII.
    pub data: String,
}

/// Body of `POST /v1/sandboxes/{id}/run`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    #[schema(pattern = "^[^\\u0000]*$")]
    pub code: String,
    /// Default: what the template declares. `shell` runs the code as a command, `python` in a
    /// fresh interpreter, `python_context` in the context `default`, which keeps its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(shell|python|python_context)$")]
    pub mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.001, maximum = 86_400)]
    pub timeout_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 256, maximum = 8_388_608)]
    pub max_output_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_changes: Option<bool>,
}
