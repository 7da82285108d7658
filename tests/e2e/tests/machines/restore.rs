//! A create restores; it never boots, and its memory is shared until it is written.

use anyhow::{Context, Result, ensure};
use dayfly_e2e::{Daemon, DaemonOptions, create, exec, processes, setting_or_skip};
use dayfly_host::memory::{MappingSelector, mapping_usage};

/// The record of a running sandbox, which names its engine process.
fn engine_pid(daemon: &Daemon, id: &str) -> Result<i32> {
    let path = daemon
        .path()
        .join("node/sandboxes")
        .join(id)
        .join("record.json");
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let pid = record["process"]["pid"]
        .as_i64()
        .context("the record names no process")?;
    Ok(i32::try_from(pid)?)
}

async fn uptime_seconds(client: &dayfly_client::Client, id: &str) -> Result<f64> {
    let result = exec(client, id, "cut -d' ' -f1 /proc/uptime").await?;
    Ok(result.stdout.trim().parse()?)
}

#[tokio::test]
async fn the_guests_kernel_did_not_boot_for_the_create() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let first = create(&client, "base").await?;
    let line = processes::command_line(engine_pid(&daemon, &first.id)?);
    // The engine was given a state to load and no kernel that it could have booted.
    ensure!(line.contains("-incoming"), "no incoming state: {line}");
    ensure!(
        !line.contains("-kernel") && !line.contains("-initrd"),
        "a kernel: {line}"
    );
    // A kernel that had booted for this create would be as old as the create. This one carries on
    // from the moment of the bake, and so does a second one that is created later.
    let second = create(&client, "base").await?;
    let ages = (
        uptime_seconds(&client, &first.id).await?,
        uptime_seconds(&client, &second.id).await?,
    );
    let took = first.boot_ms.context("no boot_ms")?;
    dayfly_e2e::figure!("create took {took} ms in the node; guest kernels are {ages:?} s old");
    ensure!(first.boot_mode == "restore");
    ensure!(
        ages.0 * 1000.0 > took as f64 + 1000.0,
        "the kernel is not older than the create"
    );
    ensure!(
        ages.1 * 1000.0 > took as f64 + 1000.0,
        "the kernel is not older than the create"
    );
    daemon.finish().await
}

#[tokio::test]
async fn idle_sandboxes_of_one_template_share_most_of_their_memory() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(create(&client, "base").await?.id);
    }
    for id in &ids {
        let pid = engine_pid(&daemon, id)?;
        let usage = mapping_usage(pid, &MappingSelector::PathSuffix("memory.img".into()))?;
        let shared = usage.shared_clean_bytes + usage.shared_dirty_bytes;
        dayfly_e2e::figure!(
            "guest memory of {id}: resident {} KiB, shared {} KiB, private {} KiB",
            usage.resident_bytes >> 10,
            shared >> 10,
            (usage.resident_bytes - shared) >> 10,
        );
        ensure!(usage.is_private(), "the mapping is shared");
        ensure!(
            shared * 2 > usage.resident_bytes,
            "less than half of it is shared"
        );
    }
    daemon.finish().await
}
