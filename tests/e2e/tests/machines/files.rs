//! Files of real guests: large ones, many, and changing ones.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSandbox, FileChange};
use dayfly_client::{Client, FileBody, FileWatch, ListOptions, RemoveOptions, WatchItem};
use dayfly_e2e::{
    Daemon, DaemonOptions, create, exec, figure, patient, processes, setting_or_skip, shell,
};

const GROWTH_MAX_KIB: u64 = 32 << 10;
/// An exec beside a transfer, on two emulated cores that also move the bytes.
const BESIDE_MAX: Duration = Duration::from_secs(5);
/// Longer than anything here should take.
const DEADLINE: Duration = Duration::from_secs(300);

fn daemon_memory(daemon: &Daemon) -> Result<u64> {
    let pids = [daemon.role_pid("node")?, daemon.role_pid("control")?];
    pids.iter().map(|pid| processes::anonymous_kib(*pid)).sum()
}

/// Runs a program of this machine; gives the first word that it prints.
async fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let done = tokio::process::Command::new(program)
        .args(arguments)
        .output()
        .await?;
    ensure!(done.status.success(), "{program}: {done:?}");
    let text = String::from_utf8(done.stdout)?;
    Ok(text
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned())
}

/// What happens beside a transfer until it is over.
#[derive(Debug, Default)]
struct Beside {
    execs: u32,
    slowest: Duration,
    memory_max_kib: u64,
}

/// Does the work, and meanwhile runs execs in the same sandbox and looks at the daemon's memory.
async fn beside<T>(
    daemon: &Daemon,
    client: &Client,
    id: &str,
    work: impl Future<Output = Result<T>>,
) -> Result<(T, Beside)> {
    let mut work = std::pin::pin!(work);
    let mut seen = Beside::default();
    loop {
        let start = Instant::now();
        let answer = exec(client, id, "echo here");
        tokio::select! {
            outcome = work.as_mut() => return Ok((outcome?, seen)),
            answer = answer => {
                ensure!(answer?.stdout == "here\n");
                seen.execs += 1;
                seen.slowest = seen.slowest.max(start.elapsed());
                seen.memory_max_kib = seen.memory_max_kib.max(daemon_memory(daemon)?);
            }
        }
    }
}

async fn large_file(mebibytes: u64, disk_gb: Option<f64>) -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let request = CreateSandbox {
        template: Some("base".to_owned()),
        disk_gb,
        ..CreateSandbox::default()
    };
    let id = client.create_sandbox(&request).await?.id;
    let local = daemon.path().join("up.bin");
    let count = format!("count={mebibytes}");
    let target = format!("of={}", local.display());
    run(
        "dd",
        &["if=/dev/urandom", &target, "bs=1M", &count, "status=none"],
    )
    .await?;
    let hash = run("sha256sum", &[&local.display().to_string()]).await?;
    // One small file first, so that what is allocated once does not count as growth.
    let small = FileBody::from_bytes(vec![7; 1 << 20]);
    client.write_file(&id, "/workspace/small", small).await?;
    exec(&client, &id, "true").await?;
    let memory_before = daemon_memory(&daemon)?;

    let start = Instant::now();
    let up = async {
        let file = tokio::fs::File::open(&local).await?;
        let body = FileBody::from_reader(file, Some(mebibytes << 20));
        Ok(client.write_file(&id, "/workspace/large", body).await?)
    };
    let (written, up) = beside(&daemon, &client, &id, up).await?;
    let up_took = start.elapsed();
    ensure!(written.bytes == mebibytes << 20);
    let inside = hash_inside(&client, &id).await?;
    ensure!(inside.starts_with(&hash), "{inside} is not {hash}");

    let start = Instant::now();
    let back = daemon.path().join("down.bin");
    let down = async {
        let mut content = client.read_file(&id, "/workspace/large").await?;
        ensure!(content.length() == Some(mebibytes << 20));
        let mut file = tokio::fs::File::create(&back).await?;
        while let Some(piece) = content.next().await? {
            tokio::io::AsyncWriteExt::write_all(&mut file, &piece).await?;
        }
        Ok(tokio::io::AsyncWriteExt::flush(&mut file).await?)
    };
    let ((), down) = beside(&daemon, &client, &id, down).await?;
    let down_took = start.elapsed();
    let hash_back = run("sha256sum", &[&back.display().to_string()]).await?;
    ensure!(hash_back == hash, "what came back differs");

    let most = up.memory_max_kib.max(down.memory_max_kib);
    let grown = most.saturating_sub(memory_before);
    figure!(
        "{mebibytes} MiB: up {up_took:?} ({} execs beside it, slowest {:?}), down {down_took:?} \
         ({} execs, slowest {:?}), daemon grew {grown} KiB",
        up.execs,
        up.slowest,
        down.execs,
        down.slowest
    );
    ensure!(grown <= GROWTH_MAX_KIB, "the daemon grew by {grown} KiB");
    ensure!(up.execs > 0 && down.execs > 0, "no exec came through");
    let slowest = up.slowest.max(down.slowest);
    ensure!(slowest <= patient(BESIDE_MAX), "an exec took {slowest:?}");
    daemon.finish().await
}

