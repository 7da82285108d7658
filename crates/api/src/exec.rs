//! Running commands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{
    ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};

/// What to run: a text for the shell, or a program with its arguments. No text may hold a NUL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "cmd must be a string or a list of strings")]
pub enum Command {
    Shell(String),
    Argv(Vec<String>),
}

/// Body of `POST /v1/sandboxes/{id}/exec` and `.../exec/stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecRequest {
    #[schema(schema_with = command_schema)]
    pub cmd: Command,
    /// Default `/workspace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^/[^\\u0000]*$", max_length = 4096)]
    pub cwd: Option<String>,
    /// Names hold no `=`; neither names nor values hold a NUL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = env_schema)]
    pub env: Option<BTreeMap<String, String>>,
    /// Default `agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$")]
    pub user: Option<String>,
    /// Given to the process as its whole standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// After this many seconds the process is killed and the answer is `timeout`. May be a
    /// fraction. Default: no limit but the sandbox's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.001, maximum = 86_400)]
    pub timeout_seconds: Option<f64>,
}

/// Answer of `POST /v1/sandboxes/{id}/exec`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecResult {
    /// Bytes that are not UTF-8 are replaced; `exec/stream` and files carry the rest.
    pub stdout: String,
    pub stderr: String,
    /// Always a number: 128 + n for signal n.
    pub exit_code: i32,
    pub duration_ms: u64,
    /// exited, signaled, out_of_memory or killed.
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// A stream was longer than a plain exec keeps.
    pub truncated: bool,
}

/// One event of `POST /v1/sandboxes/{id}/exec/stream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecStreamEvent {
    /// `stdout`, `stderr`, `exit`, `error` or `lost`. The last event is `exit` or `error`.
    #[schema(pattern = "^(stdout|stderr|exit|error|lost)$")]
    pub event: String,
    /// A JSON object in pure ASCII: `{"chunk": text}` with output, `{"exit_code": number, ...}`
    /// with `exit`, `{"error": text, "code": word}` with `error`, `{}` with `lost`.
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
}

fn text_schema(pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
}

fn command_schema() -> Schema {
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

fn env_schema() -> Schema {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .property_names(Some(text_schema("^[^=\\u0000]+$")))
        .additional_properties(Some(text_schema("^[^\\u0000]*$")))
        .into()
}
