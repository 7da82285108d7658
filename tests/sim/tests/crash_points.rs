//! Ends a node at every point of every operation, and looks at what the next one makes of it.
//!
//! The points are not listed anywhere: each operation is run once to see which it passes, and then
//! once for each of them, with the node dying there. A new effect is a new point by itself.
#![expect(
    clippy::print_stdout,
    reason = "the count of points is part of the result"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use dayfly_node::{Node, Point};
use dayfly_node_api::{
    EnsureExec, EnsureSandbox, EnsureVolume, ForkRequest, LifecycleChange, NodeApi, NodeCalls,
    SandboxReport, SetNetwork, SnapshotRequest,
};
use dayfly_sim::crash::MortalNode;
use dayfly_sim::{World, wanted};
use dayfly_types::egress::EgressPolicy;
use dayfly_types::exec::{ExecCommand, ExecEvent, ExecSpec};
use dayfly_types::volume::MountedVolume;
use dayfly_types::{DiskMib, ExecId, ProjectId, SandboxId, SandboxState, SnapshotId, VolumeName};
use dayfly_vmm::{CpuWeight, EngineProcess};
use futures::StreamExt;

const PROJECT: &str = "p";
/// Sandboxes by number.
const SUBJECT: u32 = 1;
const BYSTANDER: u32 = 2;
const DELETED: u32 = 3;
const NEW: u32 = 4;
const CHILDREN: [u32; 2] = [5, 6];
const BOOTED: u32 = 7;
const CHECK: u32 = 9;

const TTL_SECONDS: u64 = 3600;
const NETWORK_EPOCH: u64 = 7;

const SETTLE_LIMIT: Duration = Duration::from_secs(30);

/// What is being done when the node dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    CreateWithVolume,
    CreateFromSnapshot,
    CreateOnDisk,
    CreateOnDiskWithVolume,
    Snapshot,
    SnapshotWithVolume,
    SnapshotOnDisk,
    Fork,
    Hibernate,
    HibernateWithVolume,
    HibernateOnDisk,
    Wake,
    Rollback,
    DeleteSnapshot,
    Delete,
    DeleteWithVolume,
    Pause,
    Resume,
    SetLifecycle,
    SetNetwork,
    MakeVolume,
    GrowVolume,
    DeleteVolume,
}

fn id(number: u32) -> Result<SandboxId> {
    Ok(wanted(number, PROJECT, None)?.id)
}

fn snapshot_id(name: &str) -> Result<SnapshotId> {
    Ok(SnapshotId::parse(&format!("snap-local-{name}"))?)
}

fn volume() -> Result<MountedVolume> {
    Ok(MountedVolume {
        name: VolumeName::parse("data")?,
        path: "/volumes/data".to_owned(),
        read_only: false,
    })
}

fn named_volume(name: &str, mib: u64) -> Result<EnsureVolume> {
    Ok(EnsureVolume {
        project: ProjectId::parse(PROJECT)?,
        name: VolumeName::parse(name)?,
        size: DiskMib::new(mib)?,
    })
}

fn with_volume(number: u32) -> Result<EnsureSandbox> {
    let mut sandbox = wanted(number, PROJECT, None)?;
    sandbox.volumes.push(volume()?);
    Ok(sandbox)
}

impl Operation {
    fn needs_volume(self) -> bool {
        matches!(
            self,
            Self::CreateWithVolume
                | Self::CreateOnDiskWithVolume
                | Self::SnapshotWithVolume
                | Self::HibernateWithVolume
                | Self::DeleteWithVolume
        )
    }

    /// Whether it makes the sandbox that has the volume.
    fn creates_with_volume(self) -> bool {
        matches!(self, Self::CreateWithVolume | Self::CreateOnDiskWithVolume)
    }

