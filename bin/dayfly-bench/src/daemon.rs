//! The daemon that a bench runs against: the one that is there, or one of its own.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use dayfly_api::TemplateState;
use dayfly_client::Client;
use dayfly_installation::{DataDirectory, admin_client, sibling_program};
use dayfly_snapshots::{BakedTemplate, TemplateStore};
use dayfly_types::TemplateName;
use dayfly_vmm::SlotProvider;
use dayfly_vmm_qemu::{BareSlots, QemuConfig, QemuEngine, installed_version};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::bare::BareDriver;

/// A first start bakes, which takes minutes.
const TEMPLATE_DEADLINE: Duration = Duration::from_secs(1800);
const START_DEADLINE: Duration = Duration::from_secs(30);
const COLLECTION_DEADLINE: Duration = Duration::from_secs(60);
const CAPTURES: &str = "captures";
const PAUSE: Duration = Duration::from_millis(100);

/// A daemon to measure.
#[derive(Debug)]
pub(crate) struct BenchDaemon {
    directory: DataDirectory,
    client: Client,
    /// There when the bench started it.
    child: Option<Child>,
    /// What was among the captures before the bench.
    captures_before: BTreeSet<OsString>,
    scratch: TempDir,
}

impl BenchDaemon {
    pub(crate) async fn find_or_start(path: &Path) -> Result<Self> {
        let existing = DataDirectory::open(path).ok();
        let is_running = match &existing {
            Some(directory) => directory.running()?.is_some(),
            None => false,
        };
        let child = if is_running { None } else { Some(start(path)?) };
        let (directory, client) = reach(path).await?;
        let scratch = tempfile::tempdir_in(directory.root()).context("no scratch directory")?;
        let captures_before = names_in(&directory.node().join(CAPTURES));
        Ok(Self {
            directory,
            client,
            child,
            captures_before,
            scratch,
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The node's part of the data directory.
    pub(crate) fn node(&self) -> PathBuf {
        self.directory.node()
    }

    /// Where the node itself is reached.
    pub(crate) fn node_socket(&self) -> PathBuf {
        self.directory.node_socket()
    }

    /// Where captures are kept.
    pub(crate) fn captures(&self) -> PathBuf {
        self.node().join(CAPTURES)
    }

    pub(crate) async fn wait_for_template(&self, name: &str) -> Result<()> {
        let deadline = Instant::now() + TEMPLATE_DEADLINE;
        self.client
            .bake_template(name)
            .await
            .context("no such template")?;
        loop {
            let template = self
                .client
                .template(name)
                .await
                .context("no such template")?;
            match template.state {
                TemplateState::Ready => return Ok(()),
                TemplateState::Failed => bail!("template {name} could not be baked"),
                TemplateState::NotBaked => {
                    let asked = self.client.bake_template(name).await;
                    asked.context("cannot ask for the bake")?;
                }
                TemplateState::Waiting | TemplateState::Baking => {}
            }
            if Instant::now() > deadline {
                bail!("template {name} was not ready within {TEMPLATE_DEADLINE:?}");
            }
            sleep(PAUSE).await;
        }
    }

    /// The bare driver over the very files that the product restores.
    pub(crate) async fn bare_driver(&self, name: &str) -> Result<BareDriver> {
        let template = self.newest(&TemplateName::parse(name)?)?;
        let slots: Arc<dyn SlotProvider> = Arc::new(BareSlots::new(self.scratch.path())?);
        let version = installed_version().await;
        let version = version.context("no engine that can be used")?;
        let config = QemuConfig::installed(version, template.manifest().engine.accelerator);
        Ok(BareDriver {
            engine: Arc::new(QemuEngine::new(config, Arc::clone(&slots))),
            slots,
            restore: template.restore_spec(),
        })
    }

    fn newest(&self, name: &TemplateName) -> Result<BakedTemplate> {
        let store = TemplateStore::new(self.directory.node().join("templates"));
        let mut versions = store
            .versions(name)
            .context("cannot list the template's bakes")?;
        let variants = store
            .variants(name)
            .context("cannot list the template's variants")?;
        versions.retain(|version| !variants.contains(version));
        let newest = versions.last().context("the template has no bake")?;
        store
            .open_version(name, newest)
            .context("cannot open the template")
    }

    /// Waits until a daemon that the bench started has collected what the bench's sandboxes left;
    /// one that goes on collects it without being waited for.
    async fn wait_for_collection(&self) {
        let deadline = Instant::now() + COLLECTION_DEADLINE;
        while !names_in(&self.captures()).is_subset(&self.captures_before) {
            if Instant::now() > deadline {
                tracing::warn!("captures are left, which the next start of a daemon collects");
                return;
            }
            sleep(PAUSE).await;
        }
    }

    /// Stops a daemon that the bench started.
    pub(crate) async fn stop(mut self) -> Result<()> {
        if self.child.is_some() {
            self.wait_for_collection().await;
        }
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        let pid = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended by itself; then there is nothing to stop.
            let _ = kill_process(pid, Signal::TERM);
        }
        child.wait().await.context("the daemon did not stop")?;
        Ok(())
    }
}

/// An absent directory is an empty one.
fn names_in(directory: &Path) -> BTreeSet<OsString> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.flatten().map(|entry| entry.file_name()).collect()
}

fn start(path: &Path) -> Result<Child> {
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())?
        .port();
    Command::new(sibling_program("dayflyd")?)
        .arg("--data-dir")
        .arg(path)
        .arg("--listen")
        .arg(format!("127.0.0.1:{port}"))
        .stdin(Stdio::null())
        // A signal from the terminal is the bench's, which needs the daemon to clean up.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .context("cannot start a daemon")
}

async fn reach(path: &Path) -> Result<(DataDirectory, Client)> {
    let deadline = Instant::now() + START_DEADLINE;
    loop {
        match try_reach(path).await {
            Ok(reached) => return Ok(reached),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn try_reach(path: &Path) -> Result<(DataDirectory, Client)> {
    let directory = DataDirectory::open(path)?;
    let client = admin_client(&directory)?;
    client.node().await.context("the daemon does not answer")?;
    Ok((directory, client))
}
