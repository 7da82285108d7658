//! What a node cannot read it keeps: records, captures and machines survive a program, a disk or
//! an engine that is not up to them for a while.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_node::{Effect, Effects};
use dayfly_node_api::{NodeCalls, SandboxReport, SnapshotRequest};
use dayfly_sim::crash::MortalNode;
use dayfly_sim::{World, until, wanted};
use dayfly_testkit::{EngineOperation, Fault};
use dayfly_types::{ErrorCode, SandboxId, SandboxState, SnapshotId};
use serde_json::Value;

/// Long enough for the collector to have removed whatever it thinks nobody needs: it takes two of
/// the passes that a simulated node makes every 50 ms.
const COLLECTED_AFTER: Duration = Duration::from_millis(500);

/// How a record is spoilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    LaterFormat,
    LaterFormatWithoutSlot,
    Torn,
    InputOutputError,
    IsDirectory,
    TooLong,
    Missing,
}

const DAMAGES: [Damage; 7] = [
    Damage::LaterFormat,
    Damage::LaterFormatWithoutSlot,
    Damage::Torn,
    Damage::InputOutputError,
    Damage::IsDirectory,
    Damage::TooLong,
    Damage::Missing,
];

/// A record that was spoilt and can be put right.
struct Spoilt {
    path: PathBuf,
    text: Vec<u8>,
}

impl Spoilt {
    fn new(damage: Damage, path: PathBuf) -> Result<Self> {
        let text = std::fs::read(&path)?;
        let later = || -> Result<Value> {
            let mut value: Value = serde_json::from_slice(&text)?;
            value["format"] = (dayfly_node::journal::JOURNAL_FORMAT_NEWEST + 1).into();
            Ok(value)
        };
        let half = &text[..text.len() / 2];
        match damage {
            Damage::LaterFormat => std::fs::write(&path, later()?.to_string())?,
            Damage::LaterFormatWithoutSlot => {
                let mut value = later()?;
                value.as_object_mut().context("an object")?.remove("slot");
                std::fs::write(&path, value.to_string())?;
            }
            Damage::Torn => std::fs::write(&path, half)?,
            Damage::InputOutputError => {
                std::fs::remove_file(&path)?;
                // The first page of this process's memory, which cannot be read.
                std::os::unix::fs::symlink("/proc/self/mem", &path)?;
            }
            Damage::IsDirectory => {
                std::fs::remove_file(&path)?;
                std::fs::create_dir(&path)?;
            }
            Damage::TooLong => std::fs::write(&path, vec![b' '; 300 << 10])?,
            Damage::Missing => {
                std::fs::remove_file(&path)?;
                std::fs::write(path.with_file_name("network.log"), b"")?;
            }
        }
        Ok(Self { path, text })
    }

    fn put_right(self) -> Result<()> {
        if self.path.is_dir() {
            std::fs::remove_dir(&self.path)?;
        }
        // By rename, as the journal does: whoever looks sees the whole of it.
        let aside = self.path.with_file_name("aside");
        std::fs::write(&aside, self.text)?;
        Ok(std::fs::rename(aside, &self.path)?)
    }
}

/// A running sandbox, a sleeping one and one that nothing happens to, of a node that died.
async fn populated(world: &Arc<World>) -> Result<[SandboxId; 3]> {
    let mortal = MortalNode::start(world).await?;
    let node = Arc::clone(&mortal.node);
    let made = mortal.spawn(async move {
        let mut ids = Vec::new();
        for number in 1..=3 {
            let request = wanted(number, "p", None)?;
            node.ensure_sandbox(request.clone()).await?;
            ids.push(request.id);
        }
        node.hibernate(&ids[1]).await?;
        anyhow::Ok(ids)
    });
    let ids = made.context("no runtime")?.await??;
    mortal.kill().await;
    ids.try_into().ok().context("three sandboxes")
}

fn manifest(captures: &Path) -> Result<PathBuf> {
    let mut entries = std::fs::read_dir(captures)?;
    let only = entries.next().context("no capture")??.path();
    ensure!(entries.next().is_none(), "more than one capture");
    Ok(only.join("manifest.json"))
}

