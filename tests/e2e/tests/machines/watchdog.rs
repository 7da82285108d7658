//! A process of the daemon that is stopped and never goes on by itself.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_e2e::{Daemon, DaemonOptions, create, exec, patient, setting_or_skip, until};
use rustix::process::{Pid, Signal, kill_process};

/// The supervisor waits for 20 s, and both processes are up again in a few.
const BACK_WITHIN: Duration = Duration::from_secs(30);

/// Stops a process, and waits until another one does its work.
async fn stop_and_wait(daemon: &Daemon, role: &str) -> Result<Duration> {
    let old = daemon.role_pid(role)?;
    let pid = Pid::from_raw(old).context("no process")?;
    kill_process(pid, Signal::STOP)?;
    let began = Instant::now();
    let limit = patient(BACK_WITHIN);
    until("another process takes over", limit, || async {
        daemon.role_pid(role).ok().filter(|pid| *pid != old)
    })
    .await?;
    let client = daemon.client()?;
    until("the API answers", limit, || async {
        client.list_sandboxes().await.ok()
    })
    .await?;
    Ok(began.elapsed())
}

#[tokio::test]
async fn a_stopped_process_is_started_again_and_sandboxes_go_on() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    // In memory only: a machine that was restored anew would not have it.
    exec(&client, &id, &format!("echo {id} > /dev/shm/mark")).await?;
    for role in ["control", "node"] {
        let took = stop_and_wait(&daemon, role).await.context(role)?;
        dayfly_e2e::figure!("a stopped {role} was replaced after {took:?}");
        ensure!(
            took >= Duration::from_secs(15),
            "{role}: killed after {took:?}"
        );
        until("the sandbox answers", patient(BACK_WITHIN), || async {
            let answer = exec(&client, &id, "cat /dev/shm/mark").await.ok()?;
            (answer.stdout.trim() == id).then_some(())
        })
        .await
        .context(role)?;
    }
    // Nobody is killed who says that it lives.
    let before = [daemon.role_pid("control")?, daemon.role_pid("node")?];
    tokio::time::sleep(Duration::from_secs(25)).await;
    let after = [daemon.role_pid("control")?, daemon.role_pid("node")?];
    ensure!(before == after, "a process that works was killed");
    daemon.finish().await
}
