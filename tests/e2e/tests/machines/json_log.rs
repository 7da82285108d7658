//! A log for programs: every line of every process is one JSON object.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_e2e::{Daemon, DaemonOptions, create, output, patient, setting_or_skip};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn every_line_of_a_json_log_is_an_object() -> Result<()> {
    let setting = setting_or_skip!();
    let options = DaemonOptions {
        arguments: vec!["--log-format".to_owned(), "json".to_owned()],
        ..DaemonOptions::default()
    };
    let (mut daemon, client) = Daemon::ready(&setting, options).await?;
    let id = create(&client, "base").await?.id;
    output(&client, &id, "true").await?;
    client.delete_sandbox(&id).await?;
    ensure!(client.get_sandbox(&id).await.is_err(), "it is still there");
    let log = daemon.path().join("daemon.log");
    daemon.terminate().await?;
    let lines = objects(&log)?;
    let with = |key: &str, value: &str| lines.iter().find(|line| line[key] == value);
    let request = with("route", "/v1/sandboxes").context("no line of a request")?;
    ensure!(request["request_id"].is_string(), "{request:?}");
    with("message", "node ready").context("no line of the node")?;
    with("message", "the template is ready").context("no line of a bake")?;
    with("message", "listening").context("no line of control")?;
    with("message", "stopping; sandboxes go on running").context("no line of the daemon")?;
    let egress = objects(&daemon.path().join("node/egress/run/egress.log"))?;
    ensure!(
        egress.iter().any(|line| line["message"] == "ready"),
        "no line of the egress process: {egress:?}"
    );
    daemon.start_again().await?;
    daemon.finish().await
}

#[tokio::test]
async fn an_end_before_the_start_is_told_in_json() -> Result<()> {
    let setting = setting_or_skip!();
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("dayflyd.toml");
    let address = taken.local_addr()?;
    let text = format!("log_format = 'json'\nlisten = '{address}'\negress_uplink = 'none'\n");
    std::fs::write(&file, text)?;
    let ran = tokio::process::Command::new(setting.programs.join("dayflyd"))
        .arg("--config")
        .arg(&file)
        .arg("--data-dir")
        .arg(directory.path().join("data"))
        .output();
    let ran = tokio::time::timeout(patient(SOON), ran)
        .await
        .context("it goes on")??;
    let said = String::from_utf8(ran.stderr)?;
    ensure!(ran.status.code() == Some(125), "{:?}: {said}", ran.status);
    let lines = parsed(&said)?;
    let last = lines.last().context("it says nothing")?;
    let error = last["error"].as_str().context("no error")?;
    ensure!(error.contains("cannot listen on"), "{said}");
    Ok(())
}

fn objects(file: &Path) -> Result<Vec<Value>> {
    parsed(&std::fs::read_to_string(file)?)
}

fn parsed(text: &str) -> Result<Vec<Value>> {
    let lines = text.lines().map(|line| {
        let found: Result<Value, _> = serde_json::from_str(line);
        let found = found.with_context(|| format!("no JSON: {line}"))?;
        ensure!(
            found["level"].is_string() && found["message"].is_string(),
            "{line}"
        );
        Ok(found)
    });
    lines.collect()
}
