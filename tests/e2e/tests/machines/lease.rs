//! The daemon dies in the middle of a capture: the guest goes on by itself, and loses nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::CreateSnapshot;
use dayfly_client::Client;
use dayfly_e2e::{
    Daemon, DaemonOptions, create, engine, figure, keeper, output, patient, setting_or_skip, until,
};

/// The lease of a frozen guest is 20 s; a stopped engine is resumed at once.
const RUNS_WITHIN: Duration = Duration::from_secs(30);
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// Takes one snapshot after the other until the daemon is gone.
async fn keep_capturing(client: Client, id: String) -> usize {
    let mut taken = 0;
    while client
        .create_snapshot(&id, &CreateSnapshot::default())
        .await
        .is_ok()
    {
        taken += 1;
    }
    taken
}

/// Waits, without any daemon, until the engine's processors run and user code uses them.
async fn runs_by_itself(run_directory: &Path, pid: i32) -> Result<Duration> {
    let start = Instant::now();
    until("the engine runs", RUNS_WITHIN, || async {
        let status = engine::monitor_status(run_directory).ok()?;
        (status == "running").then_some(())
    })
    .await?;
    // A busy loop of the user's is in the guest: while it is frozen the engine does nearly nothing.
    let mut before = (Instant::now(), engine::processor_time(pid)?);
    until("user code runs", RUNS_WITHIN, || {
        let now = (Instant::now(), engine::processor_time(pid));
        let wall = now.0.duration_since(before.0);
        let is_busy = if wall < Duration::from_millis(500) {
            None
        } else {
            let used = now.1.map(|used| used.saturating_sub(before.1));
            let busy = used.is_ok_and(|used| used * 4 > wall);
            before = (now.0, engine::processor_time(pid).unwrap_or(before.1));
            busy.then_some(())
        };
        async move { is_busy }
    })
    .await?;
    let took = start.elapsed();
    ensure!(took < patient(RUNS_WITHIN), "only after {took:?}");
    Ok(took)
}

async fn kill_in_captures(moments_ms: &[u64]) -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    keeper::start(&client, &id, 40).await?;
    let busy = "setsid nohup sh -c 'while :; do :; done' >/dev/null 2>&1 </dev/null &";
    output(&client, &id, busy).await?;
    let hash = keeper::ask(&client, &id, "hash").await?;
    let pid = engine::engine_pid(&daemon, &id)?;
    let run_directory = engine::run_directory(&daemon, &id)?;
    for moment_ms in moments_ms {
        let capturing = tokio::spawn(keep_capturing(daemon.client()?, id.clone()));
        // Not a wait for a condition: the point at which the kill lands is what is varied.
        tokio::time::sleep(Duration::from_millis(*moment_ms)).await;
        daemon.kill_all().await?;
        let taken = capturing.await?;
        let took = runs_by_itself(&run_directory, pid)
            .await
            .with_context(|| format!("a kill after {moment_ms} ms"))?;
        figure!("killed after {moment_ms} ms and {taken} snapshots; it ran again after {took:?}");
        daemon.start_again().await?;
        let client = daemon.client()?;
        until("it answers", ANSWERS_WITHIN, || async {
            output(&client, &id, "true").await.ok()
        })
        .await
        .with_context(|| format!("a kill after {moment_ms} ms"))?;
        ensure!(engine::engine_pid(&daemon, &id)? == pid, "another engine");
        ensure!(keeper::ask(&client, &id, "hash").await? == hash);
        keeper::counts(&client, &id).await?;
        // What was listed as taken can be had back, whole.
        for snapshot in client.list_snapshots(None).await? {
            client.delete_snapshot(&snapshot.id).await?;
        }
    }
    let client = daemon.client()?;
    let taken = client
        .create_snapshot(&id, &CreateSnapshot::default())
        .await?;
    client.rollback_sandbox(&id, &taken.id).await?;
    ensure!(keeper::ask(&client, &id, "hash").await? == hash);
    ensure!(
        daemon.leftovers().await?.is_empty(),
        "something is left over"
    );
    daemon.finish().await
}

#[tokio::test]
async fn a_guest_goes_on_when_the_daemon_dies_in_a_capture() -> Result<()> {
    kill_in_captures(&[300]).await
}

#[tokio::test]
#[ignore = "soak: fifteen kills"]
async fn a_guest_goes_on_whenever_the_daemon_dies() -> Result<()> {
    let moments: Vec<u64> = (0..15).map(|step| 20 + step * 97).collect();
    kill_in_captures(&moments).await
}
