//! Claims about a sandbox's state that need exact time, exact faults or many tries.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use dayfly_node_api::{
    EnsureExec, EnsureVolume, ForkOutcome, ForkRequest, LifecycleChange, NodeApi, NodeCalls,
    SandboxReport, Watch,
};
use dayfly_sim::{World, snapshot, until, wanted};
use dayfly_testkit::{EngineOperation, Fault};
use dayfly_types::exec::{ExecCommand, ExecSpec};
use dayfly_types::volume::MountedVolume;
use dayfly_types::{
    DiskMib, EndReason, ErrorCode, ExecId, IdleAction, ProjectId, SandboxId, SandboxState,
    SnapshotId, VolumeName,
};
use futures::StreamExt;

fn exec() -> Result<EnsureExec> {
    let command = ExecCommand::Argv(vec!["true".to_owned()]);
    Ok(EnsureExec::new(ExecSpec::new(
        ExecId::parse("ex-1")?,
        command,
    )))
}

/// An extension that races the deadline wins or loses, and both sides agree on which.
#[tokio::test]
async fn an_extension_at_the_deadline_has_one_winner() -> Result<()> {
    let world = World::with_room_for(3)?;
    let node = world.start_node().await?;
    let (mut extended, mut expired) = (0, 0);
    for number in 0..200 {
        let request = wanted(number, "p", Some(10))?;
        node.ensure_sandbox(request.clone()).await?;
        let change = LifecycleChange {
            ttl_seconds: Some(Some(100)),
            ..LifecycleChange::default()
        };
        // Every other time the clock goes first.
        let outcome = if number % 2 == 0 {
            world.clock.advance(Duration::from_secs(10));
            node.set_lifecycle(&request.id, change).await
        } else {
            let (outcome, ()) = tokio::join!(node.set_lifecycle(&request.id, change), async {
                world.clock.advance(Duration::from_secs(10));
            });
            outcome
        };
        if outcome.is_ok() {
            extended += 1;
            world.clock.advance(Duration::from_secs(50));
            tokio::task::yield_now().await;
            let report = node.sandbox(&request.id).await?;
            ensure!(report.state == SandboxState::Running, "{report:?}");
            node.delete_sandbox(&request.id).await?;
        } else {
            expired += 1;
            until("it is gone", async || {
                node.sandbox(&request.id).await.err().map(drop)
            })
            .await?;
        }
    }
    ensure!(extended + expired == 200 && world.slots_left().await? == 0);
    Ok(())
}

#[tokio::test]
async fn many_calls_at_once_wake_a_sandbox_once() -> Result<()> {
    let world = World::with_room_for(3)?;
    let node = world.start_node().await?;
    let id = wanted(1, "p", None)?.id;
    node.ensure_sandbox(wanted(1, "p", None)?).await?;
    let asleep = node.hibernate(&id).await?;
    ensure!(asleep.state == SandboxState::Hibernated && world.slots.running().is_empty());
    ensure!(world.slots_left().await? == 0, "it has a slot in its sleep");
    let calls = (0..20).map(|_| async {
        let mut events = node.exec(&id, exec()?).await?;
        while let Some(event) = events.next().await {
            event?;
        }
        anyhow::Ok(())
    });
    for outcome in futures::future::join_all(calls).await {
        outcome?;
    }
    let awake = node.sandbox(&id).await?;
    ensure!(world.slots.running().len() == 1);
    // One step into the wake and one out of it.
    ensure!(awake.generation.0 == asleep.generation.0 + 2, "{awake:?}");
    Ok(())
}

#[tokio::test]
async fn a_wake_that_fails_leaves_it_asleep_and_whole() -> Result<()> {
    let world = World::with_room_for(3)?;
    let node = world.start_node().await?;
    let id = wanted(1, "p", None)?.id;
    node.ensure_sandbox(wanted(1, "p", None)?).await?;
    node.hibernate(&id).await?;
    // The first restore and the second try.
    for _ in 0..2 {
        world
            .engine
            .faults()
            .order(EngineOperation::Restore, 1, Fault::Fail);
    }
    ensure!(node.wake(&id).await.is_err());
    let report = node.sandbox(&id).await?;
    ensure!(report.state == SandboxState::Hibernated, "{report:?}");
    ensure!(world.slots.running().is_empty() && world.slots_left().await? == 0);
    let report = node.wake(&id).await?;
    ensure!(report.state == SandboxState::Running);
    Ok(())
}

