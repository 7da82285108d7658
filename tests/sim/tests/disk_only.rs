//! A sandbox whose machine boots on the disk of a snapshot.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use dayfly_node::Node;
use dayfly_node_api::{
    EnsureExec, EnsureSandbox, ForkOutcome, ForkRequest, NodeApi, NodeCalls, NodeError,
};
use dayfly_sim::crash::MortalNode;
use dayfly_sim::{World, snapshot, wanted};
use dayfly_snapshots::CaptureManifest;
use dayfly_snapshots::capture::{MemoryBase, file_names};
use dayfly_testkit::{EngineOperation, Fault};
use dayfly_types::exec::{ExecCommand, ExecEvent, ExecSpec};
use dayfly_types::{DiskMib, ErrorCode, ExecId, SandboxId, SandboxState, SnapshotId};
use dayfly_vmm::{Capabilities, Engine, EngineBuild};
use futures::StreamExt;

const PROJECT: &str = "p";
const SOURCE: u32 = 1;
const BOOTED: u32 = 2;
const LIMIT: Duration = Duration::from_secs(20);

fn sandbox(number: u32) -> Result<EnsureSandbox> {
    wanted(number, PROJECT, None)
}

fn snapshot_id(name: &str) -> Result<SnapshotId> {
    Ok(SnapshotId::parse(&format!("snap-{name}"))?)
}

fn capture(world: &World, id: &SnapshotId) -> Result<CaptureManifest> {
    let (captures, _) = dayfly_snapshots::capture::survey(&world.captures_directory())?;
    let found = captures.into_iter().find(|capture| capture.id == *id);
    found.context("no such capture")
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, NodeError>, code: ErrorCode) -> Result<String> {
    let error = outcome.err().context("it was not refused")?;
    ensure!(error.code == code, "{error:?}");
    Ok(error.message)
}

async fn answers(node: &Node, id: &SandboxId) -> Result<()> {
    let command = ExecCommand::Argv(vec!["true".to_owned()]);
    let request = EnsureExec::new(ExecSpec::new(ExecId::parse("ex-check")?, command));
    let mut events = node.exec(id, request).await?;
    while let Some(event) = events.next().await {
        if let ExecEvent::Exited(end) = event? {
            ensure!(end.exit.code == 0, "{end:?}");
            return Ok(());
        }
    }
    bail!("the exec has no end")
}

