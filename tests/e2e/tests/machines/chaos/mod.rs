//! Callers work while everything that the daemon is made of is killed and stopped at random, and
//! what was acknowledged is held against what is there.
//!
//! `DAYFLY_CHAOS_SEED` and `DAYFLY_CHAOS_SECONDS` say which run it is; the seed chooses the faults
//! and what callers do, not the moment at which the machine gets around to them.

mod faults;
mod generator;
mod ledger;
mod verify;
mod workers;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_e2e::{Daemon, DaemonOptions, figure, setting_or_skip};

use generator::Generator;
use ledger::Book;
use workers::World;

const GATE_SEED: u64 = 20_260_101;
const GATE_SECONDS: u64 = 30;
const SOAK_SECONDS: u64 = 30 * 60;

#[tokio::test]
async fn nothing_acknowledged_is_lost_under_random_faults() -> Result<()> {
    chaos(GATE_SEED, Duration::from_secs(GATE_SECONDS)).await
}

#[tokio::test]
#[ignore = "soak: half an hour of faults"]
async fn nothing_acknowledged_is_lost_in_half_an_hour_of_random_faults() -> Result<()> {
    let told = |name: &str| std::env::var(name).ok()?.parse().ok();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let seed = told("DAYFLY_CHAOS_SEED").unwrap_or(now.as_secs());
    let seconds = told("DAYFLY_CHAOS_SECONDS").unwrap_or(SOAK_SECONDS);
    chaos(seed, Duration::from_secs(seconds)).await
}

async fn chaos(seed: u64, time: Duration) -> Result<()> {
    let setting = setting_or_skip!();
    figure!("seed {seed}, {} s", time.as_secs());
    let (mut daemon, _) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let world = World::new(daemon.client()?, daemon.url());
    let mut running = workers::start(&world, seed);
    let end = Instant::now() + time;
    let injected = faults::run(&mut daemon, &world.ledger, Generator::new(seed, 1), end).await;
    world.stop();
    while let Some(ended) = running.join_next().await {
        ended?;
    }
    injected.with_context(|| format!("seed {seed}"))?;
    let checked = verify::everything(&daemon, &world).await;
    report(&world.ledger.book());
    checked.with_context(|| daemon.last_of_log())?;
    let broken = world.ledger.book().broken.clone();
    ensure!(
        broken.is_empty(),
        "seed {seed}: {broken:#?}\n{}",
        daemon.last_of_log()
    );
    daemon.finish().await
}

fn report(book: &Book) {
    let total = book.faults.values().sum::<u64>();
    figure!("{total} faults: {:?}", book.faults);
    let total = book.acknowledged.values().sum::<u64>();
    figure!("{total} operations acknowledged: {:?}", book.acknowledged);
    let total = book.not_acknowledged.values().sum::<u64>();
    figure!(
        "{total} operations not acknowledged: {:?}",
        book.not_acknowledged
    );
    let total = book.checks.values().sum::<u64>();
    figure!("{total} checks: {:?}", book.checks);
}
