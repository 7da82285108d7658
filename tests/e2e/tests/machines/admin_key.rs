//! The administrator's key is replaced at once, whether a daemon runs or not.

use anyhow::{Result, ensure};
use dayfly_client::{ApiKey, Client, ClientConfig};
use dayfly_e2e::{Daemon, DaemonOptions, refusal, setting_or_skip, until};

use std::time::Duration;

const SETTLED: Duration = Duration::from_secs(30);

fn client(daemon: &Daemon, key: &str) -> Result<Client> {
    Ok(Client::new(ClientConfig {
        url: daemon.url(),
        key: Some(ApiKey::parse(key)?),
    })?)
}

async fn rotate(daemon: &Daemon) -> Result<()> {
    let path = daemon.path().display().to_string();
    let rotated = daemon
        .dayflyd(&["admin-key", "rotate", "--json", "--data-dir", &path])
        .await?;
    let said = String::from_utf8_lossy(&rotated.stderr).into_owned();
    ensure!(rotated.status.success(), "{said}");
    Ok(())
}

#[tokio::test]
async fn an_old_key_is_refused_when_the_rotation_returns_and_stays_so() -> Result<()> {
    let setting = setting_or_skip!();
    let mut daemon = Daemon::start(&setting, DaemonOptions::default()).await?;
    let first = daemon.key()?;
    let before = client(&daemon, &first)?;
    before.node().await?;
    rotate(&daemon).await?;
    refusal(before.node().await, "unauthorized")?;
    let second = daemon.key()?;
    let after = client(&daemon, &second)?;
    after.node().await?;
    // A control process that is started again goes by the new one.
    Daemon::kill(daemon.role_pid("control")?)?;
    until("control answers", SETTLED, || async {
        after.node().await.ok()
    })
    .await?;
    refusal(before.node().await, "unauthorized")?;

    daemon.terminate().await?;
    rotate(&daemon).await?;
    daemon.start_again().await?;
    let third = daemon.key()?;
    ensure!(first != second && second != third);
    client(&daemon, &third)?.node().await?;
    for old in [before, after] {
        refusal(old.node().await, "unauthorized")?;
    }
    daemon.finish().await
}
