//! Deadlines are the node's own business.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dayfly_api::{Command, CreateSandbox, ExecRequest};
use dayfly_e2e::{Daemon, DaemonOptions, refusal, setting_or_skip, until};

#[tokio::test]
async fn an_expired_sandbox_is_deleted_while_control_is_stopped() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let request = CreateSandbox {
        ttl_seconds: Some(10),
        ..CreateSandbox::default()
    };
    let start = Instant::now();
    let sandbox = client.create_sandbox(&request).await?;
    ensure!(sandbox.ttl_seconds == Some(10));
    let long = ExecRequest::new(Command::Shell("sleep 60".to_owned()));
    let cut_off = tokio::spawn({
        let (client, id) = (client.clone(), sandbox.id.clone());
        async move { client.exec(&id, &long).await }
    });
    until("the command runs", Duration::from_secs(5), || async {
        let processes = client.list_processes(&sandbox.id).await.ok()?;
        (!processes.is_empty()).then_some(())
    })
    .await?;
    let control = rustix::process::Pid::from_raw(daemon.role_pid("control")?).unwrap();
    rustix::process::kill_process(control, rustix::process::Signal::STOP)?;
    let record = daemon.path().join("node/sandboxes").join(&sandbox.id);
    let gone = until("the node deletes it", Duration::from_secs(20), || async {
        (!record.exists()).then(|| start.elapsed())
    })
    .await;
    rustix::process::kill_process(control, rustix::process::Signal::CONT)?;
    let gone = gone?;
    dayfly_e2e::figure!("a sandbox of 10 s was gone after {gone:?}");
    ensure!(gone >= Duration::from_secs(10), "early: {gone:?}");
    until(
        "control has heard of it",
        Duration::from_secs(10),
        || async { client.list_sandboxes().await.ok().filter(Vec::is_empty) },
    )
    .await?;
    let wanted = "its time to live of 10 s ended at ";
    for gone in [
        refusal(client.get_sandbox(&sandbox.id).await, "not_found")?,
        refusal(cut_off.await?, "not_found")?,
    ] {
        ensure!(gone.message.contains(wanted), "{gone:?}");
    }
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
