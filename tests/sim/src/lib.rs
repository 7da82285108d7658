//! Whole nodes without a machine: the real node library over a fake engine, fake slots and a clock
//! that the test moves. What needs hundreds of sandboxes or exact time is tested here; the same
//! claims stand on some ten real machines in `tests/e2e`.
#![forbid(unsafe_code)]

pub mod crash;
mod wait;

pub use wait::{until, until_true};

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use dayfly_core::admission::Sharing;
use dayfly_core::pressure::MemoryStall;
use dayfly_node::capacity::{EngineLoad, HostResources};
use dayfly_node::egress::{EgressSpool, NetworkLogs, NoEgress};
use dayfly_node::{BootableTemplate, TemplateSource, TemplateUnavailable};
use dayfly_node::{
    Effects, Node, NodeConfig, NodePorts, PauseGuard, PoolTargets, ReadyTemplate, Reserve,
};
use dayfly_node_api::{EnsureSandbox, SnapshotRequest, TemplateReport};
use dayfly_testkit::{FakeEngine, FakeSlots, TestClock};
use dayfly_types::egress::EgressPolicy;
use dayfly_types::exec::ExecCommand;
use dayfly_types::{
    CellName, DiskMib, LifetimeRules, MemoryMib, NodeId, ProjectId, SandboxClass, SandboxId,
    SnapshotId, TemplateName, Vcpus,
};
use dayfly_vmm::{DiskFiles, MachineSpec, MemoryImage, RestoreSpec, SlotProvider};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Simulated nodes keep house all the time, so that tests need not wait for it.
const HOUSEKEEPING_PERIOD: Duration = Duration::from_millis(50);

/// A host of any size.
#[derive(Debug, Clone)]
pub struct SimulatedHost {
    pub memory_mib: u64,
    pub processors: usize,
    /// What is free now; a test may change it at any time.
    pub disk_mib: Arc<AtomicU64>,
    /// What a node that shares finds left of its memory; a test may change it at any time.
    pub memory_available_mib: Arc<AtomicU64>,
    /// Percent of the time in which something waits for memory.
    pub stall_percent: Arc<AtomicU64>,
    pub engines: Arc<EngineLoads>,
    /// How often a node that shares has looked at all of this.
    pub looks: Arc<AtomicU64>,
}

/// What engines use, as far as a test says it: the others rest and have little.
#[derive(Debug, Default)]
pub struct EngineLoads {
    memory_mib: Mutex<HashMap<i32, u64>>,
    busy_since: Mutex<HashMap<i32, Instant>>,
}

impl EngineLoads {
    /// What an engine has of its own when nobody says more.
    pub const IDLE_MIB: u64 = 20;

    /// Has an engine hold so much memory.
    pub fn hold(&self, pid: i32, mib: u64) {
        let mut memory = self
            .memory_mib
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        memory.insert(pid, mib);
    }

    /// Has an engine use a whole CPU from now on.
    pub fn work(&self, pid: i32) {
        let mut busy = self
            .busy_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        busy.insert(pid, Instant::now());
    }

    fn of(&self, pid: i32) -> EngineLoad {
        let memory = self
            .memory_mib
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let busy = self
            .busy_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        EngineLoad {
            cpu: busy.get(&pid).map_or(Duration::ZERO, Instant::elapsed),
            memory_mib: memory.get(&pid).copied().unwrap_or(Self::IDLE_MIB),
        }
    }
}

impl HostResources for SimulatedHost {
    fn memory_total_mib(&self) -> u64 {
        self.memory_mib
    }

    fn memory_available_mib(&self) -> u64 {
        self.memory_available_mib.load(Ordering::SeqCst)
    }

    fn memory_stall(&self) -> Option<MemoryStall> {
        // The last that a look asks for.
        self.looks.fetch_add(1, Ordering::SeqCst);
        Some(MemoryStall {
            some_percent: self.stall_percent.load(Ordering::SeqCst),
            full_percent: 0,
        })
    }

    fn engine_load(&self, pid: i32) -> Option<EngineLoad> {
        Some(self.engines.of(pid))
    }

    fn processors(&self) -> usize {
        self.processors
    }

    fn disk_available_mib(&self) -> u64 {
        self.disk_mib.load(Ordering::SeqCst)
    }
}

/// One template, always ready, whose files are empty.
#[derive(Debug)]
pub struct FixedTemplate {
    ready: Arc<ReadyTemplate>,
    changes: watch::Sender<u64>,
}

