//! Claims about sandboxes that share a host: who sleeps for others, who does not, and what is
//! promised.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_core::admission::Sharing;
use dayfly_node::Node;
use dayfly_node_api::{EnsureExec, EnsureSandbox, NodeApi, NodeCalls, SandboxReport};
use dayfly_sim::{EngineLoads, World, until, wanted};
use dayfly_testkit::{EngineOperation, Fault};
use dayfly_types::exec::{ExecCommand, ExecSpec};
use dayfly_types::{ErrorCode, ExecId, SandboxClass, SandboxId, SandboxState, SleepReason, limits};
use futures::StreamExt;

/// What a sandbox of 512 MiB is promised on a host that promises eight times over.
const PART_MIB: u64 = (512 + limits::ENGINE_OVERHEAD_MIB) / 8;

/// A host that promises memory eight times over and has some for `parts` shared sandboxes.
fn host_of(parts: u64) -> Result<World> {
    let mut world = World::with_room_for(1)?;
    world.host.memory_mib = PART_MIB * parts;
    world.sharing = Sharing { memory: 8, disk: 8 };
    Ok(world)
}

fn shared(number: u32) -> Result<EnsureSandbox> {
    Ok(EnsureSandbox {
        class: SandboxClass::Shared,
        ..wanted(number, "p", None)?
    })
}

async fn make(node: &Node, numbers: impl IntoIterator<Item = u32>) -> Result<Vec<SandboxReport>> {
    let mut made = Vec::new();
    for number in numbers {
        made.push(node.ensure_sandbox(shared(number)?).await?);
    }
    Ok(made)
}

/// Waits for looks that began from here on. The first one may have begun before.
async fn looks(world: &World, count: u64) -> Result<()> {
    let wanted = world.host.looks.load(Ordering::SeqCst) + count + 1;
    until("the node looks", async || {
        (world.host.looks.load(Ordering::SeqCst) >= wanted).then_some(())
    })
    .await
}

/// Lets time go by until the node has seen that nobody does anything. Who works is seen to work
/// after the clock has jumped, too.
async fn rest(world: &World) -> Result<()> {
    // Two make a sample.
    looks(world, 2).await?;
    world.clock.advance(limits::PRESSURE_IDLE_MIN);
    looks(world, 1).await
}

async fn states(node: &Node) -> Result<(usize, usize)> {
    let reports = node.sandboxes().await?;
    let count = |state| reports.iter().filter(|one| one.state == state).count();
    Ok((
        count(SandboxState::Running),
        count(SandboxState::Hibernated),
    ))
}

fn exec(id: &str) -> Result<EnsureExec> {
    let command = ExecCommand::Argv(vec!["true".to_owned()]);
    Ok(EnsureExec::new(ExecSpec::new(ExecId::parse(id)?, command)))
}

async fn run(node: &Node, id: &SandboxId) -> Result<()> {
    let mut events = node.exec(id, exec("ex-1")?).await?;
    while let Some(event) = events.next().await {
        event?;
    }
    Ok(())
}

#[tokio::test]
async fn a_create_that_finds_no_room_puts_the_longest_idle_to_sleep_and_nobody_else() -> Result<()>
{
    let world = host_of(3)?;
    let node = world.start_node().await?;
    let made = make(&node, 0..3).await?;
    ensure!(made.iter().all(|one| one.class == SandboxClass::Shared));
    rest(&world).await?;
    // The first one is used; then the second has been idle for longest.
    run(&node, &made[0].id).await?;
    let new = node.ensure_sandbox(shared(3)?).await?;
    ensure!(new.state == SandboxState::Running);
    ensure!(states(&node).await? == (3, 1));
    let asleep: BTreeSet<_> = [&made[1].id, &made[2].id].into();
    let reports = node.sandboxes().await?;
    let sleeper = reports
        .iter()
        .find(|one| one.state == SandboxState::Hibernated);
    let sleeper = sleeper.context("nobody sleeps")?;
    ensure!(
        asleep.contains(&sleeper.id),
        "it was used just now: {sleeper:?}"
    );
    ensure!(sleeper.sleep_reason == Some(SleepReason::Pressure));
    let status = node.status().await?;
    ensure!(status.sharing.put_to_sleep == 1, "{status:?}");
    // Its user notices a wake, for which another one sleeps, and nothing else.
    world.clock.advance(limits::PRESSURE_IDLE_MIN);
    let id = sleeper.id.clone();
    run(&node, &id).await?;
    let awake = node.sandbox(&id).await?;
    ensure!(awake.state == SandboxState::Running && awake.sleep_reason.is_none());
    ensure!(states(&node).await? == (3, 1));
    Ok(())
}

