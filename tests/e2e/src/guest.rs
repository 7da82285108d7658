//! Short forms of what tests do most.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use dayfly_api::{Command, CreateSandbox, ExecRequest, ExecResult, Sandbox};
use dayfly_client::{ApiError, Client, ClientError};
use dayfly_types::ErrorCode;

/// How long a daemon that has just started may take to look at its templates.
const READY_DEADLINE: Duration = Duration::from_secs(120);

/// Creates a sandbox of a template, with the default time to live. Waits for a daemon that still
/// looks at its templates.
///
/// # Errors
/// What the server refused.
pub async fn create(client: &Client, template: &str) -> Result<Sandbox> {
    let request = CreateSandbox {
        template: Some(template.to_owned()),
        ..CreateSandbox::default()
    };
    let end = Instant::now() + READY_DEADLINE;
    loop {
        match client.create_sandbox(&request).await {
            Err(error)
                if error.api_code() == Some(ErrorCode::TemplateBaking) && Instant::now() < end =>
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            outcome => return Ok(outcome?),
        }
    }
}

/// A request to run a shell text.
#[must_use]
pub fn shell(text: &str) -> ExecRequest {
    ExecRequest {
        timeout_seconds: Some(60.0),
        ..ExecRequest::new(Command::Shell(text.to_owned()))
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

/// What a shell text printed, without the white space around it. It must end well.
///
/// # Errors
/// When it could not be run or ended with another status than 0.
pub async fn output(client: &Client, id: &str, text: &str) -> Result<String> {
    printed(text, exec(client, id, text).await?)
}

/// As [`output`], as root of the guest.
///
/// # Errors
/// As [`output`].
pub async fn output_of_root(client: &Client, id: &str, text: &str) -> Result<String> {
    printed(text, exec_as_root(client, id, text).await?)
}

fn printed(text: &str, result: ExecResult) -> Result<String> {
    if result.exit_code != 0 {
        bail!("{text}: {result:?}");
    }
    Ok(result.stdout.trim().to_owned())
}

/// The server's refusal. Anything else, a success too, is an error.
///
/// # Errors
/// When it was not refused with this code.
pub fn refusal<T>(outcome: Result<T, ClientError>, code: &str) -> Result<ApiError> {
    match outcome {
        Ok(_) => bail!("not refused, but {code} was expected"),
        Err(ClientError::Api(error)) if error.code == code => Ok(*error),
        Err(error) => bail!("{code} was expected, and came: {error:?}"),
    }
}
