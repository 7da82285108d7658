//! Many sandboxes, in less time than it takes to make each: those that run are made, one is put to
//! sleep, and what that left on the disk is copied for all others that sleep, under other ids.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use dayfly_host::files::{checked_object, with_checksum};
use dayfly_node_api::NodeCalls as _;
use dayfly_sim::wanted;
use dayfly_types::{CellName, SandboxId, SandboxState, SnapshotId};
use futures::{StreamExt as _, TryStreamExt as _};

use crate::control::PROJECT;
use crate::home::{Home, OwnNode};
use crate::round::Plan;

/// Creates that are under way at once.
const AT_ONCE: usize = 8;
const MANIFEST: &str = "manifest.json";

/// What the node has to have, before it is killed and started again.
pub(crate) async fn fill(home: &Home, plan: Plan) -> Result<()> {
    let node = home.start_node().await?;
    let sleeping = plan.count - plan.running;
    make_running(&node, plan.running).await?;
    let model = if sleeping > 0 {
        Some(make_sleeping(home, &node, plan.running).await?)
    } else {
        None
    };
    node.kill().await?;
    // One sleeps already.
    for _ in 1..sleeping {
        let model = model.as_ref().context("nothing sleeps")?;
        model.copy(home)?;
    }
    Ok(())
}

async fn make_running(node: &OwnNode, count: u32) -> Result<()> {
    let made = futures::stream::iter(0..count).map(async |number| {
        let (node_api, wish) = (Arc::clone(&node.node), wanted(number, PROJECT, None)?);
        let report = node
            .run(async move { node_api.ensure_sandbox(wish).await })
            .await??;
        ensure!(report.state == SandboxState::Running, "{report:?}");
        Ok(())
    });
    made.buffer_unordered(AT_ONCE).try_collect().await
}

/// What one sleeping sandbox has on the disk.
struct Model {
    sandbox: String,
    capture: String,
    record: String,
    manifest: String,
    /// The other files of its capture.
    files: Vec<PathBuf>,
}

async fn make_sleeping(home: &Home, node: &OwnNode, number: u32) -> Result<Model> {
    let (node_api, wish) = (Arc::clone(&node.node), wanted(number, PROJECT, None)?);
    let id = wish.id.clone();
    let slept = async move {
        node_api.ensure_sandbox(wish).await?;
        node_api.hibernate(&id).await
    };
    let report = node.run(slept).await??;
    ensure!(report.state == SandboxState::Hibernated, "{report:?}");
    Model::read(home, &report.id)
}

impl Model {
    fn read(home: &Home, sandbox: &SandboxId) -> Result<Self> {
        let record = home.journal().join(sandbox.as_str()).join("record.json");
        let mut captures = std::fs::read_dir(home.captures())?;
        let capture = captures.next().context("no capture")??.path();
        ensure!(captures.next().is_none(), "more than one capture");
        let text = std::fs::read(capture.join(MANIFEST))?;
        let body = checked_object(&text).context("the manifest does not fit its checksum")?;
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&capture)? {
            let path = entry?.path();
            if !path.ends_with(MANIFEST) {
                files.push(path);
            }
        }
        Ok(Self {
            sandbox: sandbox.to_string(),
            capture: name_of(&capture)?,
            record: std::fs::read_to_string(record)?,
            manifest: String::from_utf8(body)?,
            files,
        })
    }

    fn copy(&self, home: &Home) -> Result<()> {
        let cell = CellName::local();
        let sandbox = SandboxId::from_random(&cell, random()?);
        let capture = SnapshotId::from_random(&cell, random()?);
        let renamed = |text: &str| {
            text.replace(&self.sandbox, sandbox.as_str())
                .replace(&self.capture, capture.as_str())
        };
        let directory = home.captures().join(capture.as_str());
        std::fs::create_dir(&directory)?;
        for file in &self.files {
            // Sealed, so a second name is as good as a copy.
            std::fs::hard_link(file, directory.join(name_of(file)?))?;
        }
        let manifest = with_checksum(renamed(&self.manifest).into_bytes());
        std::fs::write(directory.join(MANIFEST), manifest)?;
        let directory = home.journal().join(sandbox.as_str());
        std::fs::create_dir(&directory)?;
        std::fs::write(directory.join("record.json"), renamed(&self.record))?;
        Ok(())
    }
}

fn name_of(path: &Path) -> Result<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    Ok(name.context("a path without a name")?.to_owned())
}

fn random() -> Result<[u8; 17]> {
    let mut bytes = [0; 17];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}
