//! Memory that a guest has freed goes back to the host, and nothing that it uses is lost by that.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_client::Client;
use dayfly_e2e::{
    Daemon, DaemonOptions, create, engine, exec, figure, keeper, output, patient, setting_or_skip,
    until,
};
use dayfly_host::guest_memory::GuestMemory;

const MIB: u64 = 1 << 20;
/// What the guest uses and frees, and what it keeps meanwhile: a guest of 512 MiB has little left.
const USED_MIB: u64 = 300;
const KEPT_MIB: u32 = 60;
/// How much of it is back, in hundredths, and how soon.
const BACK_PERCENT: u64 = 80;
const BACK_WITHIN: Duration = Duration::from_secs(15);
const SOON: Duration = Duration::from_secs(60);
/// What the daemon logs of each time.
const TOLD: &str = "memory that the guest has freed was given back";

/// Holds memory with another byte in each page until it is told to go.
const USER: &str = r#"
import mmap, os, sys, time
pages = int(sys.argv[1]) * 256
memory = mmap.mmap(-1, pages * 4096)
memory[::4096] = bytes(1 + index % 255 for index in range(pages))
open('/tmp/used', 'w').close()
while not os.path.exists('/tmp/go'):
    time.sleep(0.05)
"#;

/// Takes and frees memory without end, and looks at each piece before it frees it. A page that was
/// taken from it is told.
const WILD: &str = r#"
import mmap, os, random, time
pattern = bytes(1 + index % 251 for index in range(60000))
live = []
rounds = 0
def take():
    pages = random.randrange(1000, 20000)
    start = random.randrange(251)
    memory = mmap.mmap(-1, pages * 4096)
    for offset in (0, 2048):
        memory[offset::4096] = pattern[start:start + pages]
    live.append((memory, pages, start))
def free():
    memory, pages, start = live.pop(random.randrange(len(live)))
    for offset in (0, 2048):
        if memory[offset::4096] != pattern[start:start + pages]:
            open('/tmp/torn', 'a').write(f'round {rounds}: {pages} pages\n')
            os._exit(1)
    memory.close()
while True:
    rounds += 1
    while sum(pages for _, pages, _ in live) < 50000:
        take()
    for _ in range(random.randrange(1, len(live) + 1)):
        free()
    open('/tmp/rounds.new', 'w').write(str(rounds))
    os.rename('/tmp/rounds.new', '/tmp/rounds')
    time.sleep(random.random() / 2)
"#;

/// Memory of the guest that its engine alone has.
fn own_bytes(daemon: &Daemon, id: &str) -> Result<u64> {
    let is_guest_memory = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name == "memory.img" || (name.starts_with("memory") && name.ends_with(".layer"))
    };
    let memory = GuestMemory::find(engine::engine_pid(daemon, id)?, is_guest_memory)?;
    Ok(memory.changed()?.iter().map(|pages| pages.bytes()).sum())
}

pub(crate) async fn start(client: &Client, id: &str, program: &str, argument: u64) -> Result<()> {
    let text = format!(
        "cat > /tmp/program.py <<'END'\n{program}\nEND\n\
         setsid nohup python3 /tmp/program.py {argument} </dev/null >/tmp/program.out 2>&1 &"
    );
    output(client, id, &text).await?;
    Ok(())
}

/// Fails when the program has said anything, which it does when it ends.
async fn has_said_nothing(client: &Client, id: &str) -> Result<()> {
    let said = output(
        client,
        id,
        "cat /tmp/torn /tmp/program.out 2>/dev/null || true",
    )
    .await?;
    ensure!(said.is_empty(), "{said}");
    Ok(())
}

async fn is_there(client: &Client, id: &str, file: &str) -> Option<()> {
    let found = exec(client, id, &format!("test -e {file}")).await.ok()?;
    (found.exit_code == 0).then_some(())
}