impl FixedTemplate {
    /// Makes the files that a restore looks for.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn new(directory: &Path) -> Result<Self> {
        let file = |name: &str| -> Result<PathBuf> {
            let path = directory.join(name);
            std::fs::write(&path, b"{}")?;
            Ok(path)
        };
        let machine = MachineSpec {
            memory: MemoryMib::new(512)?,
            vcpus: Vcpus::new(1)?,
            disk: DiskMib::new(64)?,
            spare_disks: 3,
        };
        let device_state = directory.join("device.state");
        // The fake engine loads a state only into a machine of the same shape.
        std::fs::write(&device_state, serde_json::to_vec(&machine)?)?;
        let restore = RestoreSpec {
            machine,
            kernel: file("kernel")?,
            initial_ram_disk: file("initrd")?,
            disks: DiskFiles {
                base: file("base.img")?,
                base_parts: Vec::new(),
                sealed: vec![file("disk-0.raw")?],
                empty_layer: file("empty.img")?,
            },
            memory_image: MemoryImage::File(file("memory.img")?),
            memory_layers: Vec::new(),
            device_state,
            disk: None,
            build: None,
            volumes: Vec::new(),
        };
        let name = TemplateName::parse("base")?;
        let ready = ReadyTemplate {
            name,
            version: "1".to_owned(),
            restore,
            made_by: None,
        };
        Ok(Self {
            ready: Arc::new(ready),
            changes: watch::Sender::new(0),
        })
    }
}

impl TemplateSource for FixedTemplate {
    fn reports(&self) -> Vec<TemplateReport> {
        Vec::new()
    }

    fn all_ready(&self) -> Vec<Arc<ReadyTemplate>> {
        vec![Arc::clone(&self.ready)]
    }

    fn ready(&self, name: &TemplateName) -> Result<Arc<ReadyTemplate>, TemplateUnavailable> {
        if *name == self.ready.name {
            return Ok(Arc::clone(&self.ready));
        }
        Err(TemplateUnavailable::Unknown {
            name: name.to_string(),
            known: "base".to_owned(),
        })
    }

    fn version(
        &self,
        name: &TemplateName,
        _version: &str,
    ) -> Result<Arc<ReadyTemplate>, TemplateUnavailable> {
        self.ready(name)
    }

    fn disk_of(
        &self,
        name: &TemplateName,
        _version: &str,
    ) -> Result<BootableTemplate, TemplateUnavailable> {
        let mut template = (*self.ready(name)?).clone();
        template.restore.memory_image = MemoryImage::Zeros;
        let program = "exec the-program-of-the-template".to_owned();
        let start = vec![ExecCommand::Shell(program)];
        Ok(BootableTemplate { template, start })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// A node and what is around it. The node can be dropped and started again on the same journal.
#[derive(Debug)]
pub struct World {
    pub clock: Arc<TestClock>,
    pub slots: Arc<FakeSlots>,
    pub engine: Arc<FakeEngine>,
    pub host: SimulatedHost,
    pub pool: PoolTargets,
    /// Whether projects may be beside each other, although guests are only emulated.
    pub shares_emulation: bool,
    /// Kept for the host by the next node.
    pub memory_reserve_mib: u64,
    /// How the next node shares.
    pub sharing: Sharing,
    templates: Mutex<Arc<dyn TemplateSource>>,
    directory: tempfile::TempDir,
    stop: CancellationToken,
    boots: AtomicU64,
}

impl World {
    /// A host with room for `sandboxes` and no pools, unless the test sets them.
    ///
    /// # Errors
    /// When the temporary directories cannot be made.
    pub fn with_room_for(sandboxes: u64) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let slots = Arc::new(FakeSlots::new()?);
        Ok(Self {
            clock: Arc::new(TestClock::new()),
            engine: Arc::new(FakeEngine::new(Arc::clone(&slots))),
            slots,
            host: SimulatedHost {
                memory_mib: 768 * sandboxes + 10,
                processors: 8,
                disk_mib: Arc::new(AtomicU64::new(1 << 30)),
                memory_available_mib: Arc::new(AtomicU64::new(1 << 30)),
                stall_percent: Arc::default(),
                engines: Arc::default(),
                looks: Arc::default(),
            },
            memory_reserve_mib: 0,
            sharing: Sharing::NONE,
            pool: PoolTargets {
                slots: 0,
                engines: 0,
            },
            shares_emulation: false,
            templates: Mutex::new(Arc::new(FixedTemplate::new(directory.path())?)),
            directory,
            stop: CancellationToken::new(),
            boots: AtomicU64::new(1),
        })
    }

    fn templates(&self) -> Arc<dyn TemplateSource> {
        let templates = self.templates.lock();
        Arc::clone(&templates.unwrap_or_else(PoisonError::into_inner))
    }

    /// Has the next node make its sandboxes from these templates.
    pub fn use_templates(&self, templates: Arc<dyn TemplateSource>) {
        let mut current = self
            .templates
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *current = templates;
    }

    /// Where the records of sandboxes are.
    #[must_use]
    pub fn journal_directory(&self) -> PathBuf {
        self.directory.path().join("sandboxes")
    }

    /// Starts a node on this world's journal.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start_node(&self) -> Result<Arc<Node>> {
        self.start_observed(Effects::default()).await
    }