async fn until_answers(node: &Node, id: &SandboxId) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    while let Err(error) = answers(node, id).await {
        ensure!(Instant::now() < deadline, "{error:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// A world with a snapshot, and a node in a runtime of its own.
async fn with_snapshot(world: &Arc<World>) -> Result<MortalNode> {
    let life = MortalNode::start(world).await?;
    life.ensure_sandbox(sandbox(SOURCE)?).await?;
    let node = Arc::clone(&life.node);
    node.snapshot(&sandbox(SOURCE)?.id, snapshot("a")?).await?;
    Ok(life)
}

/// Boots a sandbox as the node's own task, which its death ends.
async fn boot(life: &MortalNode, number: u32) -> Result<Result<SandboxState, NodeError>> {
    let (node, wanted) = (Arc::clone(&life.node), sandbox(number)?);
    let disk_of = snapshot_id("a")?;
    let work = life.spawn(async move { node.boot_sandbox(&disk_of, wanted).await });
    let report = work.context("no runtime")?.await?;
    Ok(report.map(|report| report.state))
}

/// Another engine takes the place of the one that is installed, and nothing of that is kept.
fn install(world: &mut Arc<World>, version: &str) -> Result<()> {
    let world = Arc::get_mut(world).context("a node uses it")?;
    let installed = Capabilities {
        engine_version: version.to_owned(),
        build: Some(EngineBuild::new(version)),
        ..world.engine.capabilities().clone()
    };
    let engine = world.engine.replaced(installed, Vec::new());
    world.engine = Arc::new(engine);
    Ok(())
}

#[tokio::test]
async fn a_disk_outlives_the_engine_of_its_memory() -> Result<()> {
    let mut world = Arc::new(World::with_room_for(8)?);
    with_snapshot(&world).await?.kill().await;
    install(&mut world, "2")?;
    let life = MortalNode::start(&world).await?;
    let node = Arc::clone(&life.node);
    let mut plain = sandbox(3)?;
    plain.from_snapshot = Some(snapshot_id("a")?);
    let text = refused(node.ensure_sandbox(plain).await, ErrorCode::SnapshotUnfit)?;
    ensure!(text.contains("`--disk-only`"), "{text}");

    ensure!(boot(&life, BOOTED).await?? == SandboxState::Running);
    let id = sandbox(BOOTED)?.id;
    answers(&node, &id).await?;
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(world.record_of(&id))?)?;
    ensure!(record["engine"]["version"] == "2", "{record}");
    ensure!(record["format"] == 4 && record["origin_is_disk"] == true);
    ensure!(record["from_snapshot"] == snapshot_id("a")?.as_str());

    // From then on it is a sandbox like any other, in the engine of today.
    node.hibernate(&id).await?;
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(world.record_of(&id))?)?;
    ensure!(record["format"] == 3, "{record}");
    node.wake(&id).await?;
    answers(&node, &id).await?;
    let taken = node.snapshot(&id, snapshot("b")?).await?;
    let manifest = capture(&world, &taken.id)?;
    ensure!(manifest.memory_base == MemoryBase::Zeros && manifest.format == 2);
    ensure!(manifest.engine.version == "2", "{:?}", manifest.engine);
    ensure!(!manifest.memory_below.contains(&snapshot_id("a")?));
    ensure!(manifest.disk_below.contains(&snapshot_id("a")?));
    let mut copy = sandbox(3)?;
    copy.from_snapshot = Some(taken.id.clone());
    node.ensure_sandbox(copy).await?;
    answers(&node, &sandbox(3)?.id).await?;
    node.rollback(&id, &taken.id).await?;
    let fork = ForkRequest {
        snapshot: snapshot_id("fork")?,
        children: vec![sandbox(4)?],
        all_or_nothing: true,
    };
    let forked = node.fork(&id, fork).await?;
    let child = forked.children.first().context("no child")?;
    ensure!(matches!(child.outcome, ForkOutcome::Made(_)), "{child:?}");
    answers(&node, &sandbox(4)?.id).await?;
    Ok(())
}

