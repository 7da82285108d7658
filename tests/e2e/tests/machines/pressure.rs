//! Memory that runs short, because of a neighbour or of the host itself: who works goes on, who asks
//! for room that nobody has hears so at once, and who slept for it wakes as from any other sleep.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{Command, CreateSandbox, ExecRequest};
use dayfly_client::Client;
use dayfly_e2e::{
    Daemon, Times, engine, exec, figure, keeper, output, refusal, setting_or_skip, until,
};

use crate::density::{is_asleep, one_more, room_for};
use crate::give_back;
use crate::sizes::pools_are_full;

const IDLE: u64 = 4;
/// The worker and the hostile one have a part each. With what they touch nobody else has room.
const PARTS: u64 = IDLE + 2;
const KEPT_MIB: u32 = 60;
/// Until all that are idle have slept, one after the other.
const SOON: Duration = Duration::from_secs(120);
const REFUSALS: usize = 100;
const REFUSED_WITHIN: Duration = Duration::from_millis(100);

/// How many sleep for others at a time, and how often.
const SLEEPERS: u64 = 10;
const ROUNDS: usize = 2;
const WAKE_RATIO_MAX: f64 = 1.15;

/// Touches nearly all that its guest of 512 MiB has, again and again.
const HOSTILE: &str = "
import mmap
memory = mmap.mmap(-1, 380 << 20)
fill = 0
while True:
    fill = (fill + 1) % 256
    memory[::4096] = bytes([fill]) * (len(memory) // 4096)
";

/// Memory of the host that this process takes until the node says that it is short.
struct HostMemory(Vec<Vec<u8>>);

const PIECE: usize = 256 << 20;
/// What is left of the host whatever the node says.
const HOST_LEAST: u64 = 4 << 30;

impl HostMemory {
    async fn take_until_it_is_short(client: &Client) -> Result<Self> {
        let mut taken = Self(Vec::new());
        while client.node().await?.pressure.is_none() {
            let left = dayfly_host::memory::host_memory()?.available_bytes;
            ensure!(left > HOST_LEAST, "the node finds {left} bytes enough");
            taken.0.push(vec![1; PIECE]);
        }
        Ok(taken)
    }

    fn mib(&self) -> usize {
        self.0.len() * (PIECE >> 20)
    }
}

/// A sandbox that works, and what must not change of it.
struct Worker {
    id: String,
    engine: i32,
    hash: String,
    counted: usize,
}

impl Worker {
    async fn start(daemon: &Daemon, client: &Client, id: String) -> Result<Self> {
        keeper::start(client, &id, KEPT_MIB).await?;
        let spin = "nice sh -c 'while :; do :; done' >/dev/null 2>&1 &";
        exec(client, &id, spin).await?;
        Ok(Self {
            engine: engine::engine_pid(daemon, &id)?,
            hash: keeper::ask(client, &id, "hash").await?,
            counted: keeper::counts(client, &id).await?.len(),
            id,
        })
    }

    /// The same process, with every byte, and it went on.
    async fn goes_on(&mut self, daemon: &Daemon, client: &Client) -> Result<()> {
        let now = client.get_sandbox(&self.id).await?;
        ensure!(
            now.status == "running" && now.sleep_reason.is_none(),
            "{now:?}"
        );
        let pid = engine::engine_pid(daemon, &self.id)?;
        ensure!(pid == self.engine, "its engine is another");
        let hash = keeper::ask(client, &self.id, "hash").await?;
        ensure!(hash == self.hash, "it has lost something");
        let counted = keeper::counts(client, &self.id).await?.len();
        ensure!(counted > self.counted, "it stands still at {counted}");
        figure!("the worker counted from {} to {counted}", self.counted);
        self.counted = counted;
        Ok(())
    }
}

/// Some that do nothing, each with its number in memory.
async fn idle_ones(client: &Client, count: u64) -> Result<Vec<String>> {
    let mut idle = Vec::new();
    for number in 0..count {
        let id = one_more(client).await?.id;
        output(client, &id, &format!("echo {number} > /dev/shm/mark")).await?;
        idle.push(id);
    }
    Ok(idle)
}

async fn all_sleep(client: &Client, idle: &[String]) -> Result<()> {
    let start = Instant::now();
    until("all that are idle sleep", SOON, || async {
        for id in idle {
            if !is_asleep(client, id).await.ok()? {
                return None;
            }
        }
        Some(())
    })
    .await?;
    for id in idle {
        let reason = client.get_sandbox(id).await?.sleep_reason;
        ensure!(reason.as_deref() == Some("pressure"), "{reason:?}");
    }
    figure!(
        "{} idle ones sleep after {:.1?}",
        idle.len(),
        start.elapsed()
    );
    Ok(())
}

async fn all_wake(client: &Client, idle: &[String]) -> Result<()> {
    for (number, id) in idle.iter().enumerate() {
        let mark = output(client, id, "cat /dev/shm/mark").await?;
        ensure!(mark == number.to_string(), "{id} has the mark {mark:?}");
    }
    Ok(())
}

/// Each create is refused, and soon: nobody who runs could sleep for it.
async fn creates_are_refused(client: &Client) -> Result<()> {
    let mut times = Times::default();
    for _ in 0..REFUSALS {
        let start = Instant::now();
        let outcome = client.create_sandbox(&CreateSandbox::default()).await;
        times.add(start.elapsed());
        refusal(outcome, "no_capacity")?;
    }
    times.judge("a create that nobody has room for", 99, REFUSED_WITHIN)
}

/// Makes sandboxes until there is no room. Who has just begun does not sleep for another yet.
async fn fill(client: &Client) -> Result<Vec<String>> {
    let mut made = Vec::new();
    for _ in 0..=PARTS {
        match client.create_sandbox(&CreateSandbox::default()).await {
            Ok(sandbox) => made.push(sandbox.id),
            outcome => {
                refusal(outcome, "no_capacity")?;
                return Ok(made);
            }
        }
    }
    anyhow::bail!("there is room for {} more", made.len())
}

#[tokio::test]
#[ignore = "soak: a neighbour that takes all memory that it can get"]
async fn a_hostile_neighbour_stops_nobody_who_works() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, room_for(PARTS)?).await?;
    let (worker, hostile) = (one_more(&client).await?.id, one_more(&client).await?.id);
    let idle = idle_ones(&client, IDLE).await?;
    let mut worker = Worker::start(&daemon, &client, worker).await?;
    give_back::start(&client, &hostile, HOSTILE, 0).await?;
    all_sleep(&client, &idle).await?;
    let filled = fill(&client).await?;
    creates_are_refused(&client).await?;
    worker.goes_on(&daemon, &client).await?;
    let still = output(&client, &hostile, "pgrep -c -f program.py").await?;
    ensure!(still != "0", "it does not take memory any more");
    for id in filled.iter().chain([&hostile]) {
        client.delete_sandbox(id).await?;
    }
    all_wake(&client, &idle).await?;
    worker.goes_on(&daemon, &client).await?;
    daemon.finish().await
}

