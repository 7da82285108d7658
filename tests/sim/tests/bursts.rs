//! Claims about many creates at once.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_node::Node;
use dayfly_node_api::{EnsureSandbox, NodeCalls, NodeError, SandboxReport};
use dayfly_sim::{World, until_true, wanted};
use dayfly_testkit::{EngineOperation, Fault};
use dayfly_types::{SandboxId, SandboxState};
use dayfly_vmm::CpuWeight;
use tokio::sync::mpsc;

type Created = (SandboxId, Result<SandboxReport, NodeError>);

/// A host with one processor, for several projects.
fn small_world(sandboxes: u64) -> Result<World> {
    let mut world = World::with_room_for(sandboxes)?;
    world.host.processors = 1;
    world.shares_emulation = true;
    Ok(world)
}

/// Creates in the order of these calls, each told when it is done.
struct Creates {
    node: Arc<Node>,
    tell: mpsc::Sender<Created>,
    told: mpsc::Receiver<Created>,
}

impl Creates {
    fn on(node: &Arc<Node>) -> Self {
        let (tell, told) = mpsc::channel(100);
        Self {
            node: Arc::clone(node),
            tell,
            told,
        }
    }

    /// Asks, and returns when the node knows of it.
    async fn ask(&self, request: EnsureSandbox) -> Result<SandboxId> {
        let (node, tell, id) = (
            Arc::clone(&self.node),
            self.tell.clone(),
            request.id.clone(),
        );
        let asked = id.clone();
        tokio::spawn(async move {
            let created = node.ensure_sandbox(request).await;
            tell.send((asked, created)).await.ok();
        });
        until_true("it is known", async || self.node.sandbox(&id).await.is_ok()).await?;
        Ok(id)
    }

    async fn next(&mut self) -> Result<Created> {
        let told = tokio::time::timeout(Duration::from_secs(20), self.told.recv());
        told.await?.context("nobody is left to tell")
    }
}

#[tokio::test]
async fn a_burst_of_two_projects_is_done_in_turns_and_a_delete_wins_over_waiting() -> Result<()> {
    let world = small_world(10)?;
    let node = world.start_node().await?;
    world
        .engine
        .faults()
        .order(EngineOperation::Restore, 1, Fault::Hang);
    let mut creates = Creates::on(&node);
    let stuck = creates.ask(wanted(1, "a", None)?).await?;
    let mut asked = Vec::new();
    for (number, project) in [(2, "a"), (3, "a"), (4, "a"), (5, "a"), (6, "b"), (7, "b")] {
        asked.push(creates.ask(wanted(number, project, None)?).await?);
    }
    until_true("the first has its engine", async || {
        world.slots.running().len() == 1
    })
    .await?;
    ensure!(
        world.slots_left().await? == 1,
        "somebody did not wait for its turn"
    );
    ensure!(world.slots.weights() == [CpuWeight::Starting]);
    let given_up = asked.remove(1);
    node.delete_sandbox(&given_up).await?;
    let (told, refused) = creates.next().await?;
    ensure!(told == given_up && refused.is_err(), "{refused:?}");
    node.delete_sandbox(&stuck).await?;
    let (told, refused) = creates.next().await?;
    ensure!(told == stuck && refused.is_err(), "{refused:?}");
    let mut order = Vec::new();
    for _ in &asked {
        let (id, report) = creates.next().await?;
        let report = report?;
        ensure!(report.state == SandboxState::Running);
        let first = report.stages.first().context("no stages")?;
        ensure!(first.name == "line" && first.micros > 0, "{first:?}");
        order.push(id);
    }
    // Of a: 2, 4 and 5; of b: 6 and 7.
    let fair = [0, 3, 1, 4, 2].map(|index| asked[index].clone());
    ensure!(order == fair, "{order:?}, asked {asked:?}");
    ensure!(world.slots.weights() == [CpuWeight::Running; 5]);
    Ok(())
}

#[tokio::test]
async fn sixty_creates_of_three_projects_at_once_all_succeed() -> Result<()> {
    let mut world = small_world(60)?;
    world.host.processors = 4;
    let node = world.start_node().await?;
    let calls = (0..60).map(|number| {
        let project = ["a", "b", "c"][number as usize % 3];
        let request = wanted(number, project, None);
        let node = &node;
        async move { Ok::<_, anyhow::Error>(node.ensure_sandbox(request?).await?) }
    });
    for report in futures::future::join_all(calls).await {
        ensure!(report?.state == SandboxState::Running);
    }
    for number in 0..60 {
        node.delete_sandbox(&wanted(number, "a", None)?.id).await?;
    }
    ensure!(world.slots_left().await? == 0 && world.journal_entries()? == 0);
    Ok(())
}

#[tokio::test]
async fn a_wake_waits_for_its_turn_and_sleeps_on_when_it_is_cut_short() -> Result<()> {
    let world = small_world(4)?;
    let node = world.start_node().await?;
    let sleeper = wanted(1, "a", None)?;
    let other = wanted(2, "a", None)?;
    for one in [&sleeper, &other] {
        node.ensure_sandbox(one.clone()).await?;
        node.hibernate(&one.id).await?;
    }
    world
        .engine
        .faults()
        .order(EngineOperation::Restore, 1, Fault::Hang);
    let creates = Creates::on(&node);
    let stuck = creates.ask(wanted(3, "b", None)?).await?;
    until_true("it has its engine", async || {
        world.slots.running().len() == 1
    })
    .await?;
    let wake = |id: &SandboxId| {
        let (node, id) = (Arc::clone(&node), id.clone());
        tokio::spawn(async move { node.wake(&id).await })
    };
    let (waits, doomed) = (wake(&sleeper.id), wake(&other.id));
    node.delete_sandbox(&other.id).await?;
    ensure!(doomed.await?.is_err(), "it was deleted");
    ensure!(!waits.is_finished());
    ensure!(node.sandbox(&sleeper.id).await?.state == SandboxState::Hibernated);
    node.delete_sandbox(&stuck).await?;
    ensure!(waits.await??.state == SandboxState::Running);
    Ok(())
}

async fn parked(node: &Node) -> u64 {
    let status = node.status().await;
    status.map_or(0, |status| {
        status.pools.iter().map(|pool| pool.parked).sum()
    })
}

#[tokio::test]
async fn the_pool_is_refilled_beside_a_create_where_processors_are_free() -> Result<()> {
    let mut world = World::with_room_for(4)?;
    world.host.processors = 8;
    world.pool.engines = 2;
    let node = world.start_node().await?;
    until_true("the pool is full", async || parked(&node).await == 2).await?;
    world
        .engine
        .faults()
        .order(EngineOperation::Restore, 1, Fault::Hang);
    let creates = Creates::on(&node);
    let stuck = creates.ask(wanted(1, "a", None)?).await?;
    until_true("it has taken an engine", async || parked(&node).await < 2).await?;
    // Another comes and goes, as they do where creates come steadily.
    let passing = wanted(2, "a", None)?;
    node.ensure_sandbox(passing.clone()).await?;
    node.delete_sandbox(&passing.id).await?;
    until_true("the pool is full again", async || parked(&node).await == 2).await?;
    ensure!(node.sandbox(&stuck).await?.state == SandboxState::Creating);
    Ok(())
}
