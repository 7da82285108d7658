//! Trying commands in copies.

use std::time::Duration;

use dayfly_api::{Command, ExecRequest, ForkOptions, ForkSandbox};
use dayfly_client::Client;
use dayfly_types::limits::{MCP_FORK_GRACE_SECONDS, MCP_TEXT_BYTES_MAX};
use futures::future::join_all;
use serde::Deserialize;

use super::{Site, exec, unless_cancelled};
use crate::error::{ToolError, told};
use crate::output::ToolOutput;
use crate::text;

#[derive(Debug, Deserialize)]
pub(super) struct ForkArguments {
    commands: Vec<String>,
    timeout_seconds: f64,
}

/// Copies that are deleted when nobody needs them any more, however that came. If this process
/// ends before, their time to live does it.
struct Copies {
    client: Client,
    ids: Vec<String>,
}

impl Copies {
    async fn delete(mut self) {
        delete(&self.client, &std::mem::take(&mut self.ids)).await;
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        let ids = std::mem::take(&mut self.ids);
        if ids.is_empty() {
            return;
        }
        let client = self.client.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { delete(&client, &ids).await });
        }
    }
}

async fn delete(client: &Client, ids: &[String]) {
    let deleting = ids.iter().map(|id| client.delete_sandbox(id));
    for error in join_all(deleting).await.into_iter().filter_map(Result::err) {
        tracing::warn!(error = told(&error), "a copy is left to its time to live");
    }
}

pub(super) async fn fork(
    site: Site<'_>,
    arguments: ForkArguments,
) -> Result<ToolOutput, ToolError> {
    let seconds = Duration::try_from_secs_f64(arguments.timeout_seconds)
        .map_err(|_| ToolError::refused("timeout_seconds is too long"))?;
    let wish = ForkSandbox {
        count: Some(arguments.commands.len() as u64),
        options: ForkOptions {
            all_or_nothing: Some(true),
            ttl_seconds: Some(seconds.as_secs() + MCP_FORK_GRACE_SECONDS),
            persistent: Some(false),
            ..ForkOptions::default()
        },
    };
    // Not cut short: a fork that nobody waits for would leave copies that nobody knows.
    let forked = site.client.fork_sandbox(site.sandbox, &wish).await?;
    let copies = Copies {
        client: site.client.clone(),
        ids: forked.children.into_iter().map(|child| child.id).collect(),
    };
    let room = MCP_TEXT_BYTES_MAX / arguments.commands.len().max(1);
    let trials = copies.ids.iter().zip(&arguments.commands);
    let trials =
        trials.map(|(id, command)| attempt(site, id, command, arguments.timeout_seconds, room));
    let texts = unless_cancelled(site.cancel, join_all(trials)).await;
    copies.delete().await;
    Ok(present(&arguments.commands, texts?))
}

/// How one command went in its copy.
async fn attempt(site: Site<'_>, id: &str, command: &str, seconds: f64, room: usize) -> String {
    let mut request = ExecRequest::new(Command::Shell(command.to_owned()));
    request.timeout_seconds = Some(seconds);
    request.report_changes = Some(true);
    let copy = Site {
        sandbox: id,
        ..site
    };
    match exec::run(copy, request).await {
        Ok(result) => text::exec(&result, room),
        Err(error) => error.text(),
    }
}

/// First how each ended, then what each printed, in a text of its own.
fn present(commands: &[String], texts: Vec<String>) -> ToolOutput {
    let mut said = format!(
        "{} copies were tried and are deleted; this sandbox is as it was",
        texts.len()
    );
    for (index, text) in texts.iter().enumerate() {
        let first = text.lines().next().unwrap_or_default();
        said.push_str(&format!("\ncopy {}: {first}", index + 1));
    }
    let mut output = ToolOutput::text(said);
    for (index, (command, text)) in commands.iter().zip(texts).enumerate() {
        output.add_text(format!("copy {}: {command}\n{text}", index + 1));
    }
    output
}