#[tokio::test]
async fn a_hundred_mebibytes_go_up_and_down_beside_an_exec() -> Result<()> {
    large_file(100, None).await
}

#[tokio::test]
#[ignore = "soak: a gibibyte each way"]
async fn a_gibibyte_goes_up_and_down_beside_an_exec() -> Result<()> {
    large_file(1024, Some(4.0)).await
}

/// Takes minutes for a large file under emulation.
async fn hash_inside(client: &Client, id: &str) -> Result<String> {
    let request = dayfly_api::ExecRequest {
        timeout_seconds: Some(DEADLINE.as_secs_f64()),
        ..shell("sha256sum /workspace/large")
    };
    let told = client.exec(id, &request).await?;
    ensure!(told.exit_code == 0, "{told:?}");
    Ok(told.stdout)
}

async fn many_files(count: usize, directory: &str) -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    let make = format!(
        "python3 -c \"import os\nos.mkdir('{directory}')\nfor n in range({count}): \
         os.close(os.open('{directory}/f%06d' % n, os.O_CREAT))\""
    );
    let request = dayfly_api::ExecRequest {
        timeout_seconds: Some(DEADLINE.as_secs_f64()),
        ..shell(&make)
    };
    let made = client.exec(&id, &request).await?;
    ensure!(made.exit_code == 0, "{made:?}");
    figure!("{count} files made in {} ms", made.duration_ms);

    let mut options = ListOptions {
        limit: Some(1000),
        ..ListOptions::default()
    };
    let (mut listed, mut pages) = (Vec::with_capacity(count), 0);
    let (mut slowest, start) = (Duration::ZERO, Instant::now());
    loop {
        let asked = Instant::now();
        let page = client.list_directory_with(&id, directory, &options).await?;
        slowest = slowest.max(asked.elapsed());
        pages += 1;
        ensure!(page.entries.len() <= 1000);
        listed.extend(page.entries.into_iter().map(|entry| entry.name));
        if !page.has_more {
            break;
        }
        options.after = page.next_after;
    }
    figure!(
        "{count} files in {pages} pages, {:?} in all, slowest page {slowest:?}",
        start.elapsed()
    );
    ensure!(
        listed.is_sorted() && listed.len() == count,
        "{} names",
        listed.len()
    );
    ensure!(listed[count - 1] == format!("f{:06}", count - 1));
    // A client that does not page gets what one answer holds, and is told so.
    let whole = client.list_directory(&id, directory).await?;
    ensure!(whole.entries.len() == 10_000.min(count) && whole.truncated == (count > 10_000));
    let start = Instant::now();
    let options = RemoveOptions {
        recursive: true,
        user: None,
    };
    // However long it takes, it may be repeated until nothing is left.
    while client.remove_file(&id, directory, &options).await.is_err() {
        ensure!(start.elapsed() < DEADLINE, "the tree is not removed");
        if client.stat(&id, directory).await.is_err() {
            break;
        }
    }
    daemon.finish().await
}

