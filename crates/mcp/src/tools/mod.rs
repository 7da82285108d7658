//! The tools. Each is a function of its arguments and of where it works.

mod exec;
mod ports;
mod state;

use dayfly_client::Client;
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;
use crate::home::Home;
use crate::output::ToolOutput;

macro_rules! tool_names {
    ($($variant:ident $name:literal,)*) => {
        /// Every tool.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum ToolName { $($variant,)* }

        impl ToolName {
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)*];

            pub(crate) fn parse(text: &str) -> Option<Self> {
                match text { $($name => Some(Self::$variant),)* _ => None }
            }

            #[cfg(test)]
            pub(crate) const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

tool_names! {
    RunCode "run_code",
    RunShell "run_shell",
    Snapshot "snapshot",
    Rollback "rollback",
    ExposePort "expose_port",
}

/// Where a tool works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) client: &'a Client,
    /// Id or name.
    pub(crate) sandbox: &'a str,
    /// Cancelled when the client does not want the result any more.
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) home: &'a Home,
}

/// Runs a tool that works in a sandbox.
pub(crate) async fn run_in(
    tool: ToolName,
    arguments: JsonObject,
    site: Site<'_>,
) -> Result<ToolOutput, ToolError> {
    match tool {
        ToolName::RunCode => exec::run_code(site, read(arguments)?).await,
        ToolName::RunShell => exec::run_shell(site, read(arguments)?).await,
        ToolName::Snapshot => state::snapshot(site, read(arguments)?).await,
        ToolName::Rollback => state::rollback(site, read(arguments)?).await,
        ToolName::ExposePort => ports::expose_port(site, read(arguments)?).await,
    }
}

/// Arguments that fit their schema, as a type.
fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| ToolError::refused(format!("the arguments cannot be read: {error}")))
}

/// Waits for work, unless the client does not want it any more.
pub(crate) async fn unless_cancelled<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Result<T, ToolError> {
    tokio::select! {
        outcome = work => Ok(outcome),
        () = cancel.cancelled() => Err(ToolError::Cancelled),
    }
}
