//! The tools. Each is a function of its arguments and of where it works.

mod edit;
mod exec;
mod files;
mod fork;
mod life;
mod ports;
mod search;
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
    ReadFile "read_file",
    WriteFile "write_file",
    EditFile "edit_file",
    ListFiles "list_files",
    SearchFiles "search_files",
    Fork "fork",
    Snapshot "snapshot",
    Rollback "rollback",
    ExposePort "expose_port",
    CreateSandbox "create_sandbox",
    ListSandboxes "list_sandboxes",
    SandboxInfo "sandbox_info",
    DeleteSandbox "delete_sandbox",
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
        ToolName::ReadFile => files::read_file(site, read(arguments)?).await,
        ToolName::WriteFile => files::write_file(site, read(arguments)?).await,
        ToolName::EditFile => edit::edit_file(site, read(arguments)?).await,
        ToolName::ListFiles => files::list_files(site, read(arguments)?).await,
        ToolName::SearchFiles => search::search_files(site, read(arguments)?).await,
        ToolName::Fork => fork::fork(site, read(arguments)?).await,
        ToolName::Snapshot => state::snapshot(site, read(arguments)?).await,
        ToolName::Rollback => state::rollback(site, read(arguments)?).await,
        ToolName::ExposePort => ports::expose_port(site, read(arguments)?).await,
        ToolName::SandboxInfo => life::sandbox_info(site).await,
        ToolName::DeleteSandbox => life::delete_sandbox(site).await,
        ToolName::CreateSandbox => life::create_sandbox(site, read(arguments)?).await,
        ToolName::ListSandboxes => life::list_sandboxes(site, read(arguments)?).await,
    }
}

/// Whether a tool works in a sandbox, and must have one before it begins.
pub(crate) const fn works_in_a_sandbox(tool: ToolName) -> bool {
    !matches!(tool, ToolName::CreateSandbox | ToolName::ListSandboxes)
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
