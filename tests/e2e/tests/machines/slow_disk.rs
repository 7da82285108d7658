//! A disk that takes long for each sync of the node, and those who do not wait for it.

use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSandbox, CreateSnapshot, CreateVolume, VolumeMount};
use dayfly_client::Client;
use dayfly_e2e::{Daemon, DaemonOptions, Times, create, exec, figure, setting_or_skip, until};
use tokio::sync::watch;
use tokio::task::JoinSet;

const VOLUME: &str = "data";
/// What a sync takes, in milliseconds.
const SLOW_SYNC: &str = "1500";
/// Samples of each kind, with a quick disk and with a slow one: so many that the p99 is not the
/// slowest. They are taken in turns of a block, so that a host that changes meets both.
const SAMPLES: usize = 200;
const BLOCK: usize = 25;
/// How often each kind of load begins anew, whatever the disk does: the machines that it starts
/// take processor time, which must be the same with a quick disk and with a slow one.
const LOAD_PERIOD: Duration = Duration::from_secs(12);
const RATIO_MAX: f64 = 1.3;
/// By how much a p99 may differ whatever the ratio: the machines of the load take processor time at
/// other moments when each of their syncs takes long. Who waits for a sync, or behind one, is slower
/// by several times as much.
const OTHER_REASONS_MAX: Duration = Duration::from_millis(250);

/// What was found under one condition.
#[derive(Default)]
struct Phase {
    exec: Times,
    create: Times,
}

impl Phase {
    fn tell(&self, name: &str) {
        figure!("{name}: exec {}, create {}", self.exec, self.create);
    }
}

async fn pools_are_full(client: &Client) -> Result<()> {
    until("the pools are full", Duration::from_secs(60), || async {
        let node = client.node().await.ok()?;
        let mut engines = node.parked_engines.iter();
        engines
            .all(|pool| pool.parked >= pool.target)
            .then_some(())
            .filter(|()| node.parked_slots >= node.parked_slots_target)
    })
    .await
}

async fn timed<T>(work: impl Future<Output = Result<T>>) -> Result<(Duration, T)> {
    let start = Instant::now();
    let done = work.await?;
    Ok((start.elapsed(), done))
}

/// A block of execs in one sandbox and creates of others.
async fn measure(client: &Client, bystander: &str, phase: &mut Phase) -> Result<()> {
    for _ in 0..BLOCK {
        pools_are_full(client).await?;
        let (took, _) = timed(exec(client, bystander, "true")).await?;
        phase.exec.add(took);
        let (took, made) = timed(create(client, "base")).await?;
        phase.create.add(took);
        client.delete_sandbox(&made.id).await?;
    }
    Ok(())
}

/// What keeps the disk busy.
#[derive(Debug, Clone)]
enum Load {
    Attach,
    Sleep(String),
    Snapshot(String),
}

impl Load {
    async fn round(&self, client: &Client) -> Result<()> {
        match self {
            Self::Attach => {
                let request = CreateSandbox {
                    volumes: Some(vec![VolumeMount {
                        name: VOLUME.to_owned(),
                        path: None,
                        read_only: None,
                    }]),
                    ..CreateSandbox::default()
                };
                let made = client.create_sandbox(&request).await?;
                client.delete_sandbox(&made.id).await?;
            }
            Self::Sleep(id) => {
                client.hibernate_sandbox(id).await?;
                client.wake_sandbox(id).await?;
            }
            Self::Snapshot(id) => {
                let request = CreateSnapshot::default();
                let taken = client.create_snapshot(id, &request).await?;
                client.delete_snapshot(&taken.id).await?;
                // So that its chain of disks stays short.
                client.hibernate_sandbox(id).await?;
                client.wake_sandbox(id).await?;
            }
        }
        Ok(())
    }

    async fn go_on(self, client: Client, mut is_over: watch::Receiver<bool>) -> Result<usize> {
        let mut rounds = 0;
        let mut period = tokio::time::interval(LOAD_PERIOD);
        loop {
            tokio::select! {
                _ = period.tick() => {}
                _ = is_over.wait_for(|is_over| *is_over) => return Ok(rounds),
            }
            let round = self.round(&client).await;
            round.with_context(|| format!("{self:?}"))?;
            rounds += 1;
        }
    }
}

