//! A full disk of the host: what needs room is refused with a reason, what gives room works, and
//! who runs goes on.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{ChangeLifecycle, CreateSandbox, CreateSnapshot, ForkSandbox};
use dayfly_client::Client;
use dayfly_e2e::small_disk::SmallDisk;
use dayfly_e2e::{Daemon, DaemonOptions, create, figure, output, refusal, setting_or_skip, until};

/// A disk of the template's size must be free for a create, and two are made here.
const DISK_MIB: u64 = 5400;
/// Less than a capture of what the guest holds needs, and enough for the small files of an answer.
const LEFT_MIB: u64 = 12;
const HELD_MIB: u64 = 48;

async fn everything_is_refused(client: &Client, id: &str) -> Result<()> {
    let snapshot = client.create_snapshot(id, &CreateSnapshot::default()).await;
    let error = refusal(snapshot, "storage_full").context("a snapshot")?;
    figure!("a snapshot on a full disk: {}", error.message);
    let fork = client.fork_sandbox(id, &ForkSandbox::default()).await;
    refusal(fork, "storage_full").context("a fork")?;
    refusal(client.hibernate_sandbox(id).await, "storage_full").context("a sleep")?;
    let created = client.create_sandbox(&CreateSandbox::default()).await;
    refusal(created, "no_capacity").context("a create")?;
    ensure!(client.get_sandbox(id).await?.status == "running");
    ensure!(output(client, id, "cat /dev/shm/mark").await? == "here");
    Ok(())
}

/// A guest that writes nothing goes on; one that does stands still, and says so.
async fn answers_or_waits(client: &Client, id: &str) -> Result<()> {
    match output(client, id, "cat /dev/shm/mark").await {
        Ok(mark) => ensure!(mark == "here", "{mark}"),
        Err(error) => {
            let sandbox = client.get_sandbox(id).await?;
            ensure!(
                sandbox.condition.as_deref() == Some("disk_full"),
                "{sandbox:?}: {error}"
            );
        }
    }
    Ok(())
}

async fn full(setting: &dayfly_e2e::Setting, disk: &SmallDisk) -> Result<()> {
    let options = DaemonOptions {
        arguments: [
            "--disk-reserve",
            "0",
            "--parked-engines",
            "0",
            "--parked-slots",
            "0",
        ]
        .map(str::to_owned)
        .to_vec(),
        parent: Some(disk.path()),
        ..DaemonOptions::default()
    };
    let (daemon, client) = Daemon::ready(setting, options).await?;
    let id = create(&client, "base").await?.id;
    let dying = create(&client, "base").await?.id;
    let text =
        format!("echo here > /dev/shm/mark; head -c {HELD_MIB}M /dev/urandom > /dev/shm/held");
    output(&client, &id, &text).await?;
    // The positive control: with room it works.
    let taken = client
        .create_snapshot(&id, &CreateSnapshot::default())
        .await?;
    client.delete_snapshot(&taken.id).await?;

    disk.fill(LEFT_MIB)?;
    everything_is_refused(&client, &id).await?;
    let soon = ChangeLifecycle {
        ttl_seconds: Some(Some(6)),
        ..ChangeLifecycle::default()
    };
    client.set_lifecycle(&dying, &soon).await?;
    disk.fill_up()?;
    answers_or_waits(&client, &id).await?;
    // What must be written down finds room: a part of the reserve is given up for it.
    client.pause_sandbox(&id).await.context("a pause")?;
    ensure!(client.get_sandbox(&id).await?.status == "paused");
    client.resume_sandbox(&id).await.context("a resume")?;
    let record = daemon.path().join("node/sandboxes").join(&dying);
    until("its time is up", Duration::from_secs(12), || async {
        (!record.exists()).then_some(())
    })
    .await?;
    client
        .delete_sandbox(&id)
        .await
        .context("a delete on a full disk")?;
    let record = daemon.path().join("node/sandboxes").join(&id);
    ensure!(!record.exists(), "the node still has it");
    daemon.finish().await
}

#[tokio::test]
async fn a_full_disk_is_a_refusal_and_no_end() -> Result<()> {
    let setting = setting_or_skip!();
    let beside = setting.templates.parent().context("no parent directory")?;
    let disk = SmallDisk::new(beside, DISK_MIB)?;
    let outcome = full(&setting, &disk).await;
    if outcome.is_err() {
        figure!("{} MiB left on the disk", disk.left_mib()?);
    }
    outcome
}

/// A log on a full disk: lines are lost, and nothing else.
#[tokio::test]
async fn a_daemon_whose_log_cannot_be_written_goes_on() -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, _) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&daemon.client()?, "base").await?.id;
    daemon.terminate().await?;
    let log = daemon.path().join("daemon.log");
    std::fs::remove_file(&log)?;
    std::os::unix::fs::symlink("/dev/full", &log)?;
    daemon.start_again().await?;
    let client = daemon.client()?;
    let processes =
        || -> Result<[i32; 2]> { Ok([daemon.role_pid("control")?, daemon.role_pid("node")?]) };
    let before = processes()?;
    // Lines of the log, of both processes.
    refusal(client.get_sandbox("sb-local-none").await, "not_found")?;
    let snapshot = client
        .create_snapshot(&id, &CreateSnapshot::default())
        .await?;
    client.delete_snapshot(&snapshot.id).await?;
    ensure!(output(&client, &id, "echo works").await? == "works");
    client.delete_sandbox(&id).await?;
    ensure!(processes()? == before, "a process was started again");
    daemon.finish().await
}
