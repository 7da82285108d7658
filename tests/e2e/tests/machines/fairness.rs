//! One sandbox that takes all it can get, and another beside it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::CreateSnapshot;
use dayfly_client::Client;
use dayfly_e2e::{Daemon, DaemonOptions, Times, create, exec, figure, output, setting_or_skip};

/// What one sandbox may do with its disks in a second, in MB.
const RATE_MB: u64 = 4;
/// What goes through at once after a pause.
const BURST_MB: u64 = 8 * RATE_MB;
const WRITTEN_MB: u64 = 64;
/// What is behind the burst takes this long, and a tenth less is a clock that ticks otherwise.
const HELD_UP: Duration = Duration::from_millis(900 * (WRITTEN_MB - BURST_MB) / RATE_MB);

const EXECS: usize = 200;
const RATIO_MAX: f64 = 2.0;
/// Of what the disk gives one sandbox that is alone, what a neighbour of one other gets at least.
const SHARE_MIN: f64 = 0.5;
const COPY_MB: u64 = 64;

fn rates(bytes: u64) -> DaemonOptions {
    DaemonOptions {
        arguments: ["--disk-rate", &bytes.to_string(), "--disk-operations", "0"]
            .map(str::to_owned)
            .to_vec(),
        ..DaemonOptions::default()
    }
}

/// Writes to the disk, not to memory.
async fn write(client: &Client, id: &str, megabytes: u64) -> Result<Duration> {
    let began = Instant::now();
    let text = format!(
        "dd if=/dev/zero of=/workspace/written bs=1000000 count={megabytes} conv=fsync 2>/dev/null"
    );
    output(client, id, &text).await?;
    Ok(began.elapsed())
}

/// The engine keeps to the rate whatever becomes of the sandbox: a machine that was woken, and whose
/// disk is another file by then, is a new engine.
#[tokio::test]
async fn a_sandbox_writes_no_faster_than_its_operator_lets_it() -> Result<()> {
    let setting = setting_or_skip!();
    let (free, client) = Daemon::ready(&setting, rates(0)).await?;
    let made = create(&client, "base").await?;
    let unheld = write(&client, &made.id, WRITTEN_MB).await?;
    figure!("{WRITTEN_MB} MB without a rate: {unheld:.1?}");
    ensure!(
        unheld < HELD_UP,
        "the disk itself is too slow for this: {unheld:?}"
    );
    free.finish().await?;

    let (held, client) = Daemon::ready(&setting, rates(RATE_MB * 1_000_000)).await?;
    let made = create(&client, "base").await?;
    let first = write(&client, &made.id, WRITTEN_MB).await?;
    client.hibernate_sandbox(&made.id).await?;
    client.wake_sandbox(&made.id).await?;
    let woken = write(&client, &made.id, WRITTEN_MB).await?;
    let wish = CreateSnapshot::default();
    client.create_snapshot(&made.id, &wish).await?;
    let captured = write(&client, &made.id, WRITTEN_MB).await?;
    figure!("at {RATE_MB} MB/s: {first:.1?}, after a sleep {woken:.1?}, a capture {captured:.1?}");
    for time in [first, woken, captured] {
        ensure!(time > HELD_UP, "{first:?}, {woken:?}, {captured:?}");
    }
    held.finish().await
}

/// Spins, reads, writes and sends until its sandbox ends.
const GREEDY: &str = "while :; do :; done & \
    while :; do dd if=/dev/zero of=/workspace/greedy bs=1M count=256 conv=fsync; done & \
    while :; do dd if=/workspace/greedy of=/dev/null bs=64k; echo 3 >/proc/sys/vm/drop_caches; done & \
    while :; do curl -s -m 1 http://192.0.2.1/; done & wait";

async fn execs(client: &Client, id: &str) -> Result<Times> {
    let mut times = Times::default();
    for _ in 0..EXECS {
        let began = Instant::now();
        exec(client, id, "true").await?;
        times.add(began.elapsed());
    }
    Ok(times)
}

#[tokio::test]
#[ignore = "soak: fairness, on a quiet machine"]
async fn a_sandbox_that_takes_all_leaves_its_neighbour_its_share() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let neighbour = create(&client, "base").await?.id;
    execs(&client, &neighbour).await?;
    let quiet = execs(&client, &neighbour).await?;
    let alone = write(&client, &neighbour, COPY_MB).await?;

    let greedy = create(&client, "base").await?.id;
    let start = format!("nohup sh -c '{GREEDY}' >/dev/null 2>&1 &");
    exec(&client, &greedy, &start).await?;
    let beside = execs(&client, &neighbour).await?;
    let shared = write(&client, &neighbour, COPY_MB).await?;
    let ratio = beside.p99_to(&quiet);
    let share = alone.as_secs_f64() / shared.as_secs_f64();
    figure!("exec quiet: {quiet}; beside one that takes all: {beside}; p99 {ratio:.2} times");
    figure!("{COPY_MB} MB alone {alone:.1?}, beside it {shared:.1?}: {share:.2} of it");
    // It is still at work: what was measured was measured beside it.
    let running = output(&client, &greedy, "pgrep -c dd").await?;
    let running: u32 = running.parse().context("a count")?;
    ensure!(running > 0, "it has stopped taking");
    ensure!(
        ratio <= RATIO_MAX,
        "p99 {ratio:.2} times, at most {RATIO_MAX}"
    );
    ensure!(
        share >= SHARE_MIN,
        "{share:.2} of the disk, at least {SHARE_MIN}"
    );
    daemon.finish().await
}
