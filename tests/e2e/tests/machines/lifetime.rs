//! Deadlines are the node's own business.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dayfly_api::CreateSandbox;
use dayfly_e2e::{Daemon, DaemonOptions, setting_or_skip, until};

#[tokio::test]
async fn an_expired_sandbox_is_deleted_while_control_is_stopped() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let request = CreateSandbox {
        ttl_seconds: Some(6),
        ..CreateSandbox::default()
    };
    let start = Instant::now();
    let sandbox = client.create_sandbox(&request).await?;
    ensure!(sandbox.ttl_seconds == Some(6));
    let control = rustix::process::Pid::from_raw(daemon.role_pid("control")?).unwrap();
    rustix::process::kill_process(control, rustix::process::Signal::STOP)?;
    let record = daemon.path().join("node/sandboxes").join(&sandbox.id);
    let gone = until("the node deletes it", Duration::from_secs(12), || async {
        (!record.exists()).then(|| start.elapsed())
    })
    .await;
    rustix::process::kill_process(control, rustix::process::Signal::CONT)?;
    let gone = gone?;
    dayfly_e2e::figure!("a sandbox of 6 s was gone after {gone:?}");
    ensure!(gone >= Duration::from_secs(6), "early: {gone:?}");
    until(
        "control has heard of it",
        Duration::from_secs(10),
        || async { client.list_sandboxes().await.ok().filter(Vec::is_empty) },
    )
    .await?;
    daemon.finish().await
}

#[tokio::test]
async fn the_default_is_an_hour_and_persistent_ones_have_none() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let plain = client.create_sandbox(&CreateSandbox::default()).await?;
    ensure!(plain.ttl_seconds == Some(3600) && plain.expires_at.is_some() && !plain.persistent);
    let request = CreateSandbox {
        persistent: Some(true),
        ..CreateSandbox::default()
    };
    let lasting = client.create_sandbox(&request).await?;
    ensure!(lasting.ttl_seconds.is_none() && lasting.expires_at.is_none() && lasting.persistent);
    daemon.finish().await
}
