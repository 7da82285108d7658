//! Talking to the context bridge of a guest. Everything that it says is a guest's word: typed,
//! bounded, and never part of our own texts.

use std::collections::BTreeMap;
use std::time::Duration;

use dayfly_api::Context;
use dayfly_node_api::{ContextLines, NodeApi, NodeError};
use dayfly_types::{ErrorCode, ExecId, SandboxId, limits};
use futures::StreamExt;
use serde::{Deserialize, Serialize};

use crate::time::rfc3339;

/// One request to the bridge.
#[derive(Debug, Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum BridgeCall<'a> {
    Create {
        context: &'a ExecId,
        language: &'a str,
        cwd: Option<&'a str>,
    },
    List,
    Run {
        context: &'a ExecId,
        run: &'a ExecId,
        code: &'a str,
        timeout_ms: Option<u64>,
        /// Events up to this number were seen already.
        after: u64,
    },
    Interrupt {
        context: &'a ExecId,
    },
    Restart {
        context: &'a ExecId,
    },
    Delete {
        context: &'a ExecId,
    },
}

/// One line of the bridge.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum BridgeLine {
    Created {
        context: String,
        language: String,
    },
    Contexts {
        contexts: Vec<BridgeContext>,
    },
    /// The run found that its interpreter had ended, and has a new one.
    Restarted {
        #[serde(default)]
        seq: u64,
        reason: String,
    },
    Stdout {
        #[serde(default)]
        seq: u64,
        text: String,
    },
    Stderr {
        #[serde(default)]
        seq: u64,
        text: String,
    },
    Result {
        #[serde(default)]
        seq: u64,
        data: BTreeMap<String, String>,
    },
    Error {
        #[serde(default)]
        seq: u64,
        name: String,
        value: String,
        #[serde(default)]
        traceback: Vec<String>,
    },
    Dropped {
        #[serde(default)]
        bytes: u64,
    },
    End {
        status: RunStatus,
        #[serde(default)]
        execution_count: Option<u64>,
        #[serde(default)]
        duration_ms: u64,
    },
    Done,
    Refused {
        code: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct BridgeContext {
    pub(crate) context: String,
    pub(crate) language: String,
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) execution_count: u64,
    #[serde(default)]
    created_unix_ms: i64,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunStatus {
    Ok,
    Error,
    TimedOut,
    Interrupted,
    Died,
}

impl RunStatus {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::TimedOut => "timed_out",
            Self::Interrupted => "interrupted",
            Self::Died => "died",
        }
    }
}

/// Sends a call and gives the lines of its answer.
pub(crate) async fn ask(
    node: &dyn NodeApi,
    sandbox: &SandboxId,
    call: &BridgeCall<'_>,
) -> Result<ContextLines, NodeError> {
    // Plain data with string keys always serialises.
    let request = serde_json::to_string(call).unwrap_or_default();
    if request.len() > limits::CONTEXT_LINE_BYTES_MAX {
        return Err(NodeError::new(ErrorCode::TooLarge, "the code is too long"));
    }
    node.context(sandbox, request).await
}

/// Sends a call that has one line as its answer.
pub(crate) async fn ask_once(
    node: &dyn NodeApi,
    sandbox: &SandboxId,
    call: &BridgeCall<'_>,
) -> Result<BridgeLine, NodeError> {
    let answer = async {
        let mut lines = ask(node, sandbox, call).await?;
        let line = lines.next().await.unwrap_or_else(|| Err(broken()))?;
        accept(&line)
    };
    let limit = limits::CONTEXT_CALL_DEADLINE;
    within(limit, "the guest's contexts did not answer", answer).await
}

/// Waits for a guest, which may keep silent or go on talking for ever, no longer than it is given.
pub(crate) async fn within<T>(
    limit: Duration,
    missed: &str,
    answer: impl Future<Output = Result<T, NodeError>>,
) -> Result<T, NodeError> {
    let late = |_| {
        let text = format!("{missed} within {} seconds", limit.as_secs());
        Err(NodeError::new(ErrorCode::GuestUnavailable, text))
    };
    let answer = tokio::time::timeout(limit, answer).await;
    answer.unwrap_or_else(late)
}

/// Reads a line; a refusal becomes an error in our own words.
pub(crate) fn accept(line: &[u8]) -> Result<BridgeLine, NodeError> {
    let line: BridgeLine = serde_json::from_slice(line).map_err(|_| broken())?;
    if let BridgeLine::Refused { code } = &line {
        return Err(refused(code));
    }
    Ok(line)
}

fn refused(code: &str) -> NodeError {
    let (code, text) = match code {
        "not_found" => (ErrorCode::NotFound, "the sandbox has no such context"),
        "too_many" => (
            ErrorCode::TooMany,
            "the sandbox has as many contexts, or the context as many runs, as it may",
        ),
        "unsupported" => (
            ErrorCode::InvalidRequest,
            "this template has no context of that language; contexts speak python, bash and \
             javascript where the template has them",
        ),
        "busy" => (ErrorCode::WrongState, "the context is busy"),
        "invalid" => (
            ErrorCode::InvalidRequest,
            "the context cannot do that with what it was given",
        ),
        _ => return broken(),
    };
    NodeError::new(code, text)
}

pub(crate) fn broken() -> NodeError {
    NodeError::new(
        ErrorCode::GuestUnavailable,
        "the guest's contexts do not answer as they should",
    )
}

/// A list of contexts as the public API shows it.
pub(crate) fn present(contexts: Vec<BridgeContext>) -> Vec<Context> {
    let contexts = contexts.into_iter().take(limits::CONTEXTS_MAX);
    contexts
        .map(|context| Context {
            id: context.context,
            language: context.language,
            state: context.state,
            execution_count: context.execution_count,
            created_at: rfc3339(context.created_unix_ms),
        })
        .collect()
}