async fn measure_loaded(
    client: &Client,
    bystander: &str,
    loads: &[Load],
    phase: &mut Phase,
) -> Result<()> {
    let (end, is_over) = watch::channel(false);
    let mut working = JoinSet::new();
    for load in loads {
        working.spawn(load.clone().go_on(client.clone(), is_over.clone()));
    }
    let measured = measure(client, bystander, phase).await;
    end.send_replace(true);
    while let Some(ended) = working.join_next().await {
        let rounds = ended.context("the load panicked")??;
        ensure!(rounds >= 1, "the disk was not kept busy");
    }
    measured
}

fn compare(quiet: &Phase, loaded: &Phase, slow: &Phase) -> Result<()> {
    let kinds = [
        ("exec", &slow.exec, &loaded.exec, &quiet.exec),
        ("create", &slow.create, &loaded.create, &quiet.create),
    ];
    for (name, slow, loaded, quiet) in kinds {
        let (to_quiet, to_loaded) = (slow.p99_to(quiet), slow.p99_to(loaded));
        figure!(
            "{name}: p99 with slow syncs {to_quiet:.2} times quiet, {to_loaded:.2} times loaded"
        );
    }
    for (name, slow, loaded, _) in kinds {
        let to_loaded = slow.p99_to(loaded);
        let longer = slow.percentile(99).saturating_sub(loaded.percentile(99));
        ensure!(
            to_loaded <= RATIO_MAX || longer <= OTHER_REASONS_MAX,
            "{name}: {to_loaded:.2} times, {longer:?} longer"
        );
    }
    Ok(())
}

fn set_sync(file: &Path, milliseconds: &str) -> Result<()> {
    Ok(std::fs::write(file, milliseconds)?)
}

#[tokio::test]
#[ignore = "soak: minutes, and its figures need a quiet host"]
async fn a_slow_disk_slows_only_those_who_wait_for_it() -> Result<()> {
    let setting = setting_or_skip!();
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join("sync");
    set_sync(&file, "0")?;
    let options = DaemonOptions {
        environment: vec![("DAYFLY_SLOW_SYNC_FILE".to_owned(), file.clone())],
        ..DaemonOptions::default()
    };
    let (daemon, client) = Daemon::ready(&setting, options).await?;
    let volume = CreateVolume {
        name: VOLUME.to_owned(),
        size_mb: Some(64),
        size_gb: None,
    };
    client.create_volume(&volume).await?;
    let bystander = create(&client, "base").await?.id;
    let sleeper = create(&client, "base").await?.id;
    let subject = create(&client, "base").await?.id;
    let loads = [
        Load::Attach,
        Load::Sleep(sleeper.clone()),
        Load::Snapshot(subject),
    ];
    // One of each, unmeasured.
    exec(&client, &bystander, "true").await?;
    for load in &loads {
        load.round(&client).await?;
    }
    let [mut quiet, mut loaded, mut slow] = [(); 3].map(|()| Phase::default());
    measure(&client, &bystander, &mut quiet).await?;
    quiet.tell("quiet");
    for _ in 0..SAMPLES / BLOCK {
        measure_loaded(&client, &bystander, &loads, &mut loaded).await?;
        set_sync(&file, SLOW_SYNC)?;
        // That the seam works: falling asleep waits for several.
        let (took, ()) = timed(async { Ok(client.hibernate_sandbox(&sleeper).await?) }).await?;
        ensure!(
            took > Duration::from_secs(1),
            "syncs are not slow: {took:?}"
        );
        client.wake_sandbox(&sleeper).await?;
        measure_loaded(&client, &bystander, &loads, &mut slow).await?;
        set_sync(&file, "0")?;
    }
    loaded.tell("loaded, quick syncs");
    slow.tell("loaded, slow syncs");
    compare(&quiet, &loaded, &slow)?;
    daemon.finish().await
}
