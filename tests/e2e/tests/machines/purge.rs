//! `dayflyd purge` says what is lost, ends everything, and leaves nothing on the host.

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSnapshot, CreateVolume};
use dayfly_e2e::engine::{engine_pid, is_gone, is_zombie};
use dayfly_e2e::{Daemon, DaemonOptions, create, mounted_below, setting_or_skip};
use serde_json::Value;

use crate::stop::{groups_of, instance};

async fn purge(daemon: &Daemon, more: &[&str]) -> Result<(Option<i32>, Value, String)> {
    let path = daemon.path().display().to_string();
    let arguments = [&["purge", "--data-dir", &path, "--json"], more].concat();
    let output = daemon.dayflyd(&arguments).await?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_default();
    Ok((output.status.code(), answer, said))
}

#[tokio::test]
async fn a_purge_names_the_loss_and_leaves_nothing() -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let volume = CreateVolume {
        name: "data".to_owned(),
        size_mb: Some(64),
        size_gb: None,
    };
    client.create_volume(&volume).await?;
    let sleeper = create(&client, "base").await?.id;
    client
        .create_snapshot(&sleeper, &CreateSnapshot::default())
        .await?;
    client.hibernate_sandbox(&sleeper).await?;
    let awake = create(&client, "base").await?.id;
    let engine = engine_pid(&daemon, &awake)?;
    let instance = instance(&daemon)?;

    let (code, _, said) = purge(&daemon, &["--yes"]).await?;
    ensure!(
        code == Some(125) && said.contains("stopped first"),
        "{said}"
    );
    daemon.terminate().await?;
    let (code, answer, said) = purge(&daemon, &[]).await?;
    ensure!(code == Some(1), "{said}");
    for (what, count) in [
        ("awake", 1),
        ("asleep", 1),
        ("snapshots", 1),
        ("volumes", 1),
    ] {
        ensure!(answer[what] == count, "{what}: {answer}");
    }
    ensure!(
        answer["bytes"].as_u64().context("no bytes")? > 1 << 20,
        "{answer}"
    );
    // The positive control: all of it is there.
    ensure!(!is_gone(engine) && !is_zombie(engine), "nothing runs");
    ensure!(!groups_of(&instance)?.is_empty() && !mounted_below(daemon.path())?.is_empty());

    let (code, answer, said) = purge(&daemon, &["--yes"]).await?;
    ensure!(code == Some(0), "{answer} {said}");
    ensure!(answer["leftovers"] == serde_json::json!([]), "{answer}");
    ensure!(
        is_gone(engine) || is_zombie(engine),
        "its engine still runs"
    );
    let left = groups_of(&instance)?;
    ensure!(left.is_empty(), "groups stay: {left:?}");
    ensure!(
        mounted_below(daemon.path())?.is_empty(),
        "something is mounted"
    );
    // The test's own log is not the daemon's to remove.
    let left: Vec<_> = std::fs::read_dir(daemon.path())?.flatten().collect();
    ensure!(
        left.len() == 1 && left[0].file_name() == "daemon.log",
        "{left:?}"
    );
    ensure!(
        answer["stays"]
            .as_array()
            .is_some_and(|stays| stays.len() == 1),
        "{answer}"
    );
    let (code, _, said) = purge(&daemon, &["--yes"]).await?;
    ensure!(
        code == Some(125) && said.contains("no data directory"),
        "{said}"
    );
    daemon.let_go();
    Ok(())
}
