//! A disk that takes half a second for each sync, and those who do not wait for it.
//!
//! Everything runs on one thread, so whoever waits for the disk on it stops all the others. The
//! same claim stands on real machines, with the product's own runtime, in `tests/e2e`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_node::Node;
use dayfly_node_api::{EnsureExec, EnsureVolume, NodeApi, NodeCalls, SnapshotRequest};
use dayfly_sim::{World, wanted};
use dayfly_types::exec::{ExecCommand, ExecEvent, ExecSpec};
use dayfly_types::volume::MountedVolume;
use dayfly_types::{DiskMib, ExecId, ProjectId, SandboxId, SnapshotId, VolumeName};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

const PROJECT: &str = "p";
const SYNC: Duration = Duration::from_millis(500);
/// What three quarters of the calls stay below. The load keeps a sync under way nearly all the
/// time, so whoever waited for one would wait that long in most calls; one call in four is left to
/// a host that stops this process for as long (by 240 ms at a time, where this was measured).
const CALL_MAX: Duration = SYNC.checked_div(2).unwrap();
/// Calls of each kind that are measured beside the load.
const CALLS: usize = 60;
/// How often each kind of load must have come round meanwhile.
const ROUNDS_MIN: usize = 2;

/// Sandboxes by number.
const BYSTANDER: u32 = 1;
const SLEEPER: u32 = 2;
const SUBJECT: u32 = 3;
const WRITER: u32 = 4;
const FIRST_NEW: u32 = 100;

static MILLISECONDS: AtomicU64 = AtomicU64::new(0);

fn id(number: u32) -> Result<SandboxId> {
    Ok(wanted(number, PROJECT, None)?.id)
}

fn volume(name: &str) -> Result<EnsureVolume> {
    Ok(EnsureVolume {
        project: ProjectId::parse(PROJECT)?,
        name: VolumeName::parse(name)?,
        size: DiskMib::new(16)?,
    })
}

async fn exec(node: &Node, sandbox: &SandboxId, number: usize) -> Result<()> {
    let command = ExecCommand::Argv(vec!["true".to_owned()]);
    let request = EnsureExec::new(ExecSpec::new(
        ExecId::parse(&format!("ex-{number}"))?,
        command,
    ));
    let mut events = node.exec(sandbox, request).await?;
    while let Some(event) = events.next().await {
        if let ExecEvent::Exited(end) = event? {
            ensure!(end.exit.code == 0, "{end:?}");
            return Ok(());
        }
    }
    anyhow::bail!("the exec has no end")
}

/// What keeps the disk busy.
#[derive(Debug, Clone, Copy)]
enum Load {
    Attach,
    Sleep,
    Snapshot,
    Volume,
}

impl Load {
    const ALL: [Self; 4] = [Self::Attach, Self::Sleep, Self::Snapshot, Self::Volume];

    async fn round(self, node: &Node, number: usize) -> Result<()> {
        match self {
            Self::Attach => {
                let mut sandbox = wanted(WRITER, PROJECT, None)?;
                sandbox.volumes.push(MountedVolume {
                    name: VolumeName::parse("data")?,
                    path: "/volumes/data".to_owned(),
                    read_only: false,
                });
                node.ensure_sandbox(sandbox).await?;
                node.delete_sandbox(&id(WRITER)?).await?;
            }
            Self::Sleep => {
                node.hibernate(&id(SLEEPER)?).await?;
                node.wake(&id(SLEEPER)?).await?;
            }
            Self::Snapshot => {
                let snapshot = SnapshotId::parse(&format!("snap-local-{number}"))?;
                let request = SnapshotRequest {
                    id: snapshot.clone(),
                    name: None,
                    retain_seconds: None,
                };
                node.snapshot(&id(SUBJECT)?, request).await?;
                node.delete_snapshot(&snapshot).await?;
            }
            Self::Volume => {
                let wanted = volume("other")?;
                node.ensure_volume(wanted.clone()).await?;
                node.delete_volume(&wanted.project, &wanted.name).await?;
            }
        }
        Ok(())
    }
}

/// Begins every kind of load; each goes on until it is stopped and says how often it came round.
fn begin_load(node: &Arc<Node>, stop: &CancellationToken) -> Vec<(Load, Rounds)> {
    let begin = |load: Load| {
        let (node, stop) = (Arc::clone(node), stop.clone());
        let done = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&done);
        let working = tokio::spawn(async move {
            while !stop.is_cancelled() {
                let number = count.load(Ordering::SeqCst);
                let start = Instant::now();
                load.round(&node, number).await?;
                ensure!(start.elapsed() >= SYNC, "{load:?} waited for no sync");
                count.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        });
        (load, Rounds { done, working })
    };
    Load::ALL.map(begin).into_iter().collect()
}

struct Rounds {
    done: Arc<AtomicUsize>,
    working: tokio::task::JoinHandle<Result<()>>,
}

/// How long each call of one kind took.
#[derive(Debug, Default)]
struct Times(Vec<Duration>);

impl Times {
    async fn time<T>(&mut self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let start = Instant::now();
        let done = call.await;
        self.0.push(start.elapsed());
        done
    }

    fn third_quartile(&mut self) -> Duration {
        self.0.sort_unstable();
        self.0
            .get(self.0.len() * 3 / 4)
            .copied()
            .unwrap_or_default()
    }
}

#[tokio::test]
async fn nobody_waits_for_the_disk_of_another() -> Result<()> {
    dayfly_host::files::delay_syncs(|| Duration::from_millis(MILLISECONDS.load(Ordering::SeqCst)));
    let world = World::with_room_for(20)?;
    let node = world.start_node().await?;
    for number in [BYSTANDER, SLEEPER, SUBJECT] {
        let sandbox = wanted(number, PROJECT, None)?;
        node.ensure_sandbox(sandbox).await?;
    }
    node.ensure_volume(volume("data")?).await?;
    MILLISECONDS.store(u64::try_from(SYNC.as_millis())?, Ordering::SeqCst);
    let stop = CancellationToken::new();
    let load = begin_load(&node, &stop);
    let [mut execs, mut creates, mut lists] = [(); 3].map(|()| Times::default());
    let mut call = 0;
    let is_loaded = |rounds: &Rounds| rounds.done.load(Ordering::SeqCst) >= ROUNDS_MIN;
    while call < CALLS || !load.iter().all(|(_, rounds)| is_loaded(rounds)) {
        execs.time(exec(&node, &id(BYSTANDER)?, call)).await?;
        let new = wanted(FIRST_NEW + u32::try_from(call)?, PROJECT, None)?;
        let new_id = new.id.clone();
        let create = async { Ok(node.ensure_sandbox(new).await?) };
        creates.time(create).await?;
        lists.time(async { Ok(node.volumes().await?) }).await?;
        node.delete_sandbox(&new_id).await?;
        if load.iter().any(|(_, rounds)| rounds.working.is_finished()) {
            break;
        }
        call += 1;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    stop.cancel();
    for (load, rounds) in load {
        let ended = rounds.working.await.context("the load panicked")?;
        ended.with_context(|| format!("{load:?}"))?;
    }
    MILLISECONDS.store(0, Ordering::SeqCst);
    for (kind, times) in [
        ("exec", &mut execs),
        ("create", &mut creates),
        ("list", &mut lists),
    ] {
        let time = times.third_quartile();
        ensure!(
            time < CALL_MAX,
            "with syncs of {SYNC:?}, the third quartile of {call} calls of {kind} is {time:?}"
        );
    }
    Ok(())
}
