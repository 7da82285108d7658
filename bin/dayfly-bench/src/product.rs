//! Samples of the product: what a caller of the API waits for.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use dayfly_api::{Command, CreateSandbox, ExecRequest, Sandbox};
use dayfly_client::Client;
use tokio::time::sleep;

use crate::mark::Mark;

/// How long the pools may take to fill up between two samples.
const POOL_DEADLINE: Duration = Duration::from_secs(60);
const POOL_PAUSE: Duration = Duration::from_millis(20);
/// A sandbox that could not be deleted ends by itself.
const TTL_SECONDS: u64 = 300;

/// What every sample creates.
pub(crate) fn create_request(template: &str, mark: &Mark) -> CreateSandbox {
    CreateSandbox {
        template: Some(template.to_owned()),
        metadata: Some(mark.metadata()),
        ttl_seconds: Some(TTL_SECONDS),
        ..CreateSandbox::default()
    }
}

/// From sending the create to the answer of the first `true`.
pub(crate) async fn create_sample(
    client: &Client,
    template: &str,
    mark: &Mark,
) -> Result<(Duration, Sandbox)> {
    let request = create_request(template, mark);
    let start = Instant::now();
    let sandbox = client
        .create_sandbox(&request)
        .await
        .context("cannot create")?;
    let result = exec_true(client, &sandbox.id).await;
    let elapsed = start.elapsed();
    delete(client, &sandbox.id).await?;
    result?;
    Ok((elapsed, sandbox))
}

/// Runs `true`.
pub(crate) async fn exec_true(client: &Client, id: &str) -> Result<()> {
    let exec = request_of(Command::Argv(vec!["true".to_owned()]));
    let result = client.exec(id, &exec).await.context("cannot exec")?;
    if result.exit_code != 0 {
        bail!("true exited with {}", result.exit_code);
    }
    Ok(())
}

/// A command with nothing said about it.
pub(crate) fn request_of(cmd: Command) -> ExecRequest {
    ExecRequest::new(cmd)
}

pub(crate) async fn delete(client: &Client, id: &str) -> Result<()> {
    let deleted = client.delete_sandbox(id).await;
    deleted.context("cannot delete")
}

/// Each sample waits for full pools: a refill in the background would slow down whichever sample
/// happens to run beside it.
pub(crate) async fn wait_for_pools(client: &Client, template: &str) -> Result<()> {
    let deadline = Instant::now() + POOL_DEADLINE;
    loop {
        let node = client.node().await.context("cannot ask for the node")?;
        let engines_full = node
            .parked_engines
            .iter()
            .filter(|pool| pool.template == template)
            .all(|pool| pool.parked >= pool.target);
        if engines_full && node.parked_slots >= node.parked_slots_target {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("the pools did not fill up within {POOL_DEADLINE:?}");
        }
        sleep(POOL_PAUSE).await;
    }
}