#[tokio::test]
async fn a_capture_that_fails_leaves_the_sandbox_running() -> Result<()> {
    let world = World::with_room_for(3)?;
    let node = world.start_node().await?;
    let id = wanted(1, "p", None)?.id;
    node.ensure_sandbox(wanted(1, "p", None)?).await?;
    let operations = [
        EngineOperation::PrepareSeal,
        EngineOperation::Pause,
        EngineOperation::Capture,
        EngineOperation::Seal,
    ];
    for (number, operation) in operations.into_iter().enumerate() {
        world.engine.faults().order(operation, 1, Fault::Fail);
        let refused = node.snapshot(&id, snapshot(&format!("a{number}"))?).await;
        ensure!(refused.is_err(), "{operation:?} failed and nobody noticed");
        if operation != EngineOperation::PrepareSeal && operation != EngineOperation::Seal {
            world.engine.faults().order(operation, 1, Fault::Fail);
            ensure!(node.hibernate(&id).await.is_err());
        }
        let report = node.sandbox(&id).await?;
        ensure!(report.state == SandboxState::Running, "{report:?}");
        let mut events = node.exec(&id, exec()?).await?;
        while let Some(event) = events.next().await {
            event?;
        }
    }
    // The positive control, on the same machine.
    let made = node.snapshot(&id, snapshot("b")?).await?;
    let listed = node.snapshots().await?;
    ensure!(listed.len() == 1 && listed[0].id == made.id);
    Ok(())
}

fn fork_of(children: impl IntoIterator<Item = u32>, all_or_nothing: bool) -> Result<ForkRequest> {
    let children = children.into_iter().map(|number| wanted(number, "p", None));
    Ok(ForkRequest {
        snapshot: SnapshotId::parse("snap-fork")?,
        children: children.collect::<Result<_>>()?,
        all_or_nothing,
    })
}

#[tokio::test]
async fn a_fork_tells_of_each_child_and_may_be_repeated() -> Result<()> {
    // Room for the source and two children.
    let world = World::with_room_for(3)?;
    let node = world.start_node().await?;
    let id = wanted(1, "p", None)?.id;
    node.ensure_sandbox(wanted(1, "p", None)?).await?;
    let report = node.fork(&id, fork_of(10..14, false)?).await?;
    let made = |outcome: &ForkOutcome| matches!(outcome, ForkOutcome::Made(_));
    let count = report
        .children
        .iter()
        .filter(|child| made(&child.outcome))
        .count();
    ensure!(count == 2, "{report:?}");
    for child in &report.children {
        if let ForkOutcome::Refused(error) = &child.outcome {
            ensure!(error.code == ErrorCode::NoCapacity, "{error:?}");
        }
    }
    ensure!(
        report
            .renewed
            .iter()
            .any(|word| word == "kernel_randomness")
    );
    ensure!(
        report
            .not_renewed
            .iter()
            .any(|word| word == "user_space_randomness")
    );
    // A repeat finds the same capture and the same children.
    let again = node.fork(&id, fork_of(10..14, false)?).await?;
    ensure!(again.capture.pause_us == report.capture.pause_us);
    ensure!(world.slots.running().len() == 3);
    Ok(())
}

/// What a fork sealed is part of the source's disk, also when no child is left that needs it.
#[tokio::test]
async fn a_source_keeps_what_its_forks_sealed() -> Result<()> {
    let world = World::with_room_for(4)?;
    let node = world.start_node().await?;
    let id = wanted(1, "p", None)?.id;
    node.ensure_sandbox(wanted(1, "p", None)?).await?;
    for number in 0..4 {
        let mut request = fork_of([20 + number], false)?;
        request.snapshot = SnapshotId::parse(&format!("snap-fork-{number}"))?;
        node.fork(&id, request).await?;
        node.delete_sandbox(&wanted(20 + number, "p", None)?.id)
            .await?;
        // Several passes of the collector, which must find nothing to take.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let kept = world.captures()?.len();
        ensure!(kept == 1 + usize::try_from(number)?, "{kept} captures kept");
    }
    node.hibernate(&id).await?;
    node.wake(&id).await?;
    node.delete_sandbox(&id).await?;
    until("everything is collected", async || {
        world.captures().ok()?.is_empty().then_some(())
    })
    .await
}

