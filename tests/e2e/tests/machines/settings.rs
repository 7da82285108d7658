//! Settings and recipes of an operator, right and wrong ones.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::TemplateState;
use dayfly_client::Client;
use dayfly_e2e::{Daemon, DaemonOptions, create, output, patient, setting_or_skip, until};
use rustix::process::{Pid, Signal, kill_process};

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn one_wrong_recipe_fails_alone() -> Result<()> {
    let setting = setting_or_skip!();
    let wrong =
        "name = 'own'\nversion = 1\nfrom = 'base'\nmemory_mib = 512\nvcpus = 1\ndisk_mb = 1024\n";
    let options = DaemonOptions {
        recipes: vec![("own.toml".to_owned(), wrong.to_owned())],
        // Named here it must not keep the node from starting either.
        arguments: vec!["--templates".to_owned(), "own,nowhere,base".to_owned()],
        ..DaemonOptions::default()
    };
    let (daemon, client) = Daemon::ready(&setting, options).await?;
    let template = client.template("own").await?;
    let detail = template.detail.context("no reason")?;
    ensure!(
        template.state == TemplateState::Failed && detail.contains("disk_mb"),
        "{detail}"
    );
    let id = create(&client, "base").await?.id;
    output(&client, &id, "true").await?;
    let refused = client.bake_template("own").await;
    ensure!(refused.is_err(), "a wrong recipe was taken: {refused:?}");
    let file = daemon.path().join("recipes/own.toml");
    let named = file.display().to_string();
    let checked = daemon.dayflyd(&["recipe", "check", &named]).await?;
    ensure!(checked.status.code() == Some(1), "{checked:?}");
    client.delete_sandbox(&id).await?;
    daemon.finish().await
}

#[tokio::test]
async fn a_port_that_is_taken_ends_the_daemon() -> Result<()> {
    let setting = setting_or_skip!();
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let parent = setting.templates.parent().context("no parent")?;
    let directory = tempfile::Builder::new().prefix("e2e-").tempdir_in(parent)?;
    let ran = tokio::process::Command::new(setting.programs.join("dayflyd"))
        .args(["--egress-uplink", "none", "--listen", &address])
        .arg("--data-dir")
        .arg(directory.path())
        .output();
    let ran = tokio::time::timeout(patient(SOON), ran)
        .await
        .context("it goes on")??;
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    ensure!(ran.status.code() == Some(125), "{:?}: {said}", ran.status);
    ensure!(said.contains("cannot listen on"), "{said}");
    Ok(())
}

async fn until_parked(client: &Client, wanted: u64) -> Result<()> {
    until(
        &format!("{wanted} slots are to be parked"),
        patient(SOON),
        || async {
            let node = client.node().await.ok()?;
            (node.parked_slots_target == wanted).then_some(())
        },
    )
    .await
}

fn reload(daemon: &Daemon) -> Result<()> {
    let pid = Pid::from_raw(daemon.pid()?).context("no process")?;
    Ok(kill_process(pid, Signal::HUP)?)
}

#[tokio::test]
async fn settings_are_read_again_and_sandboxes_go_on() -> Result<()> {
    let setting = setting_or_skip!();
    let parent = setting.templates.parent().context("no parent")?;
    let directory = tempfile::Builder::new()
        .prefix("e2e-settings-")
        .tempdir_in(parent)?;
    let file = directory.path().join("dayflyd.toml");
    std::fs::write(&file, "parked_slots = 1\nparked_engines = 0\n")?;
    let options = DaemonOptions {
        environment: vec![("DAYFLYD_CONFIG".to_owned(), file.clone())],
        ..DaemonOptions::default()
    };
    let (daemon, client) = Daemon::ready(&setting, options).await?;
    until_parked(&client, 1).await?;
    let id = create(&client, "base").await?.id;
    output(&client, &id, "echo here > /dev/shm/mark").await?;
    let before = [daemon.role_pid("control")?, daemon.role_pid("node")?];
    std::fs::write(&file, "parked_slots = 3\nparked_engines = 0\n")?;
    reload(&daemon)?;
    until_parked(&client, 3).await?;
    let after = [daemon.role_pid("control")?, daemon.role_pid("node")?];
    ensure!(before[0] == after[0], "control has nothing to do with it");
    ensure!(before[1] != after[1], "the node was not started anew");
    let marked = until("the sandbox answers", patient(SOON), || async {
        output(&client, &id, "cat /dev/shm/mark").await.ok()
    });
    ensure!(marked.await?.trim() == "here", "another machine answers");
    // A mistake in the file stops nothing.
    std::fs::write(&file, "parked_slot = 9\n")?;
    reload(&daemon)?;
    until("the mistake is told", patient(SOON), || async {
        daemon.last_of_log().contains("`parked_slot`").then_some(())
    })
    .await?;
    ensure!(
        daemon.role_pid("node")? == after[1],
        "it was started anew for a mistake"
    );
    output(&client, &id, "true").await?;
    client.delete_sandbox(&id).await?;
    daemon.finish().await
}
