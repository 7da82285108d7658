//! A full node refuses at once, and nothing that runs is harmed.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_client::ClientError;
use dayfly_e2e::{Daemon, DaemonOptions, Times, create, exec, setting_or_skip};

const REFUSALS: usize = 40;

#[tokio::test]
async fn a_full_node_refuses_within_100_ms_and_harms_nobody() -> Result<()> {
    let setting = setting_or_skip!();
    // Room for two sandboxes of 768 MiB, engine included, and not for a third.
    let total = dayfly_host::memory::host_memory()?.total_bytes >> 20;
    let reserve = (total - 2 * 768 - 100).to_string();
    let options = DaemonOptions {
        arguments: vec!["--memory-reserve".to_owned(), reserve],
        ..DaemonOptions::default()
    };
    let (daemon, client) = Daemon::ready(&setting, options).await?;
    let first = create(&client, "base").await?;
    let second = create(&client, "base").await?;
    exec(&client, &first.id, "echo here > /dev/shm/mark").await?;
    let mut times = Times::default();
    for _ in 0..REFUSALS {
        let start = Instant::now();
        let refusal = client
            .create_sandbox(&dayfly_api::CreateSandbox::default())
            .await
            .err()
            .context("a third sandbox was admitted")?;
        let took = start.elapsed();
        let ClientError::Api(error) = refusal else {
            anyhow::bail!("not an answer: {refusal}")
        };
        ensure!(
            error.status == 503 && error.code == "no_capacity",
            "{error:?}"
        );
        ensure!(error.retry_after.is_some(), "no Retry-After");
        times.add(took);
    }
    let limit = Duration::from_millis(100);
    times.judge("a refusal", 95, limit)?;
    // However busy the host is, not all of them are late.
    let fastest = times.percentile(0);
    ensure!(fastest < limit, "the fastest refusal took {fastest:?}");
    for (id, wanted) in [(&first.id, "here"), (&second.id, "")] {
        let answer = exec(&client, id, "cat /dev/shm/mark 2>/dev/null; true").await?;
        ensure!(answer.stdout.trim() == wanted, "{answer:?}");
    }
    ensure!(
        client.list_sandboxes().await?.len() == 2,
        "a refused create left a sandbox"
    );
    // Room appears again with a delete.
    client.delete_sandbox(&second.id).await?;
    create(&client, "base").await?;
    daemon.finish().await
}

/// How many idle sandboxes fit before admission refuses, and what each costs. A soak: it takes
/// as many machines as the host has room for.
#[tokio::test]
#[ignore = "soak: fills the host"]
async fn the_host_holds_as_many_as_admission_says() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let before = dayfly_host::memory::host_memory()?.available_bytes;
    let mut count = 0_u64;
    let refusal = loop {
        match create(&client, "base").await {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    let after = dayfly_host::memory::host_memory()?.available_bytes;
    let each = before.saturating_sub(after) / count.max(1);
    dayfly_e2e::figure!(
        "{count} idle sandboxes of base; {} MiB of host memory each; then: {refusal}",
        each >> 20
    );
    ensure!(count >= 10, "only {count}");
    for sandbox in client.list_sandboxes().await? {
        ensure!(
            exec(&client, &sandbox.id, "true").await?.exit_code == 0,
            "{} is harmed",
            sandbox.id
        );
    }
    daemon.finish().await
}