#[tokio::test]
async fn a_fork_that_is_all_or_nothing_leaves_nothing_when_one_fails() -> Result<()> {
    let world = World::with_room_for(3)?;
    let node = world.start_node().await?;
    let id = wanted(1, "p", None)?.id;
    node.ensure_sandbox(wanted(1, "p", None)?).await?;
    let report = node.fork(&id, fork_of(10..14, true)?).await?;
    for child in &report.children {
        let refused = matches!(&child.outcome, ForkOutcome::Refused(_));
        ensure!(refused, "{child:?}");
    }
    ensure!(node.sandboxes().await?.len() == 1 && world.slots.running().len() == 1);
    node.delete_sandbox(&id).await?;
    until("its capture is collected", async || {
        world.captures().ok()?.is_empty().then_some(())
    })
    .await
}

#[tokio::test]
async fn an_idle_sandbox_sleeps_on_time_and_a_busy_one_does_not() -> Result<()> {
    let world = World::with_room_for(3)?;
    let node = world.start_node().await?;
    let mut request = wanted(1, "p", None)?;
    request.lifecycle.idle_seconds = Some(60);
    request.lifecycle.on_timeout = IdleAction::Hibernate;
    let id = request.id.clone();
    node.ensure_sandbox(request).await?;
    for _ in 0..59 {
        world.clock.advance(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let early = node.sandbox(&id).await?;
    ensure!(early.state == SandboxState::Running, "it slept early");
    // A call starts the count anew.
    let mut events = node.exec(&id, exec()?).await?;
    while let Some(event) = events.next().await {
        event?;
    }
    drop(events);
    world.clock.advance(Duration::from_secs(30));
    tokio::time::sleep(Duration::from_millis(20)).await;
    let awake = node.lifecycle(&id).await?;
    ensure!(awake.lifecycle.idle_seconds == Some(60));
    for _ in 0..40 {
        world.clock.advance(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    until("it sleeps", async || {
        let report = node.sandbox(&id).await.ok()?;
        (report.state == SandboxState::Hibernated).then_some(())
    })
    .await?;
    // One that is persistent never does.
    let change = LifecycleChange {
        persistent: Some(true),
        ..LifecycleChange::default()
    };
    node.wake(&id).await?;
    node.set_lifecycle(&id, change).await?;
    world.clock.advance(Duration::from_secs(600));
    tokio::time::sleep(Duration::from_millis(50)).await;
    ensure!(node.sandbox(&id).await?.state == SandboxState::Running);
    Ok(())
}

#[tokio::test]
async fn a_sleeping_sandbox_expires_too() -> Result<()> {
    let world = World::with_room_for(3)?;
    let node = world.start_node().await?;
    let request = wanted(1, "p", Some(30))?;
    node.ensure_sandbox(request.clone()).await?;
    node.hibernate(&request.id).await?;
    world.clock.advance(Duration::from_secs(29));
    tokio::time::sleep(Duration::from_millis(20)).await;
    ensure!(node.sandbox(&request.id).await.is_ok(), "it went early");
    world.clock.advance(Duration::from_secs(1));
    until("it is gone", async || {
        node.sandbox(&request.id).await.err().map(drop)
    })
    .await?;
    until("its capture is collected", async || {
        world.captures().ok()?.is_empty().then_some(())
    })
    .await
}

/// The last that a node says of a sandbox.
async fn last_word(watch: &mut Watch, id: &SandboxId) -> Result<SandboxReport> {
    let told = async {
        while let Some(report) = watch.next().await {
            let report = report?;
            if report.id == *id && report.state == SandboxState::Deleted {
                return Ok(report);
            }
        }
        bail!("the watch ended")
    };
    tokio::time::timeout(Duration::from_secs(10), told).await?
}

#[tokio::test]
async fn a_node_says_why_a_sandbox_went_by_itself() -> Result<()> {
    let world = World::with_room_for(3)?;
    let node = world.start_node().await?;
    let mut watch = node.watch().await?;
    let expires = wanted(1, "p", Some(30))?;
    let mut idles = wanted(2, "p", None)?;
    idles.lifecycle.idle_seconds = Some(60);
    let deleted = wanted(3, "p", Some(3600))?;
    for request in [&expires, &idles, &deleted] {
        node.ensure_sandbox(request.clone()).await?;
    }
    node.delete_sandbox(&deleted.id).await?;
    ensure!(last_word(&mut watch, &deleted.id).await?.ended.is_none());
    world.clock.advance(Duration::from_secs(30));
    let ended = last_word(&mut watch, &expires.id).await?.ended;
    ensure!(ended == Some(EndReason::Ttl), "{ended:?}");
    // Time is looked at again and again, and an idle guest is asked.
    let walking = async {
        loop {
            world.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let ended = tokio::select! {
        report = last_word(&mut watch, &idles.id) => report?.ended,
        () = walking => None,
    };
    ensure!(ended == Some(EndReason::Idle), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn retention_ends_a_snapshot() -> Result<()> {
    let world = World::with_room_for(3)?;
    let node = world.start_node().await?;
    let id = wanted(1, "p", None)?.id;
    node.ensure_sandbox(wanted(1, "p", None)?).await?;
    let mut request = snapshot("a")?;
    request.retain_seconds = Some(60);
    node.snapshot(&id, request).await?;
    let kept = node.snapshot(&id, snapshot("b")?).await?;
    world.clock.advance(Duration::from_secs(59));
    tokio::time::sleep(Duration::from_millis(120)).await;
    ensure!(node.snapshots().await?.len() == 2, "it went early");
    world.clock.advance(Duration::from_secs(1));
    until("the first is gone", async || {
        let left = node.snapshots().await.ok()?;
        (left.len() == 1 && left[0].id == kept.id).then_some(())
    })
    .await
}

#[tokio::test]
async fn a_snapshot_of_another_project_is_not_found() -> Result<()> {
    let world = World::with_room_for(4)?;
    let node = world.start_node().await?;
    let id = wanted(1, "p", None)?.id;
    node.ensure_sandbox(wanted(1, "p", None)?).await?;
    node.snapshot(&id, snapshot("a")?).await?;
    node.delete_sandbox(&id).await?;
    let mut foreign = wanted(2, "q", None)?;
    foreign.from_snapshot = Some(SnapshotId::parse("snap-a")?);
    let refusal = node.ensure_sandbox(foreign).await;
    let refusal = refusal.err().context("restored for another project")?;
    ensure!(refusal.code == ErrorCode::NotFound, "{refusal:?}");
    let mut own = wanted(3, "p", None)?;
    own.from_snapshot = Some(SnapshotId::parse("snap-a")?);
    node.ensure_sandbox(own).await?;
    Ok(())
}

/// A create that cannot have all of its volumes has none of them when it is refused.
#[tokio::test]
async fn a_refused_create_keeps_no_volume_from_others() -> Result<()> {
    let world = World::with_room_for(5)?;
    let node = world.start_node().await?;
    let mount = |name: &str| -> Result<MountedVolume> {
        Ok(MountedVolume {
            name: VolumeName::parse(name)?,
            path: format!("/volumes/{name}"),
            read_only: false,
        })
    };
    for name in ["one", "two"] {
        let volume = EnsureVolume {
            project: ProjectId::parse("p")?,
            name: VolumeName::parse(name)?,
            size: DiskMib::new(16)?,
        };
        node.ensure_volume(volume).await?;
    }
    let mut holder = wanted(1, "p", None)?;
    holder.volumes = vec![mount("two")?];
    node.ensure_sandbox(holder).await?;
    for number in 2..12 {
        let mut refused = wanted(number, "p", None)?;
        refused.volumes = vec![mount("one")?, mount("two")?];
        let refusal = node.ensure_sandbox(refused).await.err();
        let refusal = refusal.context("both had the volume")?;
        ensure!(refusal.code == ErrorCode::VolumeBusy, "{refusal:?}");
        let volumes = node.volumes().await?;
        let has_writer: Vec<_> = volumes.iter().map(|one| one.writer.is_some()).collect();
        ensure!(has_writer == [false, true], "{volumes:?}");
    }
    let gone = async || (node.sandboxes().await.ok()?.len() == 1).then_some(());
    until("the refused are gone", gone).await?;
    ensure!(world.journal_entries()? == 1);
    Ok(())
}
