//! SIGKILL of the node, of the control process and of everything: sandboxes go on.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_e2e::{Daemon, DaemonOptions, create, exec, patient, processes, setting_or_skip, until};

const ADOPTED_WITHIN: Duration = Duration::from_secs(5);

fn engines(daemon: &Daemon, ids: &[String]) -> Result<Vec<(i64, u64)>> {
    ids.iter()
        .map(|id| {
            let path = daemon
                .path()
                .join("node/sandboxes")
                .join(id)
                .join("record.json");
            let record: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
            let process = &record["process"];
            let pid = process["pid"].as_i64().context("no pid")?;
            Ok((
                pid,
                process["start_time_ticks"]
                    .as_u64()
                    .context("no start time")?,
            ))
        })
        .collect()
}

/// Every sandbox answers, with what it had in memory, from the process that it had.
async fn all_answer(daemon: &Daemon, ids: &[String], before: &[(i64, u64)]) -> Result<()> {
    let client = daemon.client()?;
    let start = Instant::now();
    for id in ids {
        until("an adopted sandbox answers", ADOPTED_WITHIN, || async {
            let answer = exec(&client, id, "cat /dev/shm/mark").await.ok()?;
            (answer.stdout.trim() == id).then_some(())
        })
        .await?;
    }
    dayfly_e2e::figure!(
        "{} sandboxes answered after {:?}",
        ids.len(),
        start.elapsed()
    );
    ensure!(
        engines(daemon, ids)? == before,
        "other engine processes than before"
    );
    Ok(())
}

#[tokio::test]
async fn a_killed_daemon_leaves_its_sandboxes_running_and_takes_them_over() -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = create(&client, "base").await?.id;
        // In memory only: a machine that was restored anew would not have it.
        exec(&client, &id, &format!("echo {id} > /dev/shm/mark")).await?;
        ids.push(id);
    }
    let before = engines(&daemon, &ids)?;

    let node = daemon.role_pid("node")?;
    Daemon::kill(node)?;
    until("the node is started again", ADOPTED_WITHIN, || async {
        daemon.role_pid("node").ok().filter(|pid| *pid != node)
    })
    .await?;
    all_answer(&daemon, &ids, &before)
        .await
        .context("after a kill of the node")?;

    let control = daemon.role_pid("control")?;
    Daemon::kill(control)?;
    until("control is started again", ADOPTED_WITHIN, || async {
        daemon
            .role_pid("control")
            .ok()
            .filter(|pid| *pid != control)
    })
    .await?;
    all_answer(&daemon, &ids, &before)
        .await
        .context("after a kill of control")?;

    daemon.kill_all().await?;
    daemon.start_again().await?;
    all_answer(&daemon, &ids, &before)
        .await
        .context("after a kill of everything")?;

    let listed = daemon.client()?.list_sandboxes().await?;
    ensure!(listed.len() == 3, "{} sandboxes are listed", listed.len());
    ensure!(
        daemon.leftovers().await?.is_empty(),
        "something is left over"
    );
    daemon.finish().await
}

#[tokio::test]
async fn a_stopped_daemon_leaves_its_sandboxes_running() -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    exec(&client, &id, &format!("echo {id} > /dev/shm/mark")).await?;
    let ids = vec![id];
    let before = engines(&daemon, &ids)?;
    daemon.terminate().await?;
    let start = Instant::now();
    daemon.start_again().await?;
    let ready = start.elapsed();
    dayfly_e2e::figure!("a later start was ready after {ready:?}");
    ensure!(
        ready < patient(Duration::from_secs(2)),
        "a later start took {ready:?}"
    );
    all_answer(&daemon, &ids, &before).await?;
    daemon.finish().await
}

/// What it leaves would keep its port and its database, and nobody would watch it.
#[tokio::test]
async fn a_killed_supervisor_takes_both_processes_along() -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, _) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let ids = vec![create(&daemon.client()?, "base").await?.id];
    exec(
        &daemon.client()?,
        &ids[0],
        &format!("echo {} > /dev/shm/mark", ids[0]),
    )
    .await?;
    let before = engines(&daemon, &ids)?;
    let roles = daemon.kill_supervisor().await?;
    let patience = Duration::from_secs(5);
    until("both are gone", patience, || async {
        let is_gone = |pid: &i32| processes::command_line(*pid).is_empty();
        roles.iter().all(is_gone).then_some(())
    })
    .await?;
    daemon.start_again().await?;
    all_answer(&daemon, &ids, &before).await?;
    daemon.finish().await
}

/// A kill at different points of a create and of a delete: the sandbox is whole or gone.
#[tokio::test]
async fn a_kill_in_the_middle_leaves_a_sandbox_whole_or_gone() -> Result<()> {
    kills_in_the_middle(&[15, 150]).await
}

#[tokio::test]
#[ignore = "soak: twelve points"]
async fn kills_at_many_points_leave_a_sandbox_whole_or_gone() -> Result<()> {
    kills_in_the_middle(&[0, 5, 15, 30, 60, 90, 120, 150, 200, 250, 300, 500]).await
}

async fn kills_in_the_middle(delays_ms: &[u64]) -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, _) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    for delay_ms in delays_ms.iter().copied() {
        let client = daemon.client()?;
        let begun = tokio::spawn({
            let client = client.clone();
            async move { create(&client, "base").await }
        });
        // Not a wait for a condition: the point at which the kill lands is what is varied.
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        daemon.kill_all().await?;
        let _ = begun.await?;
        daemon.start_again().await?;
        whole_or_gone(&daemon)
            .await
            .with_context(|| format!("create, {delay_ms} ms"))?;

        let client = daemon.client()?;
        let id = create(&client, "base").await?.id;
        let begun = tokio::spawn({
            let (client, id) = (client.clone(), id.clone());
            async move { client.delete_sandbox(&id).await }
        });
        tokio::time::sleep(Duration::from_millis(delay_ms / 4)).await;
        daemon.kill_all().await?;
        let _ = begun.await?;
        daemon.start_again().await?;
        whole_or_gone(&daemon)
            .await
            .with_context(|| format!("delete, {delay_ms} ms"))?;
    }
    daemon.finish().await
}

async fn whole_or_gone(daemon: &Daemon) -> Result<()> {
    let client = daemon.client()?;
    for sandbox in client.list_sandboxes().await? {
        let id = sandbox.id;
        until(
            "a listed sandbox answers or goes",
            Duration::from_secs(20),
            || async {
                match client.get_sandbox(&id).await {
                    Ok(now) if now.status == "running" => {
                        let answer = exec(&client, &id, "true").await.ok()?;
                        (answer.exit_code == 0).then_some(())
                    }
                    // Rows of creates that were cut short are dropped by the reconciler in time.
                    Ok(now) => (now.status == "creating" || now.status == "deleting").then_some(()),
                    Err(_) => Some(()),
                }
            },
        )
        .await?;
    }
    let left = until("nothing is left over", Duration::from_secs(10), || async {
        let left = daemon.leftovers().await.ok()?;
        left.is_empty().then_some(())
    })
    .await;
    if left.is_err() {
        dayfly_e2e::figure!("{:#?}", daemon.leftovers().await?);
    }
    left
}