async fn stays(world: &World, what: &str, machines: usize) -> Result<()> {
    tokio::time::sleep(COLLECTED_AFTER).await;
    ensure!(
        world.slots.running().len() == machines,
        "{what}: a machine ended"
    );
    ensure!(world.slots_left().await? == machines, "{what}: a slot went");
    ensure!(
        world.captures()?.len() == 1,
        "{what}: a capture was collected"
    );
    ensure!(world.journal_entries()? == 3, "{what}: a record went");
    Ok(())
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_kept_with_all_that_it_names() -> Result<()> {
    for damage in DAMAGES {
        for spoilt in 0..2 {
            let what = format!(
                "{damage:?} of {}",
                ["a running one", "a sleeping one"][spoilt]
            );
            let world = Arc::new(World::with_room_for(4)?);
            let ids = populated(&world).await?;
            let id = &ids[spoilt];
            let record = Spoilt::new(damage, world.record_of(id))?;
            let mortal = MortalNode::start(&world).await?;
            let node = &mortal.node;
            ensure!(
                node.reconciled().kept == 1,
                "{what}: {:?}",
                node.reconciled()
            );
            let shown = node.status().await?.kept;
            ensure!(shown.len() == 1 && shown[0].id == *id, "{what}: {shown:?}");
            stays(&world, &what, 2).await?;
            // Nobody touches it, and everybody else is served.
            let refused = node.delete_sandbox(id).await.err().context("deleted")?;
            ensure!(refused.code == ErrorCode::WrongState, "{what}: {refused:?}");
            let again = node
                .ensure_sandbox(wanted(u32::try_from(spoilt)? + 1, "p", None)?)
                .await;
            ensure!(again.is_err(), "{what}: its record was written over");
            ensure!(state(node.sandbox(&ids[2]).await?) == SandboxState::Running);
            stays(&world, &what, 2).await?;
            // It is there again as soon as it can be read, without a new start.
            record.put_right()?;
            until(&what, async || node.sandbox(id).await.ok()).await?;
            if spoilt == 1 {
                node.wake(id).await?;
            }
            ensure!(state(node.sandbox(id).await?) == SandboxState::Running);
            for id in &ids {
                node.delete_sandbox(id).await?;
            }
            until("nothing is left", async || {
                world.captures().ok()?.is_empty().then_some(())
            })
            .await?;
            ensure!(world.slots.running().is_empty() && world.journal_entries()? == 0);
        }
    }
    Ok(())
}

fn state(report: SandboxReport) -> SandboxState {
    report.state
}

#[tokio::test]
async fn the_operator_can_give_up_what_cannot_be_read_and_nothing_else() -> Result<()> {
    let world = Arc::new(World::with_room_for(4)?);
    let ids = populated(&world).await?;
    Spoilt::new(Damage::Torn, world.record_of(&ids[1]))?;
    let mortal = MortalNode::start(&world).await?;
    let node = &mortal.node;
    let refused = node.forget_unreadable(&ids[0]).await;
    ensure!(refused.is_err(), "a sandbox that can be read was given up");
    // Housekeeping may be looking at it.
    until("it is given up", async || {
        node.forget_unreadable(&ids[1]).await.ok()
    })
    .await?;
    until("its capture is collected", async || {
        world.captures().ok()?.is_empty().then_some(())
    })
    .await?;
    ensure!(node.status().await?.kept.is_empty() && world.journal_entries()? == 2);
    ensure!(state(node.sandbox(&ids[0]).await?) == SandboxState::Running);
    Ok(())
}

/// A snapshot that was deleted stays as well, because the record may lie on it.
#[tokio::test]
async fn nothing_is_collected_while_a_record_cannot_be_read() -> Result<()> {
    let world = Arc::new(World::with_room_for(4)?);
    let ids = populated(&world).await?;
    let record = Spoilt::new(Damage::Torn, world.record_of(&ids[2]))?;
    let mortal = MortalNode::start(&world).await?;
    let node = &mortal.node;
    let snapshot = SnapshotId::parse("snap-a")?;
    let request = SnapshotRequest {
        id: snapshot.clone(),
        name: None,
        retain_seconds: None,
    };
    // Its agent is being spoken to again.
    until("a snapshot", async || {
        node.snapshot(&ids[0], request.clone()).await.ok()
    })
    .await?;
    node.delete_snapshot(&snapshot).await?;
    node.delete_sandbox(&ids[0]).await?;
    node.delete_sandbox(&ids[1]).await?;
    tokio::time::sleep(COLLECTED_AFTER).await;
    ensure!(world.captures()?.len() == 2, "a capture was collected");
    record.put_right()?;
    until("it is collected", async || {
        world.captures().ok()?.is_empty().then_some(())
    })
    .await
}

/// Only for one start: what a sandbox sleeps in is looked for whenever somebody asks.
#[tokio::test]
async fn a_capture_that_cannot_be_read_once_costs_nothing() -> Result<()> {
    for is_at_start in [true, false] {
        let world = Arc::new(World::with_room_for(4)?);
        let ids = populated(&world).await?;
        let manifest = manifest(&world.captures_directory())?;
        let away = manifest.with_file_name("away");
        std::fs::rename(&manifest, &away)?;
        let mut mortal = MortalNode::start(&world).await?;
        let report = mortal.node.sandbox(&ids[1]).await?;
        ensure!(report.unavailable.is_some(), "{report:?}");
        ensure!(report.state == SandboxState::Hibernated, "{report:?}");
        let refused = mortal.node.wake(&ids[1]).await.err().context("it woke")?;
        ensure!(refused.code == ErrorCode::WrongState, "{refused:?}");
        stays(&world, "without its manifest", 2).await?;
        if is_at_start {
            mortal.kill().await;
            std::fs::rename(&away, &manifest)?;
            mortal = MortalNode::start(&world).await?;
        } else {
            std::fs::rename(&away, &manifest)?;
        }
        let node = &mortal.node;
        until("it is available", async || {
            let report = node.sandbox(&ids[1]).await.ok()?;
            report.unavailable.is_none().then_some(())
        })
        .await?;
        ensure!(state(node.wake(&ids[1]).await?) == SandboxState::Running);
    }
    Ok(())
}

/// What an older program made of a capture that it could not read once.
#[tokio::test]
async fn a_sandbox_that_an_older_program_called_failed_for_its_capture_wakes() -> Result<()> {
    let world = Arc::new(World::with_room_for(4)?);
    let ids = populated(&world).await?;
    let path = world.record_of(&ids[1]);
    let mut record: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    record["state"] = "failed".into();
    record["reason"] = "the capture that it slept in cannot be read".into();
    std::fs::write(&path, record.to_string())?;
    let mortal = MortalNode::start(&world).await?;
    let node = &mortal.node;
    let report = node.sandbox(&ids[1]).await?;
    ensure!(report.state == SandboxState::Hibernated && report.reason.is_none());
    ensure!(state(node.wake(&ids[1]).await?) == SandboxState::Running);
    Ok(())
}

#[tokio::test]
async fn a_machine_that_does_not_answer_at_a_start_is_not_ended() -> Result<()> {
    let world = Arc::new(World::with_room_for(4)?);
    let ids = populated(&world).await?;
    // The start, and the first look of the housekeeping.
    for nth in 1..=2 {
        let faults = world.engine.faults();
        faults.order(EngineOperation::Adopt, nth, Fault::Fail);
    }
    let mortal = MortalNode::start(&world).await?;
    let node = &mortal.node;
    ensure!(node.reconciled().kept >= 1, "{:?}", node.reconciled());
    ensure!(world.slots.running().len() == 2, "a machine was ended");
    for id in [&ids[0], &ids[2]] {
        let report = until("it is taken over", async || node.sandbox(id).await.ok()).await?;
        ensure!(report.state == SandboxState::Running, "{report:?}");
    }
    ensure!(world.slots.running().len() == 2 && world.slots_left().await? == 2);
    Ok(())
}

/// Its record says what belongs to it, so it can be deleted without its machine's answer.
#[tokio::test]
async fn a_machine_that_does_not_answer_can_be_deleted() -> Result<()> {
    let world = Arc::new(World::with_room_for(4)?);
    let ids = populated(&world).await?;
    for nth in 1..=1000 {
        let faults = world.engine.faults();
        faults.order(EngineOperation::Adopt, nth, Fault::Fail);
    }
    let mortal = MortalNode::start(&world).await?;
    let node = &mortal.node;
    ensure!(node.reconciled().kept == 2);
    until("it is deleted", async || {
        node.delete_sandbox(&ids[0]).await.ok()
    })
    .await?;
    ensure!(world.slots.running().len() == 1 && world.journal_entries()? == 2);
    Ok(())
}

/// Whoever dies in the middle of a sleep must leave a record that says so.
#[tokio::test]
async fn the_journal_never_says_running_while_a_sandbox_is_put_to_sleep() -> Result<()> {
    let world = Arc::new(World::with_room_for(4)?);
    let id = wanted(1, "p", None)?.id;
    let written: Arc<Mutex<Vec<String>>> = Arc::default();
    let (path, states) = (world.record_of(&id), Arc::clone(&written));
    let node = world
        .start_observed(Effects::observed_by(Arc::new(move |point| {
            if point.effect == Effect::JournalWrite {
                let text = std::fs::read(&path).unwrap_or_default();
                let record: Value = serde_json::from_slice(&text).unwrap_or_default();
                let state = record["state"].as_str().unwrap_or_default().to_owned();
                states
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(state);
            }
        })))
        .await?;
    node.ensure_sandbox(wanted(1, "p", None)?).await?;
    // A seal fails, and the engine does not say whether it happened: the sleep has to settle it,
    // which writes the record.
    let faults = world.engine.faults();
    faults.order(EngineOperation::Seal, 1, Fault::Fail);
    faults.order(EngineOperation::WritableDisk, 2, Fault::Fail);
    let request = SnapshotRequest {
        id: SnapshotId::parse("snap-a")?,
        name: None,
        retain_seconds: None,
    };
    ensure!(node.snapshot(&id, request).await.is_err());
    written
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
    node.hibernate(&id).await?;
    let states = written
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let begun = states.iter().position(|state| state == "hibernating");
    let begun = begun.context("it was never on its way")?;
    let since = &states[begun..];
    ensure!(since.len() > 3, "nothing was settled: {states:?}");
    ensure!(!since.iter().any(|state| state == "running"), "{states:?}");
    Ok(())
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A clock that starts a year ahead, and is put right within the hour, ends nothing.
#[tokio::test]
async fn a_wall_clock_that_is_wrong_for_a_while_after_a_boot_ends_no_sandbox() -> Result<()> {
    let world = Arc::new(World::with_room_for(4)?);
    let mortal = MortalNode::start(&world).await?;
    let node = Arc::clone(&mortal.node);
    let request = wanted(1, "p", Some(2 * 24 * 3600))?;
    let id = request.id.clone();
    let made = mortal.spawn(async move {
        node.ensure_sandbox(request.clone()).await?;
        node.hibernate(&request.id).await
    });
    made.context("no runtime")?.await??;
    mortal.kill().await;
    world.reboot();
    world.clock.set_wall_ahead(365 * DAY);
    let mortal = MortalNode::start(&world).await?;
    let node = &mortal.node;
    world.clock.advance(Duration::from_secs(1800));
    ensure!(node.sandbox(&id).await?.state == SandboxState::Hibernated);
    world.clock.set_wall_ahead(Duration::ZERO);
    world.clock.advance(DAY);
    let left = until("its own deadline holds again", async || {
        let left = node.sandbox(&id).await.ok()?.expires_in_seconds?;
        (left > 3600).then_some(left)
    })
    .await?;
    ensure!(left <= 24 * 3600, "{left} s are left");
    world.clock.advance(DAY);
    until("it ends on time", async || node.sandbox(&id).await.err()).await?;
    Ok(())
}

#[tokio::test]
async fn a_wall_clock_that_jumps_ends_no_snapshot_before_it_has_lasted() -> Result<()> {
    let world = Arc::new(World::with_room_for(4)?);
    let ids = populated(&world).await?;
    let mortal = MortalNode::start(&world).await?;
    let node = &mortal.node;
    for (name, retain) in [("snap-short", Some(60)), ("snap-long", Some(3 * 24 * 3600))] {
        let request = SnapshotRequest {
            id: SnapshotId::parse(name)?,
            name: None,
            retain_seconds: retain,
        };
        // Its agent is being spoken to again.
        until("a snapshot", async || {
            node.snapshot(&ids[0], request.clone()).await.ok()
        })
        .await?;
    }
    let count = async || node.snapshots().await.map_or(0, |found| found.len());
    // The clock is looked at once before it jumps; what is over by time that passed goes.
    world.clock.advance(Duration::from_secs(61));
    until("the short one ends", async || {
        (count().await == 1).then_some(())
    })
    .await?;
    world.clock.set_wall_ahead(365 * DAY);
    tokio::time::sleep(COLLECTED_AFTER).await;
    ensure!(count().await == 1, "a jump ended a snapshot");
    world.clock.set_wall_ahead(Duration::ZERO);
    world.clock.advance(2 * DAY);
    tokio::time::sleep(COLLECTED_AFTER).await;
    ensure!(count().await == 1, "it ended early");
    world.clock.advance(DAY);
    until("the long one ends", async || {
        (count().await == 0).then_some(())
    })
    .await
}