#[tokio::test]
async fn twenty_thousand_files_are_listed_in_pages() -> Result<()> {
    // In memory: making them on an emulated disk would take most of a minute.
    many_files(20_000, "/dev/shm/many").await
}

#[tokio::test]
#[ignore = "soak: a hundred thousand files"]
async fn a_hundred_thousand_files_are_listed_in_pages() -> Result<()> {
    many_files(100_000, "/workspace/many").await
}

/// Everything up to a change of this path.
async fn watched(watch: &mut FileWatch, last: &str) -> Result<(Vec<FileChange>, usize)> {
    let (mut changes, mut overflows) = (Vec::new(), 0);
    let collect = async {
        while let Some(item) = watch.next().await? {
            match item {
                WatchItem::Overflow => overflows += 1,
                WatchItem::Change(change) if change.path == last => return Ok(()),
                WatchItem::Change(change) => changes.push(change),
            }
        }
        anyhow::bail!("the watch ended")
    };
    tokio::time::timeout(DEADLINE, collect)
        .await
        .context("the last change did not come")??;
    Ok((changes, overflows))
}

#[tokio::test]
async fn ten_thousand_changes_are_told_or_marked_as_lost() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    exec(&client, &id, "mkdir w").await?;
    let mut watch = client.watch_files(&id, "/workspace/w", true, None).await?;
    let start = Instant::now();
    let make = "python3 -c \"import os\nfor n in range(10000): \
                os.close(os.open('w/f%d' % n, os.O_CREAT))\nos.makedirs('w/new/deep')\n\
                open('w/new/deep/inside', 'w').close()\nos.rename('w/f0', 'w/moved')\"; touch w/last";
    let request = dayfly_api::ExecRequest {
        timeout_seconds: Some(DEADLINE.as_secs_f64()),
        ..shell(make)
    };
    let make = client.exec(&id, &request);
    let collect = watched(&mut watch, "/workspace/w/last");
    let (made, told) = tokio::join!(make, collect);
    let made = made?;
    ensure!(made.exit_code == 0);
    figure!("10,000 files made in {} ms", made.duration_ms);
    let (changes, overflows) = told?;
    let created: BTreeSet<&str> = changes
        .iter()
        .filter(|change| change.kind == "created")
        .map(|change| change.path.as_str())
        .collect();
    figure!(
        "{} changes told in {:?}, {overflows} overflows, {} files created",
        changes.len(),
        start.elapsed(),
        created.len()
    );
    let has_all = (0..10_000).all(|n| created.contains(format!("/workspace/w/f{n}").as_str()));
    ensure!(has_all || overflows > 0, "changes were lost without a mark");
    if overflows == 0 {
        ensure!(created.contains("/workspace/w/new/deep/inside"));
        let moved = changes.iter().find(|change| change.kind == "moved");
        let moved = moved.context("the move was not told")?;
        ensure!(moved.path.ends_with("/moved") && moved.from.as_deref() == Some("/workspace/w/f0"));
    }
    // The guest that is watched goes away, and the watch says so.
    client.delete_sandbox(&id).await?;
    let rest = async {
        loop {
            match watch.next().await {
                Ok(Some(_)) => {}
                Ok(None) => anyhow::bail!("the watch ended as if the directory were gone"),
                Err(error) => return Ok(error),
            }
        }
    };
    let end = tokio::time::timeout(patient(Duration::from_secs(20)), rest).await;
    figure!("end of the watch: {}", end.context("the watch goes on")??);
    daemon.finish().await
}
