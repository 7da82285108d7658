//! The pause of a capture, however much has changed and however fast it changes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{Capture, CreateSandbox, CreateSnapshot, ForkSandbox};
use dayfly_client::Client;
use dayfly_e2e::{
    Daemon, DaemonOptions, Times, create, exec, figure, output, patient, setting_or_skip, until,
};

use crate::sizes::create_when_baked;

const SOON: Duration = Duration::from_secs(60);

/// Adds one to the first byte of each page, over and over, as fast as Python can. All pages are
/// equal after each round, so a page that a copy missed once differs for ever, and is told. A
/// signal makes the program miss one on purpose.
const WRITER: &str = r#"
import mmap, os, signal, sys
pages = int(sys.argv[1]) * 256
memory = mmap.mmap(-1, pages * 4096)
more = bytes((value + 1) % 256 for value in range(256))
def miss(*_):
    memory[4096 * 7] = (memory[4096 * 7] + 9) % 256
signal.signal(signal.SIGUSR1, miss)
rounds = 0
while True:
    now = memory[::4096]
    if len(set(now)) != 1:
        open('/tmp/torn', 'a').write(f'round {rounds}: {sorted(set(now))}\n')
        os._exit(1)
    memory[::4096] = now.translate(more)
    rounds += 1
    if rounds % 8 == 0:
        open('/tmp/rounds.new', 'w').write(str(rounds))
        os.rename('/tmp/rounds.new', '/tmp/rounds')
"#;

async fn start(client: &Client, id: &str, program: &str, argument: u64) -> Result<()> {
    let file = format!("cat > /tmp/program.py <<'END'\n{program}\nEND\n");
    output(client, id, &file).await?;
    let started = format!(
        "setsid nohup python3 /tmp/program.py {argument} </dev/null >/tmp/program.out 2>&1 & \
         echo $! > /tmp/program.pid"
    );
    output(client, id, &started).await?;
    Ok(())
}

async fn rounds_of(client: &Client, id: &str) -> Result<u64> {
    let text = output(client, id, "cat /tmp/rounds 2>/dev/null || echo 0").await?;
    Ok(text.trim().parse()?)
}

/// Waits until the writer has gone over its memory so many times more, and has missed nothing.
async fn goes_on(client: &Client, id: &str, rounds: u64) -> Result<()> {
    let before = rounds_of(client, id).await?;
    until("the writer goes on", patient(SOON), || async {
        let now = rounds_of(client, id).await.ok()?;
        (now >= before + rounds || is_torn(client, id).await).then_some(())
    })
    .await?;
    let torn = output(
        client,
        id,
        "cat /tmp/torn /tmp/program.out 2>/dev/null || true",
    )
    .await?;
    ensure!(torn.trim().is_empty(), "{id}: {torn}");
    Ok(())
}

async fn is_torn(client: &Client, id: &str) -> bool {
    let torn = output(client, id, "test -e /tmp/torn && echo torn || true").await;
    torn.is_ok_and(|torn| torn.trim() == "torn")
}

#[tokio::test]
async fn a_guest_that_writes_without_end_is_captured_in_one_instant() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let source = create(&client, "base").await?.id;
    start(&client, &source, WRITER, 60).await?;
    goes_on(&client, &source, 16).await?;
    for _ in 0..2 {
        let forked = client
            .fork_sandbox(&source, &ForkSandbox::default())
            .await?;
        tell("60 MiB written without end", &forked.capture);
        let child = forked.children.first().context("no child")?;
        goes_on(&client, &child.id, 16).await?;
        goes_on(&client, &source, 16).await?;
        client.delete_sandbox(&child.id).await?;
    }
    // The program would see it. One that is missed while a round is on its way to memory is written
    // over, so it is told again.
    until("a page that is missed is told", patient(SOON), || async {
        let miss = "kill -USR1 $(cat /tmp/program.pid)";
        let _gone = exec(&client, &source, miss).await.ok()?;
        is_torn(&client, &source).await.then_some(())
    })
    .await?;
    daemon.finish().await
}

fn tell(what: &str, capture: &Capture) {
    figure!(
        "{what}: paused {:.1} ms (device {:.1}, memory {:.1}, disk {:.1}), frozen {:.1} ms, \
         {:.0} ms in all, {} MiB of memory",
        capture.pause_ms,
        capture.device_ms,
        capture.memory_ms,
        capture.disk_ms,
        capture.frozen_ms,
        capture.total_ms,
        capture.memory_bytes >> 20
    );
}

/// What sessions hold, in MiB.
const SESSIONS: [u64; 3] = [50, 300, 2000];
/// Room for the largest.
const MEMORY_MIB: u64 = 2560;
const TURNS: usize = 20;
/// The longest pause, over the shortest.
const GROWTH_MAX: f64 = 1.5;
/// What memory adds to the pause of a session of 300 MiB.
const OVER_FLOOR_MAX: Duration = Duration::from_millis(30);
/// What memory adds to the pause of a checkpoint of a session that waits for its model, of any size.
/// The rest is the engine's own.
const CHECKPOINT_MEMORY_MAX: Duration = Duration::from_millis(15);
/// The whole of it.
const CHECKPOINT_MAX: Duration = Duration::from_millis(25);

