//! A create restores; it never boots, and its memory is shared until it is written.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use dayfly_api::CreateSnapshot;
use dayfly_e2e::engine::engine_pid;
use dayfly_e2e::{Daemon, DaemonOptions, create, exec, processes, setting_or_skip};
use dayfly_host::memory::{MappingSelector, mapping_usage};
use rustix::io::{ReadWriteFlags, preadv2};

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

/// Looks at so many places of a file.
const PLACES: u64 = 64;

/// How many of them the host has in its memory.
fn in_memory(file: &File) -> Result<usize> {
    let step = file.metadata()?.len() / PLACES;
    let mut found = 0;
    for place in 0..PLACES {
        let mut byte = [0];
        let mut buffers = [IoSliceMut::new(&mut byte)];
        match preadv2(file, &mut buffers, place * step, ReadWriteFlags::NOWAIT) {
            Ok(_) => found += 1,
            Err(rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// The disk that all sandboxes of a template read from.
fn base_disk(daemon: &Daemon) -> Result<PathBuf> {
    let versions = daemon.path().join("node/templates/base");
    let mut entries = std::fs::read_dir(&versions)?;
    let version = entries.next().context("no version of base")??;
    Ok(version.path().join("base.img"))
}

#[tokio::test]
async fn a_create_and_a_capture_leave_the_hosts_pages_of_a_template_alone() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let file = File::open(base_disk(&daemon)?)?;
    let read_all = || -> Result<()> {
        let step = file.metadata()?.len() / PLACES;
        (0..PLACES).try_for_each(|place| Ok(file.read_exact_at(&mut [0], place * step)?))
    };
    read_all()?;
    ensure!(in_memory(&file)? == 64, "the host keeps no pages");
    let id = create(&client, "base").await?.id;
    exec(&client, &id, "true").await?;
    let left = in_memory(&file)?;
    ensure!(left > 60, "a create has left {left} of 64 places");
    read_all()?;
    let wish = CreateSnapshot::default();
    client.create_snapshot(&id, &wish).await?;
    let left = in_memory(&file)?;
    ensure!(left > 60, "a capture has left {left} of 64 places");
    daemon.finish().await
}