#[tokio::test]
async fn when_nothing_can_sleep_a_create_is_refused_at_once() -> Result<()> {
    let world = host_of(6 + 8)?;
    let node = world.start_node().await?;
    let reserved = node.ensure_sandbox(wanted(100, "p", None)?).await?;
    let made = make(&node, 0..6).await?;
    // One is paused by its user, and all others compute.
    node.pause(&made[0].id).await?;
    for process in &world.slots.running() {
        world.host.engines.work(process.pid);
    }
    rest(&world).await?;
    let mut took = Vec::new();
    for number in 200..300 {
        let began = Instant::now();
        let refused = node.ensure_sandbox(shared(number)?).await;
        took.push(began.elapsed());
        let error = refused.err().context("it was let in")?;
        ensure!(error.code == ErrorCode::NoCapacity, "{error:?}");
        ensure!(error.retry_after_ms.is_some(), "{error:?}");
    }
    took.sort();
    ensure!(took[98] < Duration::from_millis(100), "p99 {:?}", took[98]);
    ensure!(states(&node).await? == (6, 0));
    ensure!(node.sandbox(&reserved.id).await?.class == SandboxClass::Reserved);
    Ok(())
}

#[tokio::test]
async fn a_reserved_sandbox_never_sleeps_for_others() -> Result<()> {
    let world = host_of(8)?;
    let node = world.start_node().await?;
    let reserved = node.ensure_sandbox(wanted(1, "p", None)?).await?;
    rest(&world).await?;
    ensure!(node.ensure_sandbox(shared(2)?).await.is_err());
    ensure!(node.ensure_sandbox(wanted(3, "p", None)?).await.is_err());
    ensure!(node.sandbox(&reserved.id).await?.state == SandboxState::Running);
    Ok(())
}

#[tokio::test]
async fn nobody_sleeps_for_what_they_could_not_give() -> Result<()> {
    let world = host_of(4)?;
    let node = world.start_node().await?;
    make(&node, 0..4).await?;
    rest(&world).await?;
    // A reserved one needs as much as eight of them have.
    let refused = node.ensure_sandbox(wanted(9, "p", None)?).await;
    ensure!(refused.is_err_and(|error| error.code == ErrorCode::NoCapacity));
    ensure!(states(&node).await? == (4, 0));
    Ok(())
}

#[tokio::test]
async fn a_host_that_runs_short_puts_idle_ones_to_sleep_one_after_the_other() -> Result<()> {
    let mut world = host_of(40)?;
    world.memory_reserve_mib = 1000;
    world.host.memory_mib += 1000;
    let node = world.start_node().await?;
    let made = make(&node, 0..6).await?;
    let working: Vec<_> = world.slots.running().into_iter().take(2).collect();
    for process in &working {
        world.host.engines.work(process.pid);
    }
    rest(&world).await?;
    // Something else on the host has taken nearly all.
    world.host.memory_available_mib.store(400, Ordering::SeqCst);
    until("all but the working sleep", async || {
        states(&node).await.ok().filter(|now| *now == (2, 4))
    })
    .await?;
    let status = node.status().await?;
    ensure!(status.sharing.pressure.is_some() && status.sharing.put_to_sleep == 4);
    // The working ones are never put to sleep, however long it lasts.
    for _ in 0..10 {
        looks(&world, 1).await?;
        world.clock.advance(Duration::from_secs(5));
    }
    ensure!(states(&node).await? == (2, 4));
    // While it lasts a create is refused, although the promises leave room.
    let refused = node.ensure_sandbox(shared(50)?).await;
    ensure!(refused.is_err_and(|error| error.code == ErrorCode::NoCapacity));
    world
        .host
        .memory_available_mib
        .store(1 << 30, Ordering::SeqCst);
    until("it is over", async || {
        let status = node.status().await.ok()?;
        status.sharing.pressure.is_none().then_some(())
    })
    .await?;
    for one in &made {
        run(&node, &one.id).await?;
    }
    ensure!(states(&node).await? == (6, 0));
    Ok(())
}

#[tokio::test]
async fn a_neighbour_that_grows_puts_the_idle_to_sleep_and_keeps_what_it_has() -> Result<()> {
    let world = host_of(6)?;
    let node = world.start_node().await?;
    make(&node, 0..6).await?;
    let hostile = world.slots.running().pop().context("nothing runs")?;
    world.host.engines.work(hostile.pid);
    rest(&world).await?;
    // Three times what it was promised: two others must make room for it.
    world.host.engines.hold(hostile.pid, 3 * PART_MIB);
    until("there is room for it", async || {
        states(&node).await.ok().filter(|now| *now == (4, 2))
    })
    .await?;
    looks(&world, 5).await?;
    ensure!(states(&node).await? == (4, 2), "more sleep than must");
    ensure!(world.slots.running().contains(&hostile));
    Ok(())
}

