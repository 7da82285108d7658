//! Forks of forks: however deep, nobody needs an ancestor to exist, and all bytes come back.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSandbox, CreateSnapshot, ForkSandbox, Sandbox};
use dayfly_client::Client;
use dayfly_e2e::{
    Daemon, DaemonOptions, create, engine, figure, keeper, output, setting_or_skip, until,
};

const COLLECTED_WITHIN: Duration = Duration::from_secs(60);

/// Bytes on disk under a directory.
fn size(directory: &Path) -> Result<u64> {
    let output = std::process::Command::new("du")
        .args(["-s", "--block-size=1"])
        .arg(directory)
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let bytes = text.split_whitespace().next().context("du said nothing")?;
    Ok(bytes.parse()?)
}

fn names(directory: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(directory)? {
        names.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

fn entries(directory: &Path) -> Result<usize> {
    Ok(names(directory)?.len())
}

/// The capture that a sandbox sleeps in, and those that it lies on.
fn needed(daemon: &Daemon, id: &str) -> Result<BTreeSet<String>> {
    let record = engine::record(daemon, id)?;
    let asleep_in = record["asleep_in"].as_str().context("it does not sleep")?;
    let path = daemon.path().join("node/captures").join(asleep_in);
    let text = std::fs::read(path.join("manifest.json"))?;
    let manifest: serde_json::Value = serde_json::from_slice(&text)?;
    let below = ["memory_below", "disk_below"].map(|name| manifest[name].as_array().cloned());
    let below = below.into_iter().flatten().flatten();
    let mut needed: BTreeSet<String> = below
        .filter_map(|id| id.as_str().map(str::to_owned))
        .collect();
    needed.insert(asleep_in.to_owned());
    Ok(needed)
}

/// Adds what only this level and those below it have.
async fn add_level(client: &Client, id: &str, level: usize) -> Result<()> {
    // Two digits, so that names sort as levels do.
    let name = format!("level-{level:02}");
    let text = format!("head -c 300000 /dev/urandom > {name}; sha256sum {name}");
    let told = output(client, id, &text).await?;
    let hash = told.split_whitespace().next().context("no hash")?;
    keeper::ask(client, id, &format!("set {name} {hash}")).await?;
    Ok(())
}

/// Every level's file is what the value in memory says, and the session is as it was.
async fn is_whole(client: &Client, id: &str, levels: usize, hash: &str) -> Result<()> {
    let sums = output(client, id, "sha256sum level-*").await?;
    let mut on_disk: Vec<String> = sums
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(hash, name)| format!("{name}={hash}"))
        .collect();
    on_disk.sort();
    ensure!(on_disk.len() == levels, "{sums}");
    let in_memory = keeper::ask(client, id, "values").await?;
    ensure!(
        in_memory == on_disk.join(" "),
        "{in_memory} in memory, {on_disk:?} on disk"
    );
    let now = keeper::ask(client, id, "hash").await?;
    ensure!(now == hash, "the session of {id} changed");
    Ok(())
}

/// The next generation: a fork, or at times a new sandbox of a snapshot.
async fn descend(client: &Client, id: &str, level: usize) -> Result<Sandbox> {
    if level.is_multiple_of(3) {
        let taken = client
            .create_snapshot(id, &CreateSnapshot::default())
            .await?;
        let request = CreateSandbox {
            from_snapshot: Some(taken.id),
            ..CreateSandbox::default()
        };
        return Ok(client.create_sandbox(&request).await?);
    }
    let forked = client.fork_sandbox(id, &ForkSandbox::default()).await?;
    forked.children.into_iter().next().context("no child")
}

/// How long children of a sandbox take until they are ready: the median of some.
async fn ready_ms(client: &Client, id: &str, samples: usize) -> Result<u64> {
    let mut times = Vec::new();
    for _ in 0..samples {
        let forked = client.fork_sandbox(id, &ForkSandbox::default()).await?;
        let child = forked.children.first().context("no child")?;
        times.push(child.boot_ms.context("no boot_ms")?);
        client.delete_sandbox(&child.id).await?;
    }
    times.sort_unstable();
    figure!("children are ready after {times:?} ms");
    times.get(samples / 2).copied().context("no sample")
}

async fn depth(levels: usize, samples: usize, slower_max: f64) -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let captures = daemon.path().join("node/captures");
    let mut line = vec![create(&client, "base").await?.id];
    keeper::start(&client, &line[0], 10).await?;
    let first_ms = ready_ms(&client, &line[0], samples).await?;
    for level in 1..=levels {
        let parent = line.last().context("no parent")?;
        let child = descend(&client, parent, level).await?;
        add_level(&client, &child.id, level).await?;
        // Only two live at a time: as many machines as there are levels would not fit.
        if level >= 2 {
            client.delete_sandbox(&line[level - 2]).await?;
        }
        line.push(child.id);
    }
    let deepest = line.pop().context("nobody")?;
    let hash = keeper::ask(&client, &deepest, "hash").await?;
    is_whole(&client, &deepest, levels, &hash).await?;
    let last_ms = ready_ms(&client, line.last().context("no parent")?, samples).await?;
    let full = size(&captures)?;
    figure!("{levels} levels; captures take {} KiB", full >> 10);

    client
        .delete_sandbox(line.last().context("no parent")?)
        .await?;
    for snapshot in client.list_snapshots(None).await? {
        client.delete_snapshot(&snapshot.id).await?;
    }
    is_whole(&client, &deepest, levels, &hash).await?;
    // It sleeps and wakes on what is left, which is when a missing layer would show.
    client.hibernate_sandbox(&deepest).await?;
    let start = Instant::now();
    let settled = until("ancestors are collected", COLLECTED_WITHIN, || async {
        let left = names(&captures).ok()?;
        (left == needed(&daemon, &deepest).ok()?).then_some(())
    })
    .await;
    figure!(
        "asleep on {} captures of {} KiB after {:?}",
        entries(&captures)?,
        size(&captures)? >> 10,
        start.elapsed()
    );
    is_whole(&client, &deepest, levels, &hash).await?;
    settled?;
    client.delete_sandbox(&deepest).await?;
    until("all bytes come back", COLLECTED_WITHIN, || async {
        (entries(&captures).ok()? == 0).then_some(())
    })
    .await?;
    ensure!(size(&captures)? < full, "the directory did not shrink");
    let slower = last_ms as f64 / first_ms.max(1) as f64;
    figure!("children at depth {levels} take {slower:.2} times as long as at depth 1");
    ensure!(slower < slower_max, "{first_ms} ms became {last_ms} ms");
    daemon.finish().await
}