const SESSION: &str = r#"
import sys, time
memory = bytearray(int(sys.argv[1]) << 20)
memory[::4096] = bytes(1 + index % 255 for index in range(int(sys.argv[1]) * 256))
open('/tmp/ready', 'w').close()
while True:
    time.sleep(3600)
"#;

#[derive(Debug, Default)]
struct Pauses {
    pause: Times,
    frozen: Times,
    /// The engine's stop, device state, the disk and the engine's start.
    floor: Times,
    /// Of those, the engine's stop with its device state, and the disk.
    device: Times,
    disk: Times,
    memory: Times,
    total: Times,
}

impl Pauses {
    fn add(&mut self, capture: &Capture) {
        let time = |ms: f64| Duration::from_secs_f64(ms / 1000.0);
        self.pause.add(time(capture.pause_ms));
        self.frozen.add(time(capture.frozen_ms));
        self.floor.add(time(capture.pause_ms - capture.memory_ms));
        self.device.add(time(capture.device_ms));
        self.disk.add(time(capture.disk_ms));
        self.memory.add(time(capture.memory_ms));
        self.total.add(time(capture.total_ms));
    }

    fn tell(&self, what: &str) {
        figure!("{what}: pause {}; of it memory {}", self.pause, self.memory);
        figure!("{what}: floor {}; frozen {}", self.floor, self.frozen);
        figure!(
            "{what}: of the floor device {}; disk {}",
            self.device,
            self.disk
        );
        figure!("{what}: in all {}", self.total);
    }
}

#[tokio::test]
#[ignore = "soak: twenty forks and twenty snapshots of each of three sessions, on a quiet machine"]
async fn a_pause_does_not_grow_with_what_changed() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let request = CreateSandbox {
        template: Some("base".to_owned()),
        memory_mb: Some(MEMORY_MIB),
        ..CreateSandbox::default()
    };
    let mut sessions = Vec::new();
    for mib in SESSIONS {
        let sandbox = create_when_baked(&client, &request).await?.id;
        start(&client, &sandbox, SESSION, mib).await?;
        until("the session is set up", patient(SOON), || async {
            let ready = exec(&client, &sandbox, "test -e /tmp/ready").await.ok()?;
            (ready.exit_code == 0).then_some(())
        })
        .await?;
        sessions.push((mib, sandbox, Pauses::default(), Pauses::default()));
    }
    // In turns, so that none of them has a better hour. The first of each is not counted.
    for turn in 0..=TURNS {
        for (_, sandbox, forks, snapshots) in &mut sessions {
            let forked = client
                .fork_sandbox(sandbox, &ForkSandbox::default())
                .await?;
            let child = forked.children.first().context("no child")?;
            client.delete_sandbox(&child.id).await?;
            let snapshot = client
                .create_snapshot(sandbox, &CreateSnapshot::default())
                .await?;
            client.delete_snapshot(&snapshot.id).await?;
            if turn > 0 {
                forks.add(&forked.capture);
                snapshots.add(&snapshot.capture);
            }
            rest(&client, sandbox, turn).await?;
        }
    }
    for (mib, _, forks, snapshots) in &sessions {
        forks.tell(&format!("fork, {mib} MiB"));
        snapshots.tell(&format!("snapshot, {mib} MiB"));
    }
    judge(&sessions)?;
    daemon.finish().await
}

/// A machine lies on no more than so many sealed disks; a sleep begins anew.
async fn rest(client: &Client, sandbox: &str, turn: usize) -> Result<()> {
    if turn % 10 == 9 {
        client.hibernate_sandbox(sandbox).await?;
        exec(client, sandbox, "true").await?;
    }
    Ok(())
}

fn judge(sessions: &[(u64, String, Pauses, Pauses)]) -> Result<()> {
    let p50 = |pauses: &Pauses| pauses.pause.percentile(50);
    let forks = || sessions.iter().map(|(_, _, forks, _)| p50(forks));
    let (least, most) = (forks().min(), forks().max());
    let (least, most) = least.zip(most).context("nothing was measured")?;
    let growth = most.as_secs_f64() / least.as_secs_f64();
    figure!("the longest pause of a fork is {growth:.2} times the shortest");
    ensure!(growth <= GROWTH_MAX, "{growth:.2} times");
    let over = sessions[1].2.memory.percentile(50);
    ensure!(over <= OVER_FLOOR_MAX, "{over:?} over the floor");
    for (mib, _, _, snapshots) in sessions {
        let memory = snapshots.memory.percentile(50);
        ensure!(
            memory <= CHECKPOINT_MEMORY_MAX,
            "snapshot, {mib} MiB: memory {memory:?}"
        );
        let pause = p50(snapshots);
        ensure!(pause <= CHECKPOINT_MAX, "snapshot, {mib} MiB: {pause:?}");
    }
    Ok(())
}
