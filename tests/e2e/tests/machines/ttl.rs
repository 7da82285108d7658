//! Deadlines and idleness of real sandboxes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{ChangeLifecycle, CreateSandbox, OnTimeout};
use dayfly_client::Client;
use dayfly_e2e::{Daemon, DaemonOptions, figure, output, patient, setting_or_skip, until};
use rustix::process::{Pid, Signal, kill_process};

const SANDBOXES: u64 = 10;
const LATE_MAX: Duration = Duration::from_secs(5);
const IDLE_SECONDS: u64 = 5;
/// For so long something that works must not be taken for idle.
const AWAKE: Duration = Duration::from_secs(12);

/// Control, stopped until this goes out of scope.
struct Stopped(Pid);

impl Stopped {
    fn new(daemon: &Daemon) -> Result<Self> {
        let pid = Pid::from_raw(daemon.role_pid("control")?).context("no pid")?;
        kill_process(pid, Signal::STOP)?;
        Ok(Self(pid))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// When each one may go at the earliest, and must have gone at the latest.
type Windows = BTreeMap<String, (Instant, Instant)>;

async fn set_deadlines(client: &Client, ids: &[String]) -> Result<Windows> {
    let mut windows = Windows::new();
    for (index, id) in (0..).zip(ids) {
        let seconds = 4 + index % 5;
        let change = ChangeLifecycle {
            ttl_seconds: Some(Some(seconds)),
            ..ChangeLifecycle::default()
        };
        let ttl = Duration::from_secs(seconds);
        let earliest = Instant::now() + ttl;
        client.set_lifecycle(id, &change).await?;
        windows.insert(
            id.clone(),
            (earliest, Instant::now() + ttl + patient(LATE_MAX)),
        );
    }
    Ok(windows)
}

#[tokio::test]
async fn ten_deadlines_are_kept_without_control() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let mut ids = Vec::new();
    for _ in 0..SANDBOXES {
        ids.push(client.create_sandbox(&CreateSandbox::default()).await?.id);
    }
    let mut windows = set_deadlines(&client, &ids).await?;
    let stopped = Stopped::new(&daemon)?;
    let mut latest = Duration::ZERO;
    until("all are gone", Duration::from_secs(30), || {
        let now = Instant::now();
        let gone: Vec<String> = windows
            .keys()
            .filter(|id| !daemon.path().join("node/sandboxes").join(id).exists())
            .cloned()
            .collect();
        let mut wrong = None;
        for id in gone {
            let Some((earliest, last)) = windows.remove(&id) else {
                continue;
            };
            let behind = now.saturating_duration_since(earliest);
            if now < earliest || now > last {
                let before = earliest.saturating_duration_since(now);
                wrong = Some(anyhow::anyhow!(
                    "{id} went {before:?} before or {behind:?} behind its deadline"
                ));
            }
            latest = latest.max(behind);
        }
        let is_over = windows.is_empty();
        async move {
            match wrong {
                Some(error) => Some(Err(error)),
                None => is_over.then_some(Ok(())),
            }
        }
    })
    .await??;
    figure!("{SANDBOXES} deadlines, none early; the latest was gone {latest:?} behind its own");
    drop(stopped);
    until(
        "control has heard of it",
        Duration::from_secs(10),
        || async { client.list_sandboxes().await.ok().filter(Vec::is_empty) },
    )
    .await?;
    daemon.finish().await
}

async fn create_that_sleeps(client: &Client) -> Result<String> {
    let request = CreateSandbox {
        idle_seconds: Some(IDLE_SECONDS),
        on_timeout: Some(OnTimeout::Hibernate),
        ..CreateSandbox::default()
    };
    Ok(client.create_sandbox(&request).await?.id)
}

async fn status(client: &Client, id: &str) -> Result<String> {
    Ok(client.get_sandbox(id).await?.status)
}

/// Waits until it sleeps, which must be between its deadline and a few seconds behind it.
async fn falls_asleep(client: &Client, id: &str, last_activity: Instant) -> Result<Duration> {
    let idle = Duration::from_secs(IDLE_SECONDS);
    until("it sleeps", idle + LATE_MAX, || async {
        (status(client, id).await.ok()? == "hibernated").then_some(())
    })
    .await?;
    let after = last_activity.elapsed();
    ensure!(after < idle + patient(LATE_MAX), "late: {after:?}");
    Ok(after)
}

#[tokio::test]
async fn silent_work_and_a_busy_lease_are_no_idleness() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let (worker, lessee, idle) = (
        create_that_sleeps(&client).await?,
        create_that_sleeps(&client).await?,
        create_that_sleeps(&client).await?,
    );
    let work = "nohup sh -c 'while :; do :; done' >/dev/null 2>&1 </dev/null &";
    output(&client, &worker, work).await?;
    output(&client, &lessee, "echo 60 > /run/dayfly/busy").await?;
    let before = Instant::now();
    output(&client, &idle, "true").await?;
    let start = Instant::now();

    let after = falls_asleep(&client, &idle, start).await?;
    ensure!(
        before.elapsed() >= Duration::from_secs(IDLE_SECONDS),
        "early: {after:?}"
    );
    figure!("an idle sandbox slept {after:?} after its last exec");
    // At least once, however late the idle one fell asleep.
    loop {
        for (id, what) in [(&worker, "works"), (&lessee, "has a lease")] {
            let status = status(&client, id).await?;
            ensure!(
                status == "running",
                "the one that {what} is {status} after {:?}",
                start.elapsed()
            );
        }
        if start.elapsed() >= AWAKE {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    // The positive control: both sleep once there is no reason not to.
    output(&client, &lessee, "echo 0 > /run/dayfly/busy").await?;
    let let_go = Instant::now();
    output(&client, &worker, "pkill -f '[w]hile'").await?;
    let killed = Instant::now();
    let first = falls_asleep(&client, &lessee, let_go).await?;
    let second = falls_asleep(&client, &worker, killed).await?;
    figure!("without its lease one slept after {first:?}, without its work one after {second:?}");
    daemon.finish().await
}

#[tokio::test]
async fn idleness_counts_from_the_last_exec_however_short() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = client.create_sandbox(&CreateSandbox::default()).await?.id;
    let idle = Duration::from_secs(IDLE_SECONDS);
    // Not a wait for a condition: for so long it does nothing, while that does not matter.
    tokio::time::sleep(idle).await;
    let last_exec = Instant::now();
    output(&client, &id, "true").await?;
    let change = ChangeLifecycle {
        idle_seconds: Some(Some(IDLE_SECONDS)),
        on_timeout: Some(OnTimeout::Hibernate),
        ..ChangeLifecycle::default()
    };
    let now = client.set_lifecycle(&id, &change).await?;
    figure!("after an exec it says: idle for {} s", now.idle_for_seconds);
    falls_asleep(&client, &id, Instant::now()).await?;
    let after = last_exec.elapsed();
    ensure!(after >= idle, "asleep {after:?} after its last exec");
    daemon.finish().await
}
