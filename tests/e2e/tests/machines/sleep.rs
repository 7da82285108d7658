//! A sandbox that sleeps costs nothing, wakes when it is needed, and has lost nothing.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{ChangeLifecycle, CreateSandbox, OnTimeout};
use dayfly_client::{Client, ClientConfig};
use dayfly_e2e::{
    Daemon, DaemonOptions, create, engine, exec, figure, keeper, output, output_of_root, patient,
    refusal, setting_or_skip, until,
};

const IDLE_SECONDS: u64 = 5;
/// From the deadline of an idle sandbox to its sleep: looks are a second apart, then it is captured.
const LATE_MAX: Duration = Duration::from_secs(5);

/// Changes some files and some memory; answers what both should hash to from then on.
async fn change(client: &Client, id: &str, cycle: usize) -> Result<(String, String)> {
    let text = format!(
        "mkdir -p files && for i in 1 2 3; do \
         head -c $((RANDOM % 200000)) /dev/urandom > files/$((({cycle} * 3 + i) % 20)); done; \
         rm -f files/$(({cycle} % 7))"
    );
    output(client, id, &format!("bash -c '{text}'")).await?;
    keeper::ask(client, id, "change 20").await?;
    hashes(client, id).await
}

async fn hashes(client: &Client, id: &str) -> Result<(String, String)> {
    let files = output(client, id, "sha256sum files/* | sha256sum").await?;
    Ok((files, keeper::ask(client, id, "hash").await?))
}

/// A sandbox that sleeps has no engine, no slot and no promise of memory.
async fn costs_nothing(daemon: &Daemon, client: &Client, id: &str, pid: i32) -> Result<()> {
    let status = client.get_sandbox(id).await?.status;
    ensure!(status == "hibernated", "it is {status}");
    ensure!(engine::slot(daemon, id)?.is_none(), "it still has a slot");
    ensure!(
        engine::engine_pid(daemon, id).is_err(),
        "its record still names a process"
    );
    ensure!(
        engine::is_gone(pid) || engine::is_zombie(pid),
        "its engine still runs"
    );
    let committed = client.node().await?.memory_committed_mb;
    ensure!(committed == 0, "{committed} MiB are still committed");
    Ok(())
}

async fn wait_until_asleep(client: &Client, id: &str, limit: Duration) -> Result<()> {
    until("it sleeps", limit, || async {
        let now = client.get_sandbox(id).await.ok()?;
        (now.status == "hibernated").then_some(())
    })
    .await
}

/// Lets it fall asleep by itself. Asking for its state is no activity.
async fn sleep_by_itself(client: &Client, id: &str) -> Result<Duration> {
    let idle = |seconds| ChangeLifecycle {
        idle_seconds: Some(seconds),
        on_timeout: Some(OnTimeout::Hibernate),
        ..ChangeLifecycle::default()
    };
    // Counting is work, and who works does not fall asleep.
    let last_exec = Instant::now();
    keeper::ask(client, id, "rest").await?;
    client.set_lifecycle(id, &idle(Some(IDLE_SECONDS))).await?;
    let idle_for = Duration::from_secs(IDLE_SECONDS);
    wait_until_asleep(client, id, idle_for + LATE_MAX).await?;
    let took = last_exec.elapsed();
    ensure!(took < idle_for + patient(LATE_MAX), "late: {took:?}");
    // So that the checks that follow are not overtaken by the next sleep.
    client.set_lifecycle(id, &idle(None)).await?;
    Ok(took)
}

async fn cycles(count: usize) -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    keeper::start(&client, &id, 16).await?;
    let (mut slowest_sleep, mut slowest_wake) = (Duration::ZERO, Duration::ZERO);
    for cycle in 0..count {
        let wanted = change(&client, &id, cycle).await?;
        let pid = engine::engine_pid(&daemon, &id)?;
        if cycle % 4 == 1 {
            let took = sleep_by_itself(&client, &id).await?;
            figure!("cycle {cycle}: asleep by itself after {took:?}");
        } else {
            let start = Instant::now();
            client.hibernate_sandbox(&id).await?;
            slowest_sleep = slowest_sleep.max(start.elapsed());
        }
        costs_nothing(&daemon, &client, &id, pid).await?;
        let start = Instant::now();
        if cycle % 2 == 0 {
            client.wake_sandbox(&id).await?;
        }
        output(&client, &id, "true").await?;
        slowest_wake = slowest_wake.max(start.elapsed());
        let found = hashes(&client, &id).await?;
        ensure!(found == wanted, "cycle {cycle}: {found:?}, not {wanted:?}");
        keeper::ask(&client, &id, "go").await?;
    }
    keeper::counts(&client, &id).await?;
    figure!("{count} cycles; slowest sleep {slowest_sleep:?}, slowest wake {slowest_wake:?}");
    file_system_is_clean(&client, &id).await?;
    daemon.finish().await
}