#[tokio::test]
async fn a_stall_alone_puts_nobody_to_sleep() -> Result<()> {
    let mut world = host_of(40)?;
    world.memory_reserve_mib = 1000;
    world.host.memory_mib += 1000;
    let node = world.start_node().await?;
    make(&node, 0..3).await?;
    rest(&world).await?;
    // A guest that fights the limit of its own control group stalls.
    world.host.stall_percent.store(90, Ordering::SeqCst);
    looks(&world, 5).await?;
    ensure!(states(&node).await? == (3, 0));
    // The same where memory is nearly used.
    let owed = 3 * (PART_MIB - EngineLoads::IDLE_MIB);
    world
        .host
        .memory_available_mib
        .store(900 + owed, Ordering::SeqCst);
    until("somebody sleeps", async || {
        states(&node).await.ok().filter(|(_, asleep)| *asleep > 0)
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn one_that_cannot_sleep_goes_on_and_the_next_one_sleeps() -> Result<()> {
    let world = host_of(2)?;
    let node = world.start_node().await?;
    let made = make(&node, 0..2).await?;
    rest(&world).await?;
    world
        .engine
        .faults()
        .order(EngineOperation::Capture, 1, Fault::Fail);
    node.ensure_sandbox(shared(7)?).await?;
    ensure!(states(&node).await? == (2, 1));
    let status = node.status().await?;
    ensure!(status.sharing.put_to_sleep == 1 && status.sharing.not_put_to_sleep == 1);
    for one in &made {
        let report = node.sandbox(&one.id).await?;
        let asleep = report.state == SandboxState::Hibernated;
        ensure!(report.sleep_reason.is_some() == asleep, "{report:?}");
    }
    Ok(())
}

#[tokio::test]
async fn who_follows_a_command_is_told_nothing_while_its_sandbox_sleeps_for_others() -> Result<()> {
    let world = host_of(2)?;
    let node = world.start_node().await?;
    let made = make(&node, 0..1).await?;
    let id = made[0].id.clone();
    let command = ExecCommand::Argv(vec!["cat".to_owned()]);
    let mut request = EnsureExec::new(ExecSpec::new(ExecId::parse("ex-cat")?, command));
    request.keeps_stdin_open = true;
    let mut events = node.exec(&id, request).await?;
    rest(&world).await?;
    make(&node, 1..3).await?;
    ensure!(node.sandbox(&id).await?.state == SandboxState::Hibernated);
    // Nothing is said to the reader while it sleeps.
    let early = tokio::time::timeout(Duration::from_millis(200), events.next()).await;
    ensure!(early.is_err(), "{early:?}");
    Ok(())
}

#[tokio::test]
async fn one_that_its_user_puts_to_sleep_does_not_sleep_for_others_any_more() -> Result<()> {
    let world = host_of(1)?;
    let node = world.start_node().await?;
    let made = make(&node, 0..1).await?;
    rest(&world).await?;
    make(&node, 1..2).await?;
    let report = node.sandbox(&made[0].id).await?;
    ensure!(report.sleep_reason == Some(SleepReason::Pressure));
    node.hibernate(&made[0].id).await?;
    let report = node.sandbox(&made[0].id).await?;
    ensure!(report.state == SandboxState::Hibernated && report.sleep_reason.is_none());
    Ok(())
}

#[tokio::test]
async fn one_that_sleeps_for_others_ends_when_its_idleness_would_have_ended_it() -> Result<()> {
    let world = host_of(1)?;
    let node = world.start_node().await?;
    let mut request = shared(0)?;
    request.lifecycle.idle_seconds = Some(60);
    let id = node.ensure_sandbox(request).await?.id;
    rest(&world).await?;
    make(&node, 1..2).await?;
    ensure!(node.sandbox(&id).await?.state == SandboxState::Hibernated);
    world.clock.advance(Duration::from_secs(60));
    until("it is gone", async || {
        let there = node.sandboxes().await.ok()?;
        (!there.iter().any(|one| one.id == id)).then_some(())
    })
    .await
}

#[tokio::test]
async fn what_fell_asleep_for_others_is_known_after_a_restart() -> Result<()> {
    let world = host_of(1)?;
    let node = world.start_node().await?;
    let made = make(&node, 0..1).await?;
    rest(&world).await?;
    make(&node, 1..2).await?;
    drop(node);
    let node: Arc<Node> = world.start_node().await?;
    let report = node.sandbox(&made[0].id).await?;
    ensure!(report.class == SandboxClass::Shared);
    ensure!(report.state == SandboxState::Hibernated);
    ensure!(report.sleep_reason == Some(SleepReason::Pressure));
    Ok(())
}
