//! A host without machines: slots and engines that outlive a node, and a node that can be killed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context, Result};
use dayfly_core::admission::Sharing;
use dayfly_host::HostClock;
use dayfly_node::egress::{EgressSpool, NetworkLogs, NoEgress};
use dayfly_node::{BootableTemplate, ReadyTemplate, TemplateSource, TemplateUnavailable};
use dayfly_node::{
    Effects, HOUSEKEEPING_PERIOD, Node, NodeConfig, NodePorts, PauseGuard, PoolTargets, Reserve,
};
use dayfly_node_api::{BakeState, TemplateReport};
use dayfly_sim::{FixedTemplate, SimulatedHost};
use dayfly_testkit::{FakeEngine, FakeSlots};
use dayfly_types::{NodeId, RunMeaning, TemplateName};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// More than any blocking task of a node takes.
const BLOCKING_LIMIT: Duration = Duration::from_secs(30);
/// More than any number of sandboxes is promised, in MiB.
const PLENTY_MIB: u64 = 1 << 50;

/// The host.
#[derive(Debug)]
pub(crate) struct Home {
    directory: tempfile::TempDir,
    slots: Arc<FakeSlots>,
    engine: Arc<FakeEngine>,
}

/// A node in a runtime of its own, as it is a process of its own on a host.
#[derive(Debug)]
pub(crate) struct OwnNode {
    pub(crate) node: Arc<Node>,
    handle: Handle,
    runtime: Option<Runtime>,
}

impl Home {
    /// Where its engines and guests run is where this is called.
    pub(crate) fn new() -> Result<Self> {
        let slots = Arc::new(FakeSlots::new()?);
        Ok(Self {
            directory: tempfile::tempdir()?,
            engine: Arc::new(FakeEngine::new(Arc::clone(&slots))),
            slots,
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path("sandboxes")
    }

    pub(crate) fn captures(&self) -> PathBuf {
        self.path("captures")
    }

    /// Starts a node on what an earlier one left, with the periods of the product.
    pub(crate) async fn start_node(&self) -> Result<OwnNode> {
        let config = NodeConfig {
            node: NodeId::parse("node-growth")?,
            journal_directory: self.journal(),
            captures_directory: self.captures(),
            volumes_directory: self.path("volumes"),
            identity_file: self.path("identity.json"),
            reserve_file: None,
            housekeeping_period: HOUSEKEEPING_PERIOD,
            reserve: Reserve {
                memory_mib: 0,
                disk_mib: 0,
            },
            sharing: Sharing::NONE,
            pool: PoolTargets {
                slots: 0,
                engines: 0,
            },
            allow_shared_emulation: false,
            boot_id: "boot".to_owned(),
            restarts: 0,
        };
        let host = SimulatedHost {
            memory_mib: PLENTY_MIB,
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            disk_mib: Arc::new(AtomicU64::new(PLENTY_MIB)),
            memory_available_mib: Arc::new(AtomicU64::new(PLENTY_MIB)),
            stall_percent: Arc::default(),
            engines: Arc::default(),
            looks: Arc::default(),
        };
        let ports = NodePorts {
            engine: Arc::clone(&self.engine) as _,
            slots: Arc::clone(&self.slots) as _,
            templates: Arc::new(ToldTemplate(FixedTemplate::new(self.directory.path())?)),
            clock: Arc::new(HostClock),
            resources: Box::new(host),
            pause_guard: PauseGuard::default(),
            egress: Arc::new(NoEgress),
            network_logs: Arc::new(NetworkLogs::new(self.journal())),
            egress_spool: Arc::new(EgressSpool::new(self.path("decisions"))),
            effects: Effects::default(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let start = Node::start(config, ports, CancellationToken::new());
        let node = runtime.spawn(start).await.context("the start panicked")??;
        Ok(OwnNode {
            node,
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }
}

impl OwnNode {
    /// Does something as the node's own task.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        self.handle.spawn(work).await.context("the work panicked")
    }

    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// Ends it as a crash does: nothing of it goes on, and its machines do.
    pub(crate) async fn kill(mut self) -> Result<()> {
        let runtime = self.runtime.take().context("it was ended before")?;
        drop(self);
        let end = move || runtime.shutdown_timeout(BLOCKING_LIMIT);
        tokio::task::spawn_blocking(end)
            .await
            .context("the node does not end")
    }
}

impl Drop for OwnNode {
    fn drop(&mut self) {
        // A runtime may not be dropped where others run, as it would be when a measurement fails.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The simulated template, of which control is told as well.
#[derive(Debug)]
struct ToldTemplate(FixedTemplate);

impl TemplateSource for ToldTemplate {
    fn reports(&self) -> Vec<TemplateReport> {
        let ready = self.0.all_ready().into_iter();
        ready
            .map(|template| TemplateReport {
                name: template.name.clone(),
                description: String::new(),
                alias_of: None,
                memory: template.restore.machine.memory,
                vcpus: template.restore.machine.vcpus,
                disk_mib: template.restore.machine.disk.into(),
                run: RunMeaning::default(),
                contexts: Vec::new(),
                state: BakeState::Ready,
                is_usable: true,
                size_bytes: 0,
                baked_at: None,
                image: None,
                variants: Vec::new(),
            })
            .collect()
    }

    fn all_ready(&self) -> Vec<Arc<ReadyTemplate>> {
        self.0.all_ready()
    }

    fn ready(&self, name: &TemplateName) -> Result<Arc<ReadyTemplate>, TemplateUnavailable> {
        self.0.ready(name)
    }

    fn version(
        &self,
        name: &TemplateName,
        version: &str,
    ) -> Result<Arc<ReadyTemplate>, TemplateUnavailable> {
        self.0.version(name, version)
    }

    fn disk_of(
        &self,
        name: &TemplateName,
        version: &str,
    ) -> Result<BootableTemplate, TemplateUnavailable> {
        self.0.disk_of(name, version)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes()
    }
}
