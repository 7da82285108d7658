//! Creating and deleting leaves nothing, however often.

use anyhow::{Result, ensure};
use dayfly_e2e::{Daemon, DaemonOptions, create, exec, processes, setting_or_skip};

async fn cycles(warm_up: usize, count: usize) -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    // Some first, so that what is allocated once is there before the first measurement.
    for _ in 0..warm_up {
        one_cycle(&client).await?;
    }
    let pids = [daemon.role_pid("node")?, daemon.role_pid("control")?];
    let before: u64 = pids
        .iter()
        .map(|pid| processes::anonymous_kib(*pid))
        .sum::<Result<u64>>()?;
    for _ in 0..count {
        one_cycle(&client).await?;
    }
    let after: u64 = pids
        .iter()
        .map(|pid| processes::anonymous_kib(*pid))
        .sum::<Result<u64>>()?;
    dayfly_e2e::figure!("{count} cycles; daemon memory {before} KiB before, {after} KiB after");
    // Allocators keep pages in steps; below a mebibyte a percentage says nothing.
    ensure!(
        after * 10 < before * 11 || after < before + 1024,
        "{before} KiB became {after} KiB"
    );
    ensure!(
        daemon.leftovers().await?.is_empty(),
        "something is left over"
    );
    daemon.finish().await
}

async fn one_cycle(client: &dayfly_client::Client) -> Result<()> {
    let sandbox = create(client, "base").await?;
    ensure!(exec(client, &sandbox.id, "true").await?.exit_code == 0);
    client.delete_sandbox(&sandbox.id).await?;
    Ok(())
}

#[tokio::test]
async fn twenty_cycles_leave_nothing() -> Result<()> {
    cycles(5, 20).await
}

#[tokio::test]
#[ignore = "soak: two hundred machines"]
async fn two_hundred_cycles_leave_nothing() -> Result<()> {
    cycles(40, 200).await
}
