//! What was saved by one build of the engine, after another was installed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_node::Node;
use dayfly_node_api::{ForkOutcome, ForkRequest, NodeCalls, SnapshotReport};
use dayfly_sim::crash::MortalNode;
use dayfly_sim::{World, snapshot, wanted};
use dayfly_types::{ErrorCode, SandboxId, SandboxState, SnapshotId};
use dayfly_vmm::{Capabilities, Engine, EngineBuild};

/// A host whose engine can be replaced.
struct Upgradable {
    world: Arc<World>,
}

fn build(of: &World, version: &str, name: &str) -> Capabilities {
    Capabilities {
        engine_version: version.to_owned(),
        build: Some(EngineBuild::new(name)),
        ..of.engine.capabilities().clone()
    }
}

impl Upgradable {
    /// With version 1 of the engine, in build `first`.
    fn new() -> Result<Self> {
        let mut host = Self {
            world: Arc::new(World::with_room_for(6)?),
        };
        host.install(("1", "first"), &[])?;
        Ok(host)
    }

    /// What the next node finds: the installed build, and those that are kept, oldest first.
    fn install(&mut self, installed: (&str, &str), kept: &[(&str, &str)]) -> Result<()> {
        let world = Arc::get_mut(&mut self.world).context("a node uses it")?;
        let kept = kept
            .iter()
            .map(|(version, name)| build(world, version, name))
            .collect();
        let installed = build(world, installed.0, installed.1);
        let engine = world.engine.replaced(installed, kept);
        world.engine = Arc::new(engine);
        Ok(())
    }

    /// The build that a sandbox's machine runs in.
    fn runs_in(&self, id: &SandboxId) -> Result<String> {
        let text = std::fs::read(self.world.record_of(id))?;
        let record: serde_json::Value = serde_json::from_slice(&text)?;
        let build = record["engine"]["build"].as_str();
        Ok(build.context("no build is noted")?.to_owned())
    }

    /// The build that a capture names.
    fn saved_by(&self, id: &SnapshotId) -> Result<String> {
        let (captures, _) = dayfly_snapshots::capture::survey(&self.world.captures_directory())?;
        let capture = captures.into_iter().find(|capture| capture.id == *id);
        let build = capture.context("no such capture")?.engine.build;
        Ok(build.context("no build is named")?.as_str().to_owned())
    }
}

#[tokio::test]
async fn a_sleeper_wakes_in_the_build_that_saved_it_and_stays_in_it() -> Result<()> {
    let mut host = Upgradable::new()?;
    let life = MortalNode::start(&host.world).await?;
    let node = Arc::clone(&life.node);
    let id = wanted(1, "p", None)?.id;
    life.ensure_sandbox(wanted(1, "p", None)?).await?;
    ensure!(host.runs_in(&id)? == "first");
    node.hibernate(&id).await?;
    drop(node);
    life.kill().await;

    host.install(("3", "third"), &[("1", "first"), ("2", "second")])?;
    let life = MortalNode::start(&host.world).await?;
    let node = Arc::clone(&life.node);
    let awake = node.wake(&id).await?;
    ensure!(awake.state == SandboxState::Running);
    ensure!(host.runs_in(&id)? == "first");
    // Whatever is saved of it again is that build's as well, and so are its children.
    let taken = node.snapshot(&id, snapshot("later")?).await?;
    ensure!(host.saved_by(&taken.id)? == "first");
    let child = wanted(2, "p", None)?.id;
    let fork = ForkRequest {
        snapshot: SnapshotId::parse("snap-fork")?,
        children: vec![wanted(2, "p", None)?],
        all_or_nothing: true,
    };
    let outcomes = node.fork(&id, fork).await?;
    let made = outcomes.children.first().context("no child")?;
    ensure!(matches!(made.outcome, ForkOutcome::Made(_)), "{made:?}");
    ensure!(host.runs_in(&child)? == "first");
    // A new sandbox is the installed engine's.
    let new = wanted(3, "p", None)?.id;
    life.ensure_sandbox(wanted(3, "p", None)?).await?;
    ensure!(host.runs_in(&new)? == "third");
    Ok(())
}

#[tokio::test]
async fn what_no_engine_can_load_is_refused_and_kept() -> Result<()> {
    let mut host = Upgradable::new()?;
    let life = MortalNode::start(&host.world).await?;
    let node = Arc::clone(&life.node);
    let id = wanted(1, "p", None)?.id;
    life.ensure_sandbox(wanted(1, "p", None)?).await?;
    node.hibernate(&id).await?;
    drop(node);
    life.kill().await;

    host.install(("2", "second"), &[])?;
    let life = MortalNode::start(&host.world).await?;
    let node = Arc::clone(&life.node);
    let refused = node
        .wake(&id)
        .await
        .err()
        .context("it woke in a wrong engine")?;
    ensure!(refused.code == ErrorCode::SnapshotUnfit, "{refused:?}");
    ensure!(node.sandbox(&id).await?.state == SandboxState::Hibernated);
    drop(node);
    life.kill().await;

    // Another build of the version that saved it.
    host.install(("2", "second"), &[("1", "rebuilt")])?;
    let life = MortalNode::start(&host.world).await?;
    let node = Arc::clone(&life.node);
    ensure!(node.wake(&id).await?.state == SandboxState::Running);
    ensure!(host.runs_in(&id)? == "rebuilt");
    Ok(())
}

/// A node that has just taken a sandbox over opens its agent's line in a moment.
async fn until_answered(node: &Node, id: &SandboxId) -> Result<SnapshotReport> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match node.snapshot(id, snapshot("later")?).await {
            Err(error) if error.code == ErrorCode::GuestUnavailable => {
                ensure!(Instant::now() < deadline, "{error:?}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            other => return Ok(other?),
        }
    }
}

#[tokio::test]
async fn a_record_without_an_engine_is_that_of_what_it_was_restored_from() -> Result<()> {
    let mut host = Upgradable::new()?;
    let life = MortalNode::start(&host.world).await?;
    let node = Arc::clone(&life.node);
    let id = wanted(1, "p", None)?.id;
    life.ensure_sandbox(wanted(1, "p", None)?).await?;
    node.hibernate(&id).await?;
    node.wake(&id).await?;
    drop(node);
    life.kill().await;
    // As an older program would have written it, before an upgrade under a running machine.
    let path = host.world.record_of(&id);
    let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    let fields = record.as_object_mut().context("no record")?;
    fields.remove("engine").context("no engine was noted")?;
    std::fs::write(&path, serde_json::to_vec(&record)?)?;

    host.install(("2", "second"), &[("1", "first")])?;
    let life = MortalNode::start(&host.world).await?;
    let node = Arc::clone(&life.node);
    let taken = until_answered(&node, &id).await?;
    ensure!(host.saved_by(&taken.id)? == "first");
    Ok(())
}
