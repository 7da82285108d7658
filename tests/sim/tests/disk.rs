//! Claims about a node whose disk is full, or does not take what is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use dayfly_node::{Effect, Effects, Point};
use dayfly_node_api::{EnsureExec, EnsureVolume, NodeApi, NodeCalls, NodeError, SandboxReport};
use dayfly_sim::crash::MortalNode;
use dayfly_sim::{World, snapshot, until, wanted};
use dayfly_types::exec::{ExecCommand, ExecSpec};
use dayfly_types::{
    DiskMib, ErrorCode, ExecId, ProjectId, SandboxCondition, SandboxState, SnapshotId, VolumeName,
};

fn exec() -> Result<EnsureExec> {
    let command = ExecCommand::Argv(vec!["true".to_owned()]);
    Ok(EnsureExec::new(ExecSpec::new(
        ExecId::parse("ex-1")?,
        command,
    )))
}

fn refused<T>(outcome: Result<T, NodeError>, code: ErrorCode) -> Result<()> {
    match outcome {
        Ok(_) => bail!("it was not refused"),
        Err(error) if error.code == code => Ok(()),
        Err(error) => bail!("{:?}, not {code:?}: {}", error.code, error.message),
    }
}

async fn with_condition(
    node: &dayfly_node::Node,
    request: &dayfly_node_api::EnsureSandbox,
    condition: Option<SandboxCondition>,
) -> Result<SandboxReport> {
    until(&format!("its condition is {condition:?}"), async || {
        let report = node.sandbox(&request.id).await.ok()?;
        (report.condition == condition).then_some(report)
    })
    .await
}

#[tokio::test]
async fn a_guest_without_room_stands_still_is_shown_and_goes_on() -> Result<()> {
    let world = World::with_room_for(2)?;
    let node = world.start_node().await?;
    let request = wanted(1, "p", None)?;
    node.ensure_sandbox(request.clone()).await?;
    drop(node.exec(&request.id, exec()?).await.context("with room")?);
    world.host.disk_mib.store(0, Ordering::SeqCst);
    world.engine.run_out_of_room();
    let full = Some(SandboxCondition::DiskFull);
    let report = with_condition(&node, &request, full).await?;
    ensure!(report.state == SandboxState::Running, "{report:?}");
    refused(
        node.exec(&request.id, exec()?).await,
        ErrorCode::StorageFull,
    )
    .context("exec")?;
    refused(
        node.snapshot(&request.id, snapshot("a")?).await,
        ErrorCode::StorageFull,
    )
    .context("snapshot")?;
    refused(node.hibernate(&request.id).await, ErrorCode::StorageFull).context("sleep")?;
    // Longer than the first try would take: without room there is none.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let report = node.sandbox(&request.id).await?;
    ensure!(report.condition == full, "it went on without room");
    world.host.disk_mib.store(1 << 30, Ordering::SeqCst);
    with_condition(&node, &request, None).await?;
    drop(
        node.exec(&request.id, exec()?)
            .await
            .context("afterwards")?,
    );
    node.snapshot(&request.id, snapshot("b")?).await?;
    Ok(())
}

