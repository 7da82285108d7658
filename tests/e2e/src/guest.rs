//! Short forms of what tests do most.

use anyhow::Result;
use dayfly_api::{Command, CreateSandbox, ExecRequest, ExecResult, Sandbox};
use dayfly_client::Client;

/// Creates a sandbox of a template, with the default time to live.
///
/// # Errors
/// What the server refused.
pub async fn create(client: &Client, template: &str) -> Result<Sandbox> {
    let request = CreateSandbox {
        template: Some(template.to_owned()),
        ..CreateSandbox::default()
    };
    Ok(client.create_sandbox(&request).await?)
}

/// A request to run a shell text.
#[must_use]
pub fn shell(text: &str) -> ExecRequest {
    ExecRequest {
        cmd: Command::Shell(text.to_owned()),
        cwd: None,
        env: None,
        user: None,
        stdin: None,
        timeout_seconds: Some(60.0),
    }
}

/// Runs a shell text as the default user.
///
/// # Errors
/// When the exec could not be run; a non-zero exit is a result.
pub async fn exec(client: &Client, id: &str, text: &str) -> Result<ExecResult> {
    Ok(client.exec(id, &shell(text)).await?)
}

/// Runs a shell text as root of the guest.
///
/// # Errors
/// When the exec could not be run; a non-zero exit is a result.
pub async fn exec_as_root(client: &Client, id: &str, text: &str) -> Result<ExecResult> {
    let request = ExecRequest {
        user: Some("root".to_owned()),
        ..shell(text)
    };
    Ok(client.exec(id, &request).await?)
}