/// The guest's kernel has seen no error on its disk, and what may have been written can be read.
async fn file_system_is_clean(client: &Client, id: &str) -> Result<()> {
    let text = "cat /sys/fs/ext4/*/errors_count";
    let errors = output_of_root(client, id, text).await?;
    ensure!(
        !errors.is_empty() && errors.lines().all(|count| count == "0"),
        "errors of the file systems: {errors:?}"
    );
    output_of_root(
        client,
        id,
        "find /etc /home /var /workspace -xdev -type f -exec cat {} + > /dev/null",
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn four_sleeps_lose_nothing() -> Result<()> {
    cycles(4).await
}

#[tokio::test]
#[ignore = "soak: for the KVM lab, whose sleeps are slow"]
async fn ten_sleeps_lose_nothing() -> Result<()> {
    cycles(10).await
}

#[tokio::test]
#[ignore = "soak: a hundred sleeps"]
async fn a_hundred_sleeps_lose_nothing() -> Result<()> {
    cycles(100).await
}

#[tokio::test]
async fn a_sleep_leaves_no_dead_process_behind() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    let mut pids = Vec::new();
    for _ in 0..2 {
        pids.push(engine::engine_pid(&daemon, &id)?);
        client.hibernate_sandbox(&id).await?;
        client.wake_sandbox(&id).await?;
    }
    until(
        "the engines are collected",
        Duration::from_secs(10),
        || async { pids.iter().all(|pid| engine::is_gone(*pid)).then_some(()) },
    )
    .await?;
    daemon.finish().await
}

#[tokio::test]
async fn only_who_may_wakes_it_and_three_at_once_wake_it_once() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let request = CreateSandbox {
        idle_seconds: Some(3600),
        ..CreateSandbox::default()
    };
    let id = client.create_sandbox(&request).await?.id;
    output(&client, &id, "echo here > /dev/shm/mark").await?;
    client.hibernate_sandbox(&id).await?;
    client.hibernate_sandbox(&id).await?;

    let stranger = Client::new(ClientConfig {
        url: daemon.url(),
        key: None,
    })?;
    refusal(
        stranger.exec(&id, &dayfly_e2e::shell("true")).await,
        "unauthorized",
    )?;
    refusal(stranger.wake_sandbox(&id).await, "unauthorized")?;
    // Neither does looking at it.
    client.lifecycle(&id).await?;
    client.list_sandboxes().await?;
    ensure!(client.get_sandbox(&id).await?.status == "hibernated");
    let asleep = generation(&daemon, &id)?;

    let start = Instant::now();
    let text = "cat /dev/shm/mark";
    let (first, second, third) = tokio::join!(
        exec(&client, &id, text),
        exec(&client, &id, text),
        exec(&client, &id, text)
    );
    figure!(
        "three execs on a sleeping sandbox took {:?}",
        start.elapsed()
    );
    for answer in [first?, second?, third?] {
        ensure!(answer.stdout.trim() == "here", "{answer:?}");
    }
    // One step to waking and one to running; a second wake would show.
    let generation = generation(&daemon, &id)?;
    ensure!(
        generation == asleep + 2,
        "from generation {asleep} to {generation}"
    );
    let woken = restored_engines(&daemon)?;
    ensure!(woken == [engine::engine_pid(&daemon, &id)?], "{woken:?}");
    client.wake_sandbox(&id).await?;
    ensure!(restored_engines(&daemon)? == woken, "it was woken again");
    daemon.finish().await
}

fn generation(daemon: &Daemon, id: &str) -> Result<u64> {
    let generation = engine::record(daemon, id)?["generation"].as_u64();
    generation.context("no generation")
}

/// Engines whose memory came from a capture. Those that are parked have a template's.
fn restored_engines(daemon: &Daemon) -> Result<Vec<i32>> {
    let mut engines = engine::engines_of_node(daemon)?;
    engines.retain(|pid| {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        maps.contains("memory-0.layer")
    });
    Ok(engines)
}