#[tokio::test]
async fn what_a_guest_used_and_freed_is_back_within_fifteen_seconds() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    keeper::start(&client, &id, KEPT_MIB).await?;
    let hash = keeper::ask(&client, &id, "hash").await?;
    let before = own_bytes(&daemon, &id)?;
    start(&client, &id, USER, USED_MIB).await?;
    until("the memory is used", patient(SOON), || {
        is_there(&client, &id, "/tmp/used")
    })
    .await?;
    has_said_nothing(&client, &id).await?;
    let peak = own_bytes(&daemon, &id)?;
    let used = peak.saturating_sub(before);
    ensure!(
        used >= USED_MIB * MIB * 9 / 10,
        "only {} MiB were used",
        used / MIB
    );
    output(&client, &id, "touch /tmp/go").await?;
    let freed = Instant::now();
    let wanted = USED_MIB * MIB * BACK_PERCENT / 100;
    let back = until("the memory is back", BACK_WITHIN, || async {
        let back = peak.saturating_sub(own_bytes(&daemon, &id).ok()?);
        (back >= wanted).then_some(back)
    })
    .await;
    let took = freed.elapsed();
    let after = own_bytes(&daemon, &id)?;
    let lines = told(&daemon)?;
    figure!(
        "own memory {} MiB before, {} at its peak, {} MiB {took:.1?} after the guest freed \
         {USED_MIB}; {}",
        before / MIB,
        peak / MIB,
        after / MIB,
        lines.join("; ")
    );
    back.with_context(|| daemon.last_of_log())?;
    ensure!(
        keeper::ask(&client, &id, "hash").await? == hash,
        "something was lost"
    );
    client.hibernate_sandbox(&id).await?;
    ensure!(
        keeper::ask(&client, &id, "hash").await? == hash,
        "something was lost in its sleep"
    );
    figure!(
        "own memory {} MiB after its wake",
        own_bytes(&daemon, &id)? / MIB
    );
    daemon.finish().await
}

/// What the daemon has logged of memory that was given back.
fn told(daemon: &Daemon) -> Result<Vec<String>> {
    let log = std::fs::read_to_string(daemon.path().join("daemon.log"))?;
    let lines = log.lines().filter_map(|line| line.split_once(TOLD));
    Ok(lines
        .map(|(_, figures)| figures.trim().to_owned())
        .collect())
}

async fn nothing_is_lost_over(times: usize) -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    output(&client, &id, "head -c 20M /dev/urandom > /dev/shm/file").await?;
    let sum = output(&client, &id, "md5sum < /dev/shm/file").await?;
    start(&client, &id, WILD, 0).await?;
    let each = patient(SOON);
    for time in 1..=times {
        until("memory is given back once more", each, || async {
            let count = told(&daemon).ok()?.len();
            (count >= time || is_there(&client, &id, "/tmp/torn").await.is_some()).then_some(())
        })
        .await?;
    }
    for line in told(&daemon)? {
        figure!("{line}");
    }
    let rounds = rounds_of(&client, &id).await?;
    until("the program goes on", SOON, || async {
        let now = rounds_of(&client, &id).await.ok()?;
        (now > rounds + 5).then_some(())
    })
    .await?;
    has_said_nothing(&client, &id).await?;
    let now = output(&client, &id, "md5sum < /dev/shm/file").await?;
    ensure!(now == sum, "a file in memory was lost");
    figure!("{rounds} rounds, {} times", told(&daemon)?.len());
    daemon.finish().await
}

async fn rounds_of(client: &Client, id: &str) -> Result<u64> {
    let text = output(client, id, "cat /tmp/rounds 2>/dev/null || echo 0").await?;
    Ok(text.trim().parse()?)
}

#[tokio::test]
async fn nothing_is_lost_of_what_a_guest_takes_and_frees_meanwhile() -> Result<()> {
    nothing_is_lost_over(3).await
}

#[tokio::test]
#[ignore = "soak: the same for some minutes"]
async fn nothing_is_lost_over_a_dozen_times() -> Result<()> {
    nothing_is_lost_over(12).await
}
