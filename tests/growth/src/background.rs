//! What goes on while nobody asks, and how much of it a caller notices.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dayfly_control::reconcile::Sweep;
use dayfly_node_api::NodeCalls as _;
use dayfly_types::SandboxId;

use crate::api::Api;
use crate::control::OwnControl;
use crate::home::OwnNode;
use crate::process;
use crate::report::Background;
use crate::round::{Plan, micros};
use crate::times::{Figures, Times};

/// How often each pass is timed.
const PASSES: usize = 5;
/// Long enough for each pass of node and control to come at least once.
const QUIET: Duration = Duration::from_secs(32);
/// Sandboxes whose end is awaited, and how long they live.
const DEADLINES: usize = 20;
const TTL: Duration = Duration::from_secs(3);
/// When a node gives up waiting for a delete of its own.
const END_DEADLINE: Duration = Duration::from_secs(30);

/// Looks that are timed, each later than the server keeps what it read for the one before.
const LOOKS: usize = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(501);

pub(crate) async fn measure(
    node: &OwnNode,
    control: &OwnControl,
    api: &Api,
    plan: Plan,
) -> Result<Background> {
    let began = Instant::now();
    let listed = api.all().await?;
    ensure!(
        listed == usize::try_from(plan.count)?,
        "{listed} are listed"
    );
    Ok(Background {
        list_all_us: micros(began),
        metrics: metrics(api).await?,
        sweep: sweep(control).await?,
        exec_beside_sweeps: exec_beside_sweeps(control, api, plan.samples).await?,
        idle_cpu_thousandths: idle_cpu_thousandths().await?,
        lateness: lateness(node, api).await?,
    })
}

async fn metrics(api: &Api) -> Result<Figures> {
    let mut times = Times::default();
    for _ in 0..LOOKS {
        times.add(api.metrics().await?);
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    Ok(times.figures())
}

/// One comparison of rows and node, as control makes every 30 seconds.
async fn sweep(control: &OwnControl) -> Result<Figures> {
    let mut times = Times::default();
    for _ in 0..PASSES {
        let of = Arc::clone(&control.control);
        let began = Instant::now();
        control
            .run(async move { Sweep::default().run(&of).await })
            .await??;
        times.add(began.elapsed());
    }
    Ok(times.figures())
}

/// Execs while comparisons are made without a pause.
async fn exec_beside_sweeps(control: &OwnControl, api: &Api, samples: u32) -> Result<Figures> {
    let (ids, _) = api.page(1).await?;
    let of = Arc::clone(&control.control);
    let sweeps = control.spawn(async move {
        let mut sweep = Sweep::default();
        while sweep.run(&of).await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
    let mut times = Times::default();
    for _ in 0..samples {
        times.add(api.exec(&ids[0]).await?);
    }
    ensure!(!sweeps.is_finished(), "the comparisons have ended");
    sweeps.abort();
    Ok(times.figures())
}

/// The share of one CPU that node and control take while nobody asks for anything, in thousandths.
async fn idle_cpu_thousandths() -> Result<u64> {
    let (began, before) = (Instant::now(), process::cpu_time()?);
    tokio::time::sleep(QUIET).await;
    let used = process::cpu_time()?.saturating_sub(before);
    Ok(u64::try_from(
        used.as_micros() * 1000 / began.elapsed().as_micros(),
    )?)
}

/// How late sandboxes with a time to live are gone from the node.
async fn lateness(node: &OwnNode, api: &Api) -> Result<Figures> {
    let mut waits = Vec::new();
    for _ in 0..DEADLINES {
        let (id, _) = api.create(TTL.as_secs()).await?;
        let (end, id) = (Instant::now() + TTL, SandboxId::parse(&id)?);
        let node = Arc::clone(&node.node);
        waits.push(tokio::spawn(async move {
            while node.sandbox(&id).await.is_ok() {
                ensure!(end.elapsed() < END_DEADLINE, "{id} does not end");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // It began to live a little before its create was answered.
            Ok(end.elapsed())
        }));
    }
    let mut times = Times::default();
    for wait in waits {
        times.add(wait.await??);
    }
    Ok(times.figures())
}