#[tokio::test]
async fn a_booted_machine_is_taken_over_and_keeps_its_disk() -> Result<()> {
    let world = Arc::new(World::with_room_for(4)?);
    let life = with_snapshot(&world).await?;
    ensure!(boot(&life, BOOTED).await?? == SandboxState::Running);
    let id = sandbox(BOOTED)?.id;
    life.kill().await;
    let life = MortalNode::start(&world).await?;
    let node = Arc::clone(&life.node);
    until_answers(&node, &id).await?;
    ensure!(node.sandbox(&id).await?.disk_only, "it says how it began");
    // Nobody can see the snapshot any more, and the machine still lies on it.
    node.delete_snapshot(&snapshot_id("a")?).await?;
    node.delete_sandbox(&sandbox(SOURCE)?.id).await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    ensure!(world.captures()?.contains(&"snap-a".to_owned()));
    let manifest = node.snapshot(&id, snapshot("b")?).await?;
    let manifest = capture(&world, &manifest.id)?;
    ensure!(manifest.memory_base == MemoryBase::Zeros, "{manifest:?}");
    node.delete_sandbox(&id).await?;
    node.delete_snapshot(&snapshot_id("b")?).await?;
    let deadline = Instant::now() + LIMIT;
    while !world.captures()?.is_empty() {
        ensure!(Instant::now() < deadline, "{:?}", world.captures()?);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ensure!(world.slots_left().await? == 0 && world.journal_entries()? == 0);
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_with_memory_does_not_matter_and_with_the_disk_it_does() -> Result<()> {
    let world = Arc::new(World::with_room_for(6)?);
    with_snapshot(&world).await?.kill().await;
    let directory = world.captures_directory().join("snap-a");
    let spoil = |name: &str| -> Result<()> {
        let path = directory.join(name);
        std::fs::remove_file(&path)?;
        std::fs::write(&path, "spoilt")?;
        Ok(())
    };
    spoil(file_names::MEMORY_LAYER)?;
    spoil(file_names::DEVICE_STATE)?;
    let life = MortalNode::start(&world).await?;
    let mut plain = sandbox(3)?;
    plain.from_snapshot = Some(snapshot_id("a")?);
    let refusal = life.node.ensure_sandbox(plain).await;
    let text = refused(refusal, ErrorCode::SnapshotCorrupt)?;
    ensure!(text.contains("`--disk-only`"), "{text}");
    ensure!(boot(&life, BOOTED).await?? == SandboxState::Running);
    // With a larger disk, as any create.
    let mut larger = sandbox(4)?;
    larger.disk = Some(DiskMib::new(128)?);
    let made = life.node.boot_sandbox(&snapshot_id("a")?, larger).await?;
    ensure!(made.disk_mib == 128, "{made:?}");
    life.kill().await;

    spoil(file_names::DISK_LAYER)?;
    let life = MortalNode::start(&world).await?;
    let text = refused(boot(&life, 5).await?, ErrorCode::SnapshotCorrupt)?;
    ensure!(!text.contains('/'), "a path of the host: {text}");
    Ok(())
}

#[tokio::test]
async fn the_disk_of_another_project_is_not_there() -> Result<()> {
    let world = Arc::new(World::with_room_for(4)?);
    let life = with_snapshot(&world).await?;
    let foreign = wanted(BOOTED, "q", None)?;
    let refusal = life.node.boot_sandbox(&snapshot_id("a")?, foreign).await;
    let text = refused(refusal, ErrorCode::NotFound)?;
    ensure!(text == "no snapshot snap-a", "{text}");
    let own = sandbox(BOOTED)?;
    let absent = life.node.boot_sandbox(&snapshot_id("b")?, own).await;
    refused(absent, ErrorCode::NotFound)?;
    ensure!(world.slots_left().await? == 1, "something was made");
    Ok(())
}

#[tokio::test]
async fn few_boot_at_once_and_nobody_stands_in_line() -> Result<()> {
    let world = Arc::new(World::with_room_for(6)?);
    let life = with_snapshot(&world).await?;
    let faults = world.engine.faults();
    faults.order(EngineOperation::Boot, 1, Fault::Hang);
    let (node, first) = (Arc::clone(&life.node), sandbox(BOOTED)?);
    let disk_of = snapshot_id("a")?;
    let booting = life.spawn(async move { node.boot_sandbox(&disk_of, first).await });
    let booting = booting.context("no runtime")?;
    let deadline = Instant::now() + LIMIT;
    while life.node.sandbox(&sandbox(BOOTED)?.id).await.is_err() {
        ensure!(Instant::now() < deadline, "it does not begin");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let other = sandbox(3)?;
    let second = life.node.boot_sandbox(&snapshot_id("a")?, other).await;
    let error = second.err().context("a second one boots")?;
    ensure!(error.code == ErrorCode::NoCapacity, "{error:?}");
    ensure!(error.retry_after_ms.is_some(), "{error:?}");
    // Its memory was admitted, and others are created meanwhile.
    let committed = life.node.status().await?.memory_committed_mib;
    ensure!(committed == 2 * 768, "{committed}");
    life.ensure_sandbox(sandbox(4)?).await?;
    // A delete cuts the boot short, and the next one has its turn.
    life.node.delete_sandbox(&sandbox(BOOTED)?.id).await?;
    ensure!(booting.await?.is_err(), "it was deleted");
    ensure!(boot(&life, 3).await?? == SandboxState::Running);
    Ok(())
}

#[tokio::test]
async fn a_boot_that_fails_is_told_and_leaves_nothing() -> Result<()> {
    let world = Arc::new(World::with_room_for(3)?);
    let life = with_snapshot(&world).await?;
    world
        .engine
        .faults()
        .order(EngineOperation::Boot, 1, Fault::Fail);
    let text = refused(boot(&life, BOOTED).await?, ErrorCode::Internal)?;
    ensure!(!text.contains('/'), "a path of the host: {text}");
    let deadline = Instant::now() + LIMIT;
    while world.slots_left().await? > 1 || world.journal_entries()? > 1 {
        ensure!(Instant::now() < deadline, "something is left");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ensure!(boot(&life, 3).await?? == SandboxState::Running);
    // It is admitted like any other: a third one does not fit.
    ensure!(boot(&life, 4).await?? == SandboxState::Running);
    refused(boot(&life, 5).await?, ErrorCode::NoCapacity)?;
    Ok(())
}
