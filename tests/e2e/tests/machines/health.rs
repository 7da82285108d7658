//! What a monitor sees of a daemon whose node does not stay alive.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_client::Client;
use dayfly_e2e::{Daemon, DaemonOptions, patient, setting_or_skip, until};
use dayfly_types::limits::NODE_OUTAGE_MAX;

const SOON: Duration = Duration::from_secs(60);

/// What `GET /health` says: `ok`, or what is wrong.
async fn health(client: &Client) -> Option<String> {
    let health = client.health(Duration::from_secs(5)).await.ok()?;
    match health.conditions.first() {
        None => Some(health.status),
        Some(condition) => Some(condition.detail.clone()),
    }
}

#[tokio::test]
async fn a_node_that_does_not_stay_alive_is_unhealthy() -> Result<()> {
    let setting = setting_or_skip!();
    let began = Instant::now();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    until("it is well", patient(SOON), || async {
        (health(&client).await? == "ok").then_some(())
    })
    .await?;
    let journal = daemon.path().join("node/sandboxes");
    let aside = daemon.path().join("node/sandboxes-aside");
    std::fs::rename(&journal, &aside)?;
    std::fs::write(&journal, "no directory")?;
    Daemon::kill(daemon.role_pid("node")?)?;
    until("the loss is told", patient(SOON), || async {
        (health(&client).await? != "ok").then_some(())
    })
    .await?;
    ensure!(client.ready(Duration::from_secs(5)).await.is_err());
    let loop_is_told = NODE_OUTAGE_MAX + SOON;
    let said = until("it is unhealthy", patient(loop_is_told), || async {
        health(&client).await.filter(|said| is_unwell(said))
    });
    let said = said.await?;
    // A node that was there for less than that long before counts as one that never stayed.
    ensure!(began.elapsed() >= NODE_OUTAGE_MAX, "too early: {said}");
    // One that is started like this has never had a node.
    let control = daemon.role_pid("control")?;
    Daemon::kill(control)?;
    let said = until("it is unhealthy at once", patient(SOON), || async {
        let said = health(&client).await?;
        let is_another = daemon.role_pid("control").ok()? != control;
        (is_another && is_unwell(&said)).then_some(said)
    });
    let said = said.await?;
    ensure!(said.contains("since this process started"), "{said}");
    std::fs::remove_file(&journal)?;
    std::fs::rename(&aside, &journal)?;
    until("it is well again", patient(loop_is_told), || async {
        (health(&client).await? == "ok").then_some(())
    })
    .await
    .with_context(|| daemon.last_of_log())?;
    until("it is ready", patient(SOON), || async {
        client.ready(Duration::from_secs(5)).await.ok()
    })
    .await?;
    daemon.finish().await
}

/// A node that has been away for long, not only for a restart.
fn is_unwell(said: &str) -> bool {
    said.contains("node process has not")
}