#[tokio::test]
#[ignore = "soak: another process takes half of the host's memory"]
async fn a_host_that_is_short_of_memory_stops_nobody_who_works() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, room_for(PARTS + 2)?).await?;
    let worker = one_more(&client).await?.id;
    let idle = idle_ones(&client, IDLE).await?;
    let mut worker = Worker::start(&daemon, &client, worker).await?;
    let taken = HostMemory::take_until_it_is_short(&client).await?;
    let pressure = client.node().await?.pressure;
    figure!(
        "{} MiB taken: {}",
        taken.mib(),
        pressure.unwrap_or_default()
    );
    all_sleep(&client, &idle).await?;
    creates_are_refused(&client).await?;
    worker.goes_on(&daemon, &client).await?;
    drop(taken);
    until("the host has memory again", SOON, || async {
        let node = client.node().await.ok()?;
        node.pressure.is_none().then_some(())
    })
    .await?;
    all_wake(&client, &idle).await?;
    worker.goes_on(&daemon, &client).await?;
    daemon.finish().await
}

/// As the bench measures a wake: the exec that wakes it, to its answer.
async fn wake(client: &Client, id: &str) -> Result<Duration> {
    pools_are_full(client).await?;
    ensure!(is_asleep(client, id).await?, "{id} does not sleep");
    let start = Instant::now();
    let request = ExecRequest::new(Command::Argv(vec!["true".to_owned()]));
    let result = client.exec(id, &request).await?;
    let took = start.elapsed();
    ensure!(result.exit_code == 0, "{result:?}");
    Ok(took)
}

/// The bench of a wake, on the same daemon: the p50 of the bare engine in milliseconds.
async fn bare_p50_ms(daemon: &Daemon) -> Result<f64> {
    let path = daemon.path().display().to_string();
    let words = ["bench", "wake", "--n", "20", "--json", "--data-dir", &path];
    let output = daemon.dayflyd(&words).await?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    figure!("bench wake: {} bare {}", report["wake"], report["bare"]);
    report["bare"]["p50_ms"].as_f64().context("no figure")
}

#[tokio::test]
#[ignore = "soak: wakes beside the bare engine, on a quiet machine"]
async fn a_wake_from_a_sleep_for_others_takes_no_longer_than_any() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, room_for(SLEEPERS + 1)?).await?;
    let idle = idle_ones(&client, SLEEPERS).await?;
    let (mut for_others, mut asked_for) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        let mut others = Vec::new();
        while !is_asleep(&client, &idle[idle.len() - 1]).await? {
            ensure!(others.len() < 2 * idle.len(), "they sleep for nobody");
            others.push(one_more(&client).await?.id);
        }
        all_sleep(&client, &idle).await?;
        for id in &others {
            client.delete_sandbox(id).await?;
        }
        for id in &idle {
            for_others.add(wake(&client, id).await?);
            client.hibernate_sandbox(id).await?;
            asked_for.add(wake(&client, id).await?);
        }
    }
    all_wake(&client, &idle).await?;
    for id in &idle {
        client.delete_sandbox(id).await?;
    }
    let bare = bare_p50_ms(&daemon).await?;
    let p50 = for_others.percentile(50).as_secs_f64() * 1000.0;
    let ratio = p50 / bare;
    figure!(
        "wake after a sleep for others: {for_others}; after one that was asked for: {asked_for}"
    );
    figure!("p50 {ratio:.2} times the bare engine's");
    ensure!(
        ratio <= WAKE_RATIO_MAX,
        "{ratio:.2} times, at most {WAKE_RATIO_MAX}"
    );
    daemon.finish().await
}