    /// What is there and was acknowledged before the operation begins.
    async fn prepare(self, node: &Node) -> Result<()> {
        if self.needs_volume() {
            node.ensure_volume(named_volume("data", 16)?).await?;
        }
        let subject = if self.needs_volume() && !self.creates_with_volume() {
            with_volume(SUBJECT)?
        } else {
            wanted(SUBJECT, PROJECT, None)?
        };
        node.ensure_sandbox(subject).await?;
        node.ensure_sandbox(wanted(BYSTANDER, PROJECT, None)?)
            .await?;
        node.ensure_sandbox(wanted(DELETED, PROJECT, None)?).await?;
        let request = SnapshotRequest {
            id: snapshot_id("kept")?,
            name: None,
            retain_seconds: None,
        };
        node.snapshot(&id(SUBJECT)?, request).await?;
        node.delete_sandbox(&id(DELETED)?).await?;
        if matches!(self, Self::SnapshotOnDisk | Self::HibernateOnDisk) {
            let booted = wanted(BOOTED, PROJECT, None)?;
            node.boot_sandbox(&snapshot_id("kept")?, booted).await?;
        }
        if self == Self::Wake {
            node.hibernate(&id(SUBJECT)?).await?;
        }
        if self == Self::Resume {
            node.pause(&id(SUBJECT)?).await?;
        }
        if matches!(self, Self::GrowVolume | Self::DeleteVolume) {
            node.ensure_volume(named_volume("spare", 16)?).await?;
        }
        Ok(())
    }

    async fn run(self, node: &Node) -> Result<()> {
        let subject = id(SUBJECT)?;
        match self {
            Self::Create => drop(node.ensure_sandbox(wanted(NEW, PROJECT, None)?).await?),
            Self::CreateWithVolume => drop(node.ensure_sandbox(with_volume(NEW)?).await?),
            Self::CreateFromSnapshot => {
                let mut sandbox = wanted(NEW, PROJECT, None)?;
                sandbox.from_snapshot = Some(snapshot_id("kept")?);
                drop(node.ensure_sandbox(sandbox).await?);
            }
            Self::CreateOnDisk | Self::CreateOnDiskWithVolume => {
                let sandbox = if self.needs_volume() {
                    with_volume(NEW)?
                } else {
                    wanted(NEW, PROJECT, None)?
                };
                drop(node.boot_sandbox(&snapshot_id("kept")?, sandbox).await?);
            }
            Self::Snapshot | Self::SnapshotWithVolume | Self::SnapshotOnDisk => {
                let is_booted = self == Self::SnapshotOnDisk;
                let subject = if is_booted { id(BOOTED)? } else { subject };
                let request = SnapshotRequest {
                    id: snapshot_id("new")?,
                    name: None,
                    retain_seconds: None,
                };
                drop(node.snapshot(&subject, request).await?);
            }
            Self::Fork => {
                let children = CHILDREN.map(|number| wanted(number, PROJECT, None));
                let request = ForkRequest {
                    snapshot: snapshot_id("fork")?,
                    children: children.into_iter().collect::<Result<_>>()?,
                    all_or_nothing: false,
                };
                drop(node.fork(&subject, request).await?);
            }
            Self::Hibernate | Self::HibernateWithVolume => drop(node.hibernate(&subject).await?),
            Self::HibernateOnDisk => drop(node.hibernate(&id(BOOTED)?).await?),
            Self::Wake => drop(node.wake(&subject).await?),
            Self::Rollback => drop(node.rollback(&subject, &snapshot_id("kept")?).await?),
            Self::DeleteSnapshot => node.delete_snapshot(&snapshot_id("kept")?).await?,
            Self::Delete | Self::DeleteWithVolume => node.delete_sandbox(&subject).await?,
            Self::Pause => drop(node.pause(&subject).await?),
            Self::Resume => drop(node.resume(&subject).await?),
            Self::SetLifecycle => {
                let change = LifecycleChange {
                    ttl_seconds: Some(Some(TTL_SECONDS)),
                    ..LifecycleChange::default()
                };
                let _ = node.set_lifecycle(&subject, change).await?;
            }
            Self::SetNetwork => {
                let wanted = SetNetwork {
                    epoch: NETWORK_EPOCH,
                    policy: EgressPolicy::default(),
                };
                drop(node.set_network(&subject, wanted).await?);
            }
            Self::MakeVolume => drop(node.ensure_volume(named_volume("spare", 16)?).await?),
            Self::GrowVolume => drop(node.ensure_volume(named_volume("spare", 32)?).await?),
            Self::DeleteVolume => {
                let volume = named_volume("spare", 16)?;
                node.delete_volume(&volume.project, &volume.name).await?;
            }
        }
        Ok(())
    }
}

