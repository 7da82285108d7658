//! Going back to a snapshot in place, and standing still.

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use dayfly_api::CreateSnapshot;
use dayfly_client::Client;
use dayfly_e2e::{
    Daemon, DaemonOptions, create, engine, exec, figure, keeper, output, refusal, setting_or_skip,
    shell, until,
};

const CLOCK_ERROR_MAX: f64 = 2.0;

async fn hashes(client: &Client, id: &str) -> Result<(String, String)> {
    let files = output(client, id, "sha256sum files/* | sha256sum").await?;
    Ok((files, keeper::ask(client, id, "hash").await?))
}

async fn change(client: &Client, id: &str) -> Result<()> {
    let text = "mkdir -p files; head -c 100000 /dev/urandom > files/a; date +%N >> files/b";
    output(client, id, text).await?;
    keeper::ask(client, id, "change 10").await?;
    Ok(())
}

/// How far the guest's clock is from the host's around the question, in seconds.
async fn clock_error(client: &Client, id: &str) -> Result<f64> {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let before = now()?.as_secs_f64();
    let guest: f64 = output(client, id, "date +%s.%N").await?.parse()?;
    let after = now()?.as_secs_f64();
    Ok((before - guest).max(guest - after).max(0.0))
}

#[tokio::test]
async fn a_rollback_takes_files_and_memory_back_as_often_as_asked() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    keeper::start(&client, &id, 20).await?;
    change(&client, &id).await?;
    let wanted = hashes(&client, &id).await?;
    let snapshot = client
        .create_snapshot(&id, &CreateSnapshot::default())
        .await?;
    ensure!(snapshot.sandbox_id == id, "{snapshot:?}");
    figure!(
        "snapshot: paused {:.0} ms, {} KiB",
        snapshot.capture.pause_ms,
        snapshot.size_bytes >> 10
    );
    for turn in 1..=3 {
        // The third time there is nothing to take back.
        if turn < 3 {
            change(&client, &id).await?;
            ensure!(hashes(&client, &id).await? != wanted, "nothing was changed");
        }
        let start = Instant::now();
        let back = client.rollback_sandbox(&id, &snapshot.id).await?;
        figure!("rollback {turn} took {:?}", start.elapsed());
        ensure!(back.id == id && back.status == "running", "{back:?}");
        ensure!(hashes(&client, &id).await? == wanted, "not as it was");
        ensure!(output(&client, &id, "hostname").await? == id);
        let error = clock_error(&client, &id).await?;
        ensure!(error < CLOCK_ERROR_MAX, "the clock is {error} s off");
    }

    let other = create(&client, "base").await?.id;
    output(&client, &other, "echo mine > /dev/shm/mark").await?;
    let error = refusal(
        client.rollback_sandbox(&other, &snapshot.id).await,
        "invalid_request",
    )?;
    ensure!(
        error.message.contains("another sandbox"),
        "{}",
        error.message
    );
    ensure!(output(&client, &other, "cat /dev/shm/mark").await? == "mine");
    daemon.finish().await
}

#[tokio::test]
async fn a_paused_sandbox_uses_no_processor_and_goes_on_with_the_right_clock() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    output(&client, &id, "echo here > /dev/shm/mark").await?;
    // Something that would use a processor if it could.
    let busy = "setsid nohup sh -c 'while :; do :; done' >/dev/null 2>&1 </dev/null &";
    output(&client, &id, busy).await?;
    let pid = engine::engine_pid(&daemon, &id)?;
    let used = engine::processor_time(pid)?;
    until("it uses a processor", Duration::from_secs(10), || async {
        let now = engine::processor_time(pid).ok()?;
        (now > used + Duration::from_millis(500)).then_some(())
    })
    .await?;

    client.pause_sandbox(&id).await?;
    client.pause_sandbox(&id).await?;
    ensure!(client.get_sandbox(&id).await?.status == "paused");
    let refused = refusal(client.exec(&id, &shell("true")).await, "wrong_state")?;
    refusal(client.read_file(&id, "/dev/shm/mark").await, "wrong_state")?;
    let used = engine::processor_time(pid)?;
    // Not a wait for a condition: for so long nothing may happen.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let grown = engine::processor_time(pid)?.saturating_sub(used);
    figure!("a paused engine used {grown:?} in 4 s");
    ensure!(grown < Duration::from_millis(40), "it used {grown:?}");

    client.resume_sandbox(&id).await?;
    client.resume_sandbox(&id).await?;
    let error = clock_error(&client, &id).await?;
    figure!("after the pause its clock is {error:.3} s off");
    ensure!(error < CLOCK_ERROR_MAX, "the clock is {error} s off");
    ensure!(output(&client, &id, "cat /dev/shm/mark").await? == "here");
    ensure!(engine::engine_pid(&daemon, &id)? == pid, "another engine");
    ensure!(exec(&client, &id, "pkill -f '[w]hile'").await?.exit_code == 0);
    let hint = refused.advice.hint.context("no hint")?;
    ensure!(hint.contains("resume"), "{hint}");
    daemon.finish().await
}