#[tokio::test]
async fn four_levels_need_no_ancestor() -> Result<()> {
    // A machine that is shared with a build is no place for a figure; the soak has it.
    depth(4, 1, 3.0).await
}

#[tokio::test]
#[ignore = "soak: twenty levels"]
async fn twenty_levels_need_no_ancestor_and_are_as_fast() -> Result<()> {
    depth(20, 9, 1.2).await
}

/// Each capture puts one more layer under a disk, and a sleep keeps them. The engine's own name for
/// the disk is cut off once it has too many.
#[tokio::test]
#[ignore = "soak: eighty captures"]
async fn one_sandbox_is_captured_eighty_times() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    for number in 1..=80 {
        let taken = client
            .create_snapshot(&id, &CreateSnapshot::default())
            .await;
        taken.with_context(|| format!("snapshot {number}"))?;
        if number % 6 == 0 {
            output(&client, &id, &format!("echo {number} >> kept; sync kept")).await?;
            client.hibernate_sandbox(&id).await?;
            client.wake_sandbox(&id).await?;
        }
    }
    let lines = output(&client, &id, "wc -l < kept").await?;
    ensure!(lines.trim() == "13", "{lines}");
    for snapshot in client.list_snapshots(None).await? {
        client.delete_snapshot(&snapshot.id).await?;
    }
    daemon.finish().await
}