async fn answers(node: &Node, sandbox: &SandboxId) -> Result<()> {
    let command = ExecCommand::Argv(vec!["true".to_owned()]);
    let request = EnsureExec::new(ExecSpec::new(ExecId::parse("ex-check")?, command));
    let mut events = node.exec(sandbox, request).await?;
    while let Some(event) = events.next().await {
        if let ExecEvent::Exited(end) = event? {
            ensure!(end.exit.code == 0, "{end:?}");
            return Ok(());
        }
    }
    bail!("the exec has no end")
}

async fn until_answers(node: &Node, sandbox: &SandboxId) -> Result<()> {
    let deadline = Instant::now() + SETTLE_LIMIT;
    loop {
        match answers(node, sandbox).await {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// What the last life was deleting, or had only begun to make, goes by itself.
async fn until_none_is_on_its_way_out(node: &Node) -> Result<()> {
    let deadline = Instant::now() + SETTLE_LIMIT;
    let goes = |report: &SandboxReport| report.state == SandboxState::Deleting;
    while node.sandboxes().await?.iter().any(goes) {
        ensure!(Instant::now() < deadline, "a deletion has no end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// How much a change was acknowledged when the node died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Done,
}

impl Told {
    /// Holds what is there against what was before and what was asked for. What was acknowledged
    /// is what was asked for.
    fn check<T: PartialEq + std::fmt::Debug>(self, found: T, before: T, asked: T) -> Result<()> {
        let is_fine = found == asked || self == Self::Nothing && found == before;
        ensure!(
            is_fine,
            "{found:?} is there, {asked:?} was asked for, {self:?}"
        );
        Ok(())
    }
}

/// What the changes of the smaller kind have left.
async fn check_change(node: &Node, operation: Operation, told: Told) -> Result<()> {
    let subject = id(SUBJECT)?;
    let spare = async || {
        let volumes = node.volumes().await?;
        let spare = volumes.iter().find(|one| one.name.as_str() == "spare");
        anyhow::Ok(spare.map(|one| u64::from(one.size.get())))
    };
    match operation {
        Operation::Pause => {
            let found = node.sandbox(&subject).await?.state;
            told.check(found, SandboxState::Running, SandboxState::Paused)
        }
        Operation::Resume => {
            let found = node.sandbox(&subject).await?.state;
            told.check(found, SandboxState::Paused, SandboxState::Running)
        }
        Operation::SetLifecycle => {
            let found = node.lifecycle(&subject).await?.lifecycle.ttl_seconds;
            told.check(found, None, Some(TTL_SECONDS))
        }
        Operation::SetNetwork => {
            let before = wanted(SUBJECT, PROJECT, None)?.egress_epoch;
            told.check(node.network(&subject).await?.epoch, before, NETWORK_EPOCH)
        }
        Operation::MakeVolume => told.check(spare().await?, None, Some(16)),
        Operation::GrowVolume => told.check(spare().await?, Some(16), Some(32)),
        Operation::DeleteVolume => told.check(spare().await?, Some(16), None),
        // Seen by whether sandboxes and snapshots are there and answer.
        Operation::Create
        | Operation::CreateWithVolume
        | Operation::CreateFromSnapshot
        | Operation::CreateOnDisk
        | Operation::CreateOnDiskWithVolume
        | Operation::Snapshot
        | Operation::SnapshotWithVolume
        | Operation::SnapshotOnDisk
        | Operation::Fork
        | Operation::Hibernate
        | Operation::HibernateWithVolume
        | Operation::HibernateOnDisk
        | Operation::Wake
        | Operation::Rollback
        | Operation::DeleteSnapshot
        | Operation::Delete
        | Operation::DeleteWithVolume => Ok(()),
    }
}

/// Everything that must hold after a crash and a start, whatever was under way.
async fn check(world: &World, node: &Arc<Node>, operation: Operation, told: Told) -> Result<()> {
    check_change(node, operation, told).await?;
    until_none_is_on_its_way_out(node).await?;
    let reports = node.sandboxes().await?;
    let ids: BTreeSet<_> = reports.iter().map(|report| report.id.clone()).collect();
    ensure!(!ids.contains(&id(DELETED)?), "a deleted sandbox is back");
    let is_deleted = matches!(operation, Operation::Delete | Operation::DeleteWithVolume);
    ensure!(
        is_deleted || ids.contains(&id(SUBJECT)?),
        "an acknowledged sandbox is gone"
    );
    for report in &reports {
        ensure!(
            report.state != SandboxState::Failed,
            "{} failed: {:?}",
            report.id,
            report.reason
        );
    }
    // Every sandbox that is there goes on, those that sleep by waking.
    for sandbox in &ids {
        let state = node.sandbox(sandbox).await?.state;
        if state == SandboxState::Paused {
            node.resume(sandbox).await?;
        }
        if state != SandboxState::Deleting {
            until_answers(node, sandbox)
                .await
                .with_context(|| format!("{sandbox} was {state:?}"))?;
        }
    }
    let machines = world.slots.running().len();
    let wanted_machines = node.sandboxes().await?.len();
    ensure!(
        machines == wanted_machines,
        "{machines} machines for {wanted_machines} sandboxes"
    );
    let weights = world.slots.weights();
    ensure!(
        weights.iter().all(|weight| *weight == CpuWeight::Running),
        "a machine that runs goes behind others: {weights:?}"
    );
    if operation != Operation::DeleteSnapshot {
        let mut from_kept = wanted(CHECK, PROJECT, None)?;
        from_kept.from_snapshot = Some(snapshot_id("kept")?);
        let restored = node.ensure_sandbox(from_kept).await;
        restored.context("an acknowledged snapshot cannot be restored")?;
        answers(node, &id(CHECK)?).await?;
    }
    leaves_nothing(world, node).await
}

/// Deletes everything and waits until nothing is left.
async fn leaves_nothing(world: &World, node: &Arc<Node>) -> Result<()> {
    for report in node.sandboxes().await? {
        node.delete_sandbox(&report.id).await?;
    }
    for snapshot in node.snapshots().await? {
        node.delete_snapshot(&snapshot.id).await?;
    }
    for volume in node.volumes().await? {
        ensure!(
            volume.writer.is_none() && volume.readers.is_empty(),
            "a lease is left: {volume:?}"
        );
        node.delete_volume(&volume.project, &volume.name).await?;
    }
    ensure!(world.slots.running().is_empty(), "a machine is left");
    ensure!(world.slots_left().await? == 0, "a slot is left");
    ensure!(world.journal_entries()? == 0, "a record is left");
    let deadline = Instant::now() + SETTLE_LIMIT;
    while !world.captures()?.is_empty() {
        ensure!(
            Instant::now() < deadline,
            "captures are left: {:?}",
            world.captures()?
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn prepared(operation: Operation) -> Result<(Arc<World>, MortalNode)> {
    let world = Arc::new(World::with_room_for(20)?);
    let mortal = MortalNode::start(&world).await?;
    let node = Arc::clone(&mortal.node);
    let work = mortal.spawn(async move { operation.prepare(&node).await });
    work.context("no runtime")?.await??;
    Ok((world, mortal))
}

/// The points that an undisturbed run passes.
async fn points_of(operation: Operation) -> Result<Vec<Point>> {
    let (_world, mortal) = prepared(operation).await?;
    mortal.reaper.record();
    let node = Arc::clone(&mortal.node);
    let work = mortal.spawn(async move { operation.run(&node).await });
    work.context("no runtime")?.await??;
    Ok(mortal.reaper.recorded())
}

/// The process that a sandbox's record names.
fn machine_of(world: &World, sandbox: &SandboxId) -> Result<EngineProcess> {
    let record = std::fs::read(world.record_of(sandbox))?;
    let record: serde_json::Value = serde_json::from_slice(&record)?;
    let process = record.get("process").context("no process")?;
    Ok(serde_json::from_value(process.clone())?)
}

async fn die_at(operation: Operation, index: usize) -> Result<()> {
    let (world, mortal) = prepared(operation).await?;
    let bystander = mortal.node.sandbox(&id(BYSTANDER)?).await?;
    let its_machine = machine_of(&world, &bystander.id)?;
    ensure!(world.slots.running().contains(&its_machine), "no bystander");
    mortal.reaper.die_after(index);
    let (node, reaper) = (Arc::clone(&mortal.node), Arc::clone(&mortal.reaper));
    let work = mortal.spawn(async move { operation.run(&node).await });
    let work = work.context("no runtime")?;
    let told = tokio::select! {
        () = reaper.death() => Told::Nothing,
        // A point of the background may have made the difference; then it lives on and is killed.
        done = work => match done {
            Ok(Ok(())) => Told::Done,
            _ => Told::Nothing,
        },
    };
    mortal.kill().await;
    let next = MortalNode::start(&world).await?;
    let node = Arc::clone(&next.node);
    let after = node.sandbox(&id(BYSTANDER)?).await?;
    ensure!(
        bystander.generation == after.generation && bystander.state == after.state,
        "somebody else's sandbox changed"
    );
    ensure!(
        world.slots.running().contains(&its_machine),
        "the bystander's machine is gone"
    );
    let here = Arc::clone(&world);
    let checked = next.spawn(async move { check(&here, &node, operation, told).await });
    checked.context("no runtime")?.await?
}

/// Points of one operation that are tried at the same time, each in a world of its own.
const PARALLEL: usize = 4;

async fn die_at_every_point(operation: Operation) -> Result<()> {
    let points = points_of(operation).await?;
    ensure!(points.len() >= 2, "{operation:?} has no effect");
    let effects: BTreeSet<_> = points.iter().map(|point| point.effect).collect();
    let mut outcomes = futures::stream::iter(points.iter().enumerate())
        .map(|(index, point)| async move {
            let outcome = die_at(operation, index).await;
            outcome.with_context(|| format!("{operation:?}, dead {point} (point {index})"))
        })
        .buffer_unordered(PARALLEL);
    while let Some(outcome) = outcomes.next().await {
        outcome?;
    }
    println!(
        "{operation:?}: {} crash points, {} effects",
        points.len(),
        effects.len()
    );
    Ok(())
}

macro_rules! tests {
    ($($name:ident: $operation:ident,)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() -> Result<()> {
            die_at_every_point(Operation::$operation).await
        }
    )*};
}

tests! {
    a_node_may_die_anywhere_in_a_create: Create,
    a_node_may_die_anywhere_in_a_create_with_a_volume: CreateWithVolume,
    a_node_may_die_anywhere_in_a_create_from_a_snapshot: CreateFromSnapshot,
    a_node_may_die_anywhere_in_a_create_on_a_disk: CreateOnDisk,
    a_node_may_die_anywhere_in_a_create_on_a_disk_with_a_volume: CreateOnDiskWithVolume,
    a_node_may_die_anywhere_in_a_snapshot_of_what_was_booted: SnapshotOnDisk,
    a_node_may_die_anywhere_in_the_hibernation_of_what_was_booted: HibernateOnDisk,
    a_node_may_die_anywhere_in_a_snapshot: Snapshot,
    a_node_may_die_anywhere_in_a_snapshot_with_a_volume: SnapshotWithVolume,
    a_node_may_die_anywhere_in_a_fork: Fork,
    a_node_may_die_anywhere_in_a_hibernation: Hibernate,
    a_node_may_die_anywhere_in_a_hibernation_with_a_volume: HibernateWithVolume,
    a_node_may_die_anywhere_in_a_wake: Wake,
    a_node_may_die_anywhere_in_a_rollback: Rollback,
    a_node_may_die_anywhere_in_the_delete_of_a_snapshot: DeleteSnapshot,
    a_node_may_die_anywhere_in_a_delete: Delete,
    a_node_may_die_anywhere_in_a_delete_with_a_volume: DeleteWithVolume,
    a_node_may_die_anywhere_in_a_pause: Pause,
    a_node_may_die_anywhere_in_a_resume: Resume,
    a_node_may_die_anywhere_in_a_change_of_a_lifetime: SetLifecycle,
    a_node_may_die_anywhere_in_a_change_of_a_network: SetNetwork,
    a_node_may_die_anywhere_in_the_making_of_a_volume: MakeVolume,
    a_node_may_die_anywhere_in_the_growth_of_a_volume: GrowVolume,
    a_node_may_die_anywhere_in_the_delete_of_a_volume: DeleteVolume,
}