    /// Starts a node whose effects are watched.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start_observed(&self, effects: Effects) -> Result<Arc<Node>> {
        let config = NodeConfig {
            node: NodeId::parse("node-sim")?,
            journal_directory: self.directory.path().join("sandboxes"),
            captures_directory: self.directory.path().join("captures"),
            volumes_directory: self.directory.path().join("volumes"),
            identity_file: self.directory.path().join("identity.json"),
            reserve_file: None,
            housekeeping_period: HOUSEKEEPING_PERIOD,
            reserve: Reserve {
                memory_mib: self.memory_reserve_mib,
                disk_mib: 0,
            },
            sharing: self.sharing,
            pool: self.pool,
            allow_shared_emulation: self.shares_emulation,
            boot_id: format!("boot-{}", self.boots.load(Ordering::SeqCst)),
            restarts: 0,
        };
        let ports = NodePorts {
            engine: Arc::clone(&self.engine) as _,
            slots: Arc::clone(&self.slots) as _,
            templates: self.templates(),
            clock: Arc::clone(&self.clock) as _,
            resources: Box::new(self.host.clone()),
            pause_guard: PauseGuard::default(),
            egress: Arc::new(NoEgress),
            network_logs: Arc::new(NetworkLogs::new(self.directory.path().join("sandboxes"))),
            egress_spool: Arc::new(EgressSpool::new(self.directory.path().join("decisions"))),
            effects,
        };
        Ok(Node::start(config, ports, self.stop.child_token()).await?)
    }

    /// The next node finds itself on a host that was started anew.
    pub fn reboot(&self) {
        self.boots.fetch_add(1, Ordering::SeqCst);
    }

    /// Slots of which anything is left.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn slots_left(&self) -> Result<usize> {
        Ok(self.slots.list().await?.len())
    }

    /// Names of what is in the directory of captures.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn captures(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.directory.path().join("captures"))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    /// The record of a sandbox.
    #[must_use]
    pub fn record_of(&self, id: &SandboxId) -> PathBuf {
        let journal = self.directory.path().join("sandboxes");
        journal.join(id.as_str()).join("record.json")
    }

    #[must_use]
    pub fn captures_directory(&self) -> PathBuf {
        self.directory.path().join("captures")
    }

    /// How many sandboxes the journal knows.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn journal_entries(&self) -> Result<usize> {
        Ok(std::fs::read_dir(self.directory.path().join("sandboxes"))?.count())
    }
}

/// A snapshot to ask for, `snap-NAME`.
///
/// # Errors
/// For what is no part of an id.
pub fn snapshot(name: &str) -> Result<SnapshotRequest> {
    Ok(SnapshotRequest {
        id: SnapshotId::parse(&format!("snap-{name}"))?,
        name: None,
        retain_seconds: None,
    })
}

/// A sandbox to ask for.
///
/// # Errors
/// Never, for the names that tests use.
pub fn wanted(number: u32, project: &str, ttl_seconds: Option<u64>) -> Result<EnsureSandbox> {
    let mut random = [0_u8; 17];
    random[..4].copy_from_slice(&number.to_be_bytes());
    Ok(EnsureSandbox {
        id: SandboxId::from_random(&CellName::local(), random),
        project: ProjectId::parse(project)?,
        template: TemplateName::parse("base")?,
        size: None,
        from_snapshot: None,
        lifecycle: LifetimeRules {
            ttl_seconds,
            ..LifetimeRules::default()
        },
        cpu: None,
        disk: None,
        volumes: Vec::new(),
        reseed_user_space: false,
        egress: EgressPolicy::deny(),
        egress_epoch: 1,
        metadata: std::collections::BTreeMap::new(),
        created_at_ms: None,
        class: SandboxClass::Reserved,
    })
}
