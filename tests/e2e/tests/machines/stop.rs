//! `dayflyd stop --all` ends what runs, whoever's it is, and a stopped daemon leaves nothing.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateProject, CreateToken};
use dayfly_client::{ApiKey, Client, ClientConfig};
use dayfly_e2e::engine::{engine_pid, is_gone};
use dayfly_e2e::{Daemon, DaemonOptions, create, patient, setting_or_skip, until};
use serde_json::Value;

/// Control groups of the daemon, of whichever hierarchy.
fn groups(daemon: &Daemon) -> Result<Vec<PathBuf>> {
    groups_of(&instance(daemon)?)
}

/// The name that a daemon's things go by.
pub(crate) fn instance(daemon: &Daemon) -> Result<String> {
    let text = std::fs::read(daemon.path().join("instance.json"))?;
    let instance: Value = serde_json::from_slice(&text)?;
    let instance = instance["instance"].as_str().context("no instance")?;
    Ok(instance.to_owned())
}

/// Control groups of an installation, whether its directory is there or not.
pub(crate) fn groups_of(instance: &str) -> Result<Vec<PathBuf>> {
    let name = format!("dayfly-{instance}");
    let found = std::process::Command::new("find")
        .args(["/sys/fs/cgroup", "-type", "d", "-name", &name])
        .output()?;
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    Ok(found.lines().map(PathBuf::from).collect())
}

#[tokio::test]
async fn stop_all_ends_what_runs_of_every_project_and_no_group_stays() -> Result<()> {
    let setting = setting_or_skip!();
    let options = DaemonOptions {
        arguments: vec!["--allow-shared-emulation".to_owned()],
        ..DaemonOptions::default()
    };
    let (mut daemon, _) = Daemon::ready(&setting, options).await?;
    let operator = daemon.client()?;
    let project = CreateProject {
        id: "alpha".to_owned(),
        limits: None,
    };
    operator.create_project(&project).await?;
    let request = CreateToken::default();
    let token = operator.create_token(Some("alpha"), &request).await?;
    let alpha = Client::new(ClientConfig {
        url: daemon.url(),
        key: Some(ApiKey::parse(&token.token)?),
    })?;
    let id = create(&alpha, "base").await?.id;
    let engine = engine_pid(&daemon, &id)?;
    ensure!(
        !groups(&daemon)?.is_empty(),
        "the groups are looked for elsewhere"
    );
    let path = daemon.path().display().to_string();
    let stopped = daemon
        .dayflyd(&["stop", "--all", "--json", "--data-dir", &path])
        .await?;
    let stopped: Value = serde_json::from_slice(&stopped.stdout)?;
    ensure!(stopped["deleted"] == serde_json::json!([id]), "{stopped}");
    ensure!(is_gone(engine), "the engine still runs");
    until(
        "its project knows",
        patient(Duration::from_secs(10)),
        || async {
            let left = alpha.list_sandboxes().await.ok()?;
            left.is_empty().then_some(())
        },
    )
    .await?;
    daemon.terminate().await?;
    let left = groups(&daemon)?;
    ensure!(left.is_empty(), "groups stay: {left:?}");
    daemon.start_again().await?;
    daemon.finish().await
}