#[tokio::test]
async fn a_pause_by_its_user_stays_one_when_there_is_room_again() -> Result<()> {
    let world = World::with_room_for(2)?;
    let node = world.start_node().await?;
    let request = wanted(1, "p", None)?;
    node.ensure_sandbox(request.clone()).await?;
    world.host.disk_mib.store(0, Ordering::SeqCst);
    world.engine.run_out_of_room();
    with_condition(&node, &request, Some(SandboxCondition::DiskFull)).await?;
    node.pause(&request.id).await?;
    world.host.disk_mib.store(1 << 30, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let report = node.sandbox(&request.id).await?;
    ensure!(report.state == SandboxState::Paused, "{report:?}");
    refused(node.exec(&request.id, exec()?).await, ErrorCode::WrongState)?;
    let report = node.resume(&request.id).await?;
    ensure!(report.condition.is_none() && report.state == SandboxState::Running);
    drop(node.exec(&request.id, exec()?).await?);
    Ok(())
}

#[tokio::test]
async fn a_guest_without_room_is_deleted_at_once_and_adopted_by_the_next_node() -> Result<()> {
    let world = Arc::new(World::with_room_for(3)?);
    let first = MortalNode::start(&world).await?;
    let node = Arc::clone(&first.node);
    let (one, two) = (wanted(1, "p", None)?, wanted(2, "p", None)?);
    first.ensure_sandbox(one.clone()).await?;
    first.ensure_sandbox(two.clone()).await?;
    world.host.disk_mib.store(0, Ordering::SeqCst);
    world.engine.run_out_of_room();
    let full = Some(SandboxCondition::DiskFull);
    with_condition(&node, &one, full).await?;
    with_condition(&node, &two, full).await?;
    node.delete_sandbox(&one.id).await?;
    ensure!(world.slots_left().await? == 1);
    drop(node);
    first.kill().await;
    let second = MortalNode::start(&world).await?;
    let node = Arc::clone(&second.node);
    let report = node.sandbox(&two.id).await?;
    ensure!(report.state == SandboxState::Running, "{report:?}");
    // The new node lets it try; it finds no room either.
    world.engine.run_out_of_room();
    with_condition(&node, &two, full).await?;
    world.host.disk_mib.store(1 << 30, Ordering::SeqCst);
    with_condition(&node, &two, None).await?;
    drop(node.exec(&two.id, exec()?).await?);
    Ok(())
}

#[tokio::test]
async fn a_damaged_disk_is_shown_and_never_captured_also_by_the_next_node() -> Result<()> {
    let world = Arc::new(World::with_room_for(2)?);
    let first = MortalNode::start(&world).await?;
    let node = Arc::clone(&first.node);
    let request = wanted(1, "p", None)?;
    first.ensure_sandbox(request.clone()).await?;
    node.snapshot(&request.id, snapshot("good")?).await?;
    world.engine.break_disks();
    let damaged = Some(SandboxCondition::DiskDamaged);
    with_condition(&node, &request, damaged).await?;
    let captured = node.snapshot(&request.id, snapshot("bad")?).await;
    refused(captured, ErrorCode::DiskDamaged)?;
    refused(node.hibernate(&request.id).await, ErrorCode::DiskDamaged)?;
    drop(node);
    first.kill().await;
    let second = MortalNode::start(&world).await?;
    let node = Arc::clone(&second.node);
    let report = node.sandbox(&request.id).await?;
    ensure!(report.condition == damaged, "{report:?}");
    let captured = node.snapshot(&request.id, snapshot("bad2")?).await;
    refused(captured, ErrorCode::DiskDamaged)?;
    // What was captured before is good, and a way back.
    let back = SnapshotId::parse("snap-good")?;
    let report = node.rollback(&request.id, &back).await?;
    ensure!(report.condition.is_none(), "{report:?}");
    node.snapshot(&request.id, snapshot("again")?).await?;
    Ok(())
}

/// The room of two disks of 64 MiB, and beside it less than a capture may take.
#[tokio::test]
async fn a_capture_beyond_the_room_is_refused_before_anything_stands_still() -> Result<()> {
    let world = World::with_room_for(2)?;
    let stops = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&stops);
    let effects = Effects::observed_by(Arc::new(move |point: Point| {
        if matches!(point.effect, Effect::EnginePause | Effect::GuestQuiesce) {
            seen.fetch_add(1, Ordering::SeqCst);
        }
    }));
    let node = world.start_observed(effects).await?;
    let (greedy, victim) = (wanted(1, "p", None)?, wanted(2, "p", None)?);
    node.ensure_sandbox(greedy.clone()).await?;
    node.ensure_sandbox(victim.clone()).await?;
    // 512 of memory, 8 beside it, 1 of the layer.
    world.host.disk_mib.store(2 * 64 + 520, Ordering::SeqCst);
    let captured = node.snapshot(&greedy.id, snapshot("a")?).await;
    refused(captured, ErrorCode::StorageFull)?;
    ensure!(stops.load(Ordering::SeqCst) == 0, "something was stopped");
    let report = node.sandbox(&greedy.id).await?;
    ensure!(report.condition.is_none() && report.state == SandboxState::Running);
    world.host.disk_mib.store(2 * 64 + 521, Ordering::SeqCst);
    node.snapshot(&greedy.id, snapshot("b")?).await?;
    ensure!(stops.load(Ordering::SeqCst) > 0);
    Ok(())
}

#[tokio::test]
async fn a_volume_is_promised_in_full() -> Result<()> {
    let world = World::with_room_for(3)?;
    let node = world.start_node().await?;
    node.ensure_sandbox(wanted(1, "p", None)?).await?;
    let volume = |name: &str, size: u64| -> Result<EnsureVolume> {
        Ok(EnsureVolume {
            project: ProjectId::parse("p")?,
            name: VolumeName::parse(name)?,
            size: DiskMib::new(size)?,
        })
    };
    world.host.disk_mib.store(64 + 100, Ordering::SeqCst);
    let refusal = node.ensure_volume(volume("a", 101)?).await;
    refused(refusal, ErrorCode::StorageFull)?;
    node.ensure_volume(volume("a", 64)?).await?;
    // A repeat asks for nothing more; a growth asks for the difference.
    node.ensure_volume(volume("a", 64)?).await?;
    refused(
        node.ensure_volume(volume("a", 110)?).await,
        ErrorCode::StorageFull,
    )?;
    let create = node.ensure_sandbox(wanted(2, "p", None)?).await;
    refused(create, ErrorCode::NoCapacity)?;
    node.delete_volume(&ProjectId::parse("p")?, &VolumeName::parse("a")?)
        .await?;
    node.ensure_sandbox(wanted(2, "p", None)?).await?;
    Ok(())
}
