//! The node as the control plane sees it: [`NodeApi`](dayfly_node_api::NodeApi) over the owners of this host's sandboxes.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dayfly_core::admission::Sharing;
use dayfly_guest_client::AgentClient;
use dayfly_node_api::{
    EnsureSandbox, LifecycleChange, LifecycleReport, NodeError, NodeExecs, NodeSandboxes,
    NodeStatus, NodeTemplates, PoolStatus, ResourceUse, SandboxReport, TemplateReport,
    VariantReport, VariantRequest,
};
use dayfly_snapshots::CaptureStore;
use dayfly_types::exec::{ExecInfo, WindowSize};
use dayfly_types::{
    Clock, ErrorCode, ExecId, Isolation, NodeId, OrderedTemplate, ProjectId, SandboxId, SnapshotId,
    TemplateName, TemplateSize,
};
use dayfly_vmm::{Engine, SlotProvider};
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bring_up_line::BringUpLine;
use crate::calls;
use crate::capacity::{HostResources, Ledger, Reserve};
use crate::disk_lane::off_runtime;
use crate::disk_watch;
use crate::effects::{Captures, Effects, ObservedEngine, ObservedGate, ObservedSlots};
use crate::egress::{EgressGate, EgressSpool, NetworkLogs};
use crate::execs;
use crate::give_back;
use crate::housekeeping;
use crate::identity::{self, Identity, IdentityError};
use crate::journal::{Journal, JournalError};
use crate::kept::{self, Kept};
use crate::parts::{Parts, Registry};
use crate::pause_guard::PauseGuard;
use crate::pool::{Pool, PoolTargets};
use crate::reconcile::{ReconcileError, Reconciled, reconcile};
use crate::relief::{self, Relief};
use crate::reserve::ReserveFile;
use crate::sandbox::{OpenCall, Request, SandboxHandle};
use crate::sandbox_table::SandboxTable;
use crate::templates::{BakeWish, TemplateSource};
use crate::variant_bounds;
use crate::volumes::VolumeStore;

/// Settings of one node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    pub node: NodeId,
    /// Where the journal is.
    pub journal_directory: PathBuf,
    pub captures_directory: PathBuf,
    pub volumes_directory: PathBuf,
    /// Who this node is, and which database it works for.
    pub identity_file: PathBuf,
    /// Holds room for the journal and the database. `None`: none is held.
    pub reserve_file: Option<PathBuf>,
    /// How often garbage is collected and chains are shortened.
    pub housekeeping_period: Duration,
    pub reserve: Reserve,
    pub sharing: Sharing,
    pub pool: PoolTargets,
    /// Let several projects share a node whose guests are only emulated.
    pub allow_shared_emulation: bool,
    pub boot_id: String,
    /// Times that its process ended unasked and was started again.
    pub restarts: u64,
}

/// The outside of a node, real or simulated.
#[derive(Debug)]
pub struct NodePorts {
    pub engine: Arc<dyn Engine>,
    pub slots: Arc<dyn SlotProvider>,
    pub templates: Arc<dyn TemplateSource>,
    pub clock: Arc<dyn Clock>,
    pub resources: Box<dyn HostResources>,
    pub pause_guard: PauseGuard,
    pub egress: Arc<dyn EgressGate>,
    /// Shared with the gate, which fills them.
    pub network_logs: Arc<NetworkLogs>,
    /// The same.
    pub egress_spool: Arc<EgressSpool>,
    /// Told of everything that the node does to the world.
    pub effects: Effects,
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot open the journal")]
    Journal(#[source] JournalError),
    #[error("cannot open the captures")]
    Captures(#[source] io::Error),
    #[error("cannot open the volumes")]
    Volumes(#[source] io::Error),
    #[error("cannot find out who this node is")]
    Identity(#[source] IdentityError),
    #[error("cannot find out what an earlier run left")]
    Reconcile(#[source] ReconcileError),
}

/// One host's node.
#[derive(Debug)]
pub struct Node {
    pub(crate) config: NodeConfig,
    pub(crate) parts: Arc<Parts>,
    reconciled: Reconciled,
    /// The pool, which gives everything back before it ends.
    tasks: TaskTracker,
}

impl Node {
    /// Takes over what is there and begins to serve.
    ///
    /// # Errors
    /// [`StartError`] when the journal or the kernel's facts cannot be read.
    pub async fn start(
        config: NodeConfig,
        ports: NodePorts,
        stop: CancellationToken,
    ) -> Result<Arc<Self>, StartError> {
        let (effects, period) = (ports.effects, config.housekeeping_period);
        let engine =
            Arc::new(ObservedEngine::new(ports.engine, effects.clone())) as Arc<dyn Engine>;
        let slots =
            Arc::new(ObservedSlots::new(ports.slots, effects.clone())) as Arc<dyn SlotProvider>;
        let reserve = config.reserve_file.as_deref().and_then(open_reserve);
        let journal = Journal::open(&config.journal_directory)
            .map_err(StartError::Journal)?
            .with_reserve(reserve.clone())
            .observed(effects.clone());
        let captures =
            CaptureStore::open(config.captures_directory.clone()).map_err(StartError::Captures)?;
        let volumes =
            VolumeStore::open(config.volumes_directory.clone()).map_err(StartError::Volumes)?;
        let known = Identity::open(config.identity_file.clone()).map_err(StartError::Identity)?;
        let bring_up_line = BringUpLine::of_host(ports.resources.processors());
        let pool = Pool::new(
            Arc::clone(&engine),
            Arc::clone(&slots),
            Arc::clone(&ports.templates),
            config.pool,
            Arc::clone(&bring_up_line),
        );
        let parts = Arc::new(Parts {
            engine,
            slots,
            templates: ports.templates,
            clock: ports.clock,
            journal,
            pool: Arc::clone(&pool),
            ledger: Arc::new(Ledger::new(ports.resources, config.reserve).shared(config.sharing)),
            relief: Relief::default(),
            boot_id: config.boot_id.clone(),
            registry: Registry::default(),
            kept: Kept::default(),
            identity: known,
            captures: Arc::new(Captures::new(Arc::new(captures), effects.clone())),
            volumes: Arc::new(volumes.observed(effects.clone())),
            egress: Arc::new(ObservedGate::new(ports.egress, effects.clone())),
            effects,
            pins: Arc::default(),
            boots: Arc::default(),
            bring_up_line,
            pause_guard: ports.pause_guard,
            network_logs: ports.network_logs,
            egress_spool: ports.egress_spool,
            disk_available_mib: watch::Sender::new(0),
            reserve,
            housekeeping: Notify::new(),
        });
        parts.ledger.set_volumes(parts.volumes.account());
        let reconciled = reconcile(&parts).await.map_err(StartError::Reconcile)?;
        identity::note_beginning(&parts);
        let tasks = TaskTracker::new();
        tasks.spawn(pool.run(stop.clone()));
        tasks.spawn(disk_watch::run(Arc::clone(&parts), period, stop.clone()));
        if config.sharing.is_on() {
            tasks.spawn(relief::run(Arc::clone(&parts), period, stop.clone()));
        }
        tasks.spawn(give_back::run(Arc::clone(&parts), period, stop.clone()));
        tasks.spawn(housekeeping::run(Arc::clone(&parts), period, stop));
        tasks.close();
        Ok(Arc::new(Self {
            config,
            parts,
            reconciled,
            tasks,
        }))
    }

    /// Resolves once a stopped node has given back what belongs to no sandbox.
    pub async fn stopped(&self) {
        self.tasks.wait().await;
    }

    /// What was found at start.
    #[must_use]
    pub fn reconciled(&self) -> Reconciled {
        self.reconciled
    }

    /// The captures of this node, for whoever must know which templates they lie on.
    #[must_use]
    pub fn captures(&self) -> Arc<CaptureStore> {
        self.parts.captures.store()
    }

    /// What it has promised, for whoever runs machines beside it.
    #[must_use]
    pub fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.parts.ledger)
    }

    fn isolation(&self) -> Isolation {
        self.parts.engine.capabilities().accelerator.isolation()
    }

    /// What each sandbox that runs, and that is wanted, costs the host now.
    async fn measure(
        &self,
        is_wanted: impl Fn(&SandboxHandle) -> bool,
    ) -> Result<Vec<ResourceUse>, NodeError> {
        let wanted: Vec<SandboxHandle> = self.parts.all_sandboxes().filter(is_wanted).collect();
        let ledger = Arc::clone(&self.parts.ledger);
        let read = move || wanted.iter().filter_map(|one| one.load(&ledger)).collect();
        let loads = tokio::task::spawn_blocking(read).await;
        loads.map_err(|error| crate::failure::node_error("the node could not look", &error))
    }

    pub(crate) fn find(&self, id: &SandboxId) -> Result<SandboxHandle, NodeError> {
        self.parts.find(id).ok_or_else(|| self.absent_or_kept(id))
    }

    /// A conversation with the sandbox's guest, which is woken for it.
    pub(crate) async fn agent(&self, id: &SandboxId) -> Result<(AgentClient, OpenCall), NodeError> {
        calls::agent(&self.find(id)?).await
    }

    fn absent_or_kept(&self, id: &SandboxId) -> NodeError {
        let kept = self.parts.kept.refusal(id);
        kept.unwrap_or_else(|| NodeError::not_found(format!("no sandbox {id}")))
    }

    /// Emulation is not a boundary between tenants.
    pub(crate) fn check_sharing(
        &self,
        wanted: &EnsureSandbox,
        others: &SandboxTable,
    ) -> Result<(), NodeError> {
        if self.isolation() == Isolation::Hardware || self.config.allow_shared_emulation {
            return Ok(());
        }
        if others.has_other_than(&wanted.project) {
            let text = "guests of this node are only emulated, and another project is on it; \
                        emulation does not keep projects apart";
            return Err(NodeError::new(ErrorCode::EmulationNotShared, text));
        }
        Ok(())
    }

    async fn ask_for_bake(
        &self,
        name: &TemplateName,
        wish: BakeWish,
    ) -> Result<TemplateReport, NodeError> {
        let (templates, wanted) = (Arc::clone(&self.parts.templates), name.clone());
        off_runtime(move || templates.order(&wanted, wish)).await?;
        self.find_template(name).await
    }

    fn pools(&self) -> Vec<PoolStatus> {
        let pool = &self.parts.pool;
        let ready = self.parts.templates.all_ready();
        let names: BTreeSet<TemplateName> = ready.iter().map(|one| one.name.clone()).collect();
        names
            .into_iter()
            .map(|template| PoolStatus {
                parked: pool.count(&template) as u64,
                target: pool.target_of(&template) as u64,
                template,
            })
            .collect()
    }
}

impl NodeTemplates for Node {
    async fn templates(&self) -> Result<Vec<TemplateReport>, NodeError> {
        Ok(self.parts.templates.reports())
    }

    async fn find_template(&self, name: &TemplateName) -> Result<TemplateReport, NodeError> {
        let found = self.parts.templates.report(name);
        found.ok_or_else(|| NodeError::not_found(format!("no template {name}")))
    }

    async fn ensure_template(&self, name: &TemplateName) -> Result<TemplateReport, NodeError> {
        self.ask_for_bake(name, BakeWish::IfMissing).await
    }

    async fn renew_template(&self, name: &TemplateName) -> Result<TemplateReport, NodeError> {
        self.ask_for_bake(name, BakeWish::Renew).await
    }

    async fn order_template(&self, wanted: OrderedTemplate) -> Result<TemplateReport, NodeError> {
        let (templates, name) = (Arc::clone(&self.parts.templates), wanted.name.clone());
        let size = TemplateSize {
            memory: wanted.memory,
            vcpus: wanted.vcpus,
        };
        variant_bounds::check(&self.parts.ledger, templates.as_ref(), &name, size)?;
        off_runtime(move || templates.take_order(&wanted)).await?;
        self.find_template(&name).await
    }

    async fn forget_template(&self, name: &TemplateName) -> Result<(), NodeError> {
        let (templates, name) = (Arc::clone(&self.parts.templates), name.clone());
        Ok(off_runtime(move || templates.give_up_order(&name)).await?)
    }

    async fn ensure_variant(
        &self,
        name: &TemplateName,
        wanted: VariantRequest,
    ) -> Result<VariantReport, NodeError> {
        let templates = &self.parts.templates;
        variant_bounds::check(&self.parts.ledger, templates.as_ref(), name, wanted.size)?;
        let (templates, name) = (Arc::clone(&self.parts.templates), name.clone());
        let ordered = off_runtime(move || templates.order_variant(&name, &wanted)).await;
        Ok(ordered?)
    }
}

impl NodeSandboxes for Node {
    async fn status(&self) -> Result<NodeStatus, NodeError> {
        let (capacity, committed) = self.parts.ledger.view();
        let capabilities = self.parts.engine.capabilities();
        Ok(NodeStatus {
            node: self.config.node.clone(),
            isolation: self.isolation(),
            engine: capabilities.engine.as_str().to_owned(),
            engine_version: capabilities.engine_version.clone(),
            accelerator: capabilities.accelerator.as_str().to_owned(),
            sandboxes: self.parts.sandboxes().len() as u64,
            memory_total_mib: capacity.memory_total_mib,
            memory_committed_mib: committed.memory_mib,
            memory_reserve_mib: capacity.memory_reserve_mib,
            disk_available_mib: capacity.disk_available_mib,
            disk_committed_mib: committed.disk_mib,
            disk_reserve_mib: capacity.disk_reserve_mib,
            pools: self.pools(),
            parked_slots: self.parts.pool.slot_count() as u64,
            parked_slots_target: self.parts.pool.targets().slots as u64,
            held_slots: self
                .parts
                .pool
                .held_slots()
                .into_iter()
                .map(|slot| slot.0)
                .collect(),
            kept: self.parts.kept.reports(),
            restarts: self.config.restarts,
            egress: self.parts.egress.status(),
            sharing: self.parts.relief.status(&self.parts.ledger),
        })
    }

    async fn ensure_sandbox(&self, wanted: EnsureSandbox) -> Result<SandboxReport, NodeError> {
        let handle = self.find_or_begin(&wanted).await?;
        handle.created().await.map(|report| (*report).clone())
    }

    async fn boot_sandbox(
        &self,
        disk_of: &SnapshotId,
        wanted: EnsureSandbox,
    ) -> Result<SandboxReport, NodeError> {
        let handle = self.find_or_boot(disk_of, wanted).await?;
        handle.created().await.map(|report| (*report).clone())
    }

    async fn delete_sandbox(&self, id: &SandboxId) -> Result<(), NodeError> {
        if self.parts.find(id).is_none() && self.parts.kept.contains(id) {
            kept::delete(&self.parts, id).await?;
        }
        let Some(handle) = self.parts.find(id) else {
            return Ok(());
        };
        // Whatever the owner is busy with ends now; a delete waits for nothing.
        handle.doomed.cancel();
        let (done, finished) = oneshot::channel();
        // A closed queue means that the owner has ended, and it ends only when nothing is left.
        if handle
            .requests
            .send(Request::Delete { done })
            .await
            .is_err()
        {
            return Ok(());
        }
        let _ = finished.await;
        Ok(())
    }

    async fn sandbox(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        Ok(self.find(id)?.report_at(self.parts.clock.now()))
    }

    async fn sandboxes(&self) -> Result<Vec<SandboxReport>, NodeError> {
        let now = self.parts.clock.now();
        let all = self.parts.all_sandboxes();
        Ok(all.map(|handle| handle.report_at(now)).collect())
    }

    async fn loads(&self, project: &ProjectId) -> Result<Vec<ResourceUse>, NodeError> {
        self.measure(|handle| handle.report().project == *project)
            .await
    }

    async fn all_loads(&self) -> Result<Vec<ResourceUse>, NodeError> {
        self.measure(|_| true).await
    }

    async fn pause(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.find(id)?.ask(Request::Pause).await
    }

    async fn resume(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.find(id)?.ask(Request::Resume).await
    }

    async fn hibernate(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.find(id)?.ask(Request::Hibernate).await
    }

    async fn wake(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.find(id)?.ask(Request::Wake).await
    }

    async fn rollback(
        &self,
        id: &SandboxId,
        snapshot: &SnapshotId,
    ) -> Result<SandboxReport, NodeError> {
        let to = snapshot.clone();
        self.find(id)?
            .ask(|reply| Request::Rollback { to, reply })
            .await
    }

    async fn lifecycle(&self, id: &SandboxId) -> Result<LifecycleReport, NodeError> {
        Ok(self.find(id)?.lifecycle_at(self.parts.clock.now()))
    }

    async fn set_lifecycle(
        &self,
        id: &SandboxId,
        change: LifecycleChange,
    ) -> Result<LifecycleReport, NodeError> {
        self.find(id)?
            .ask(|reply| Request::SetLifecycle { change, reply })
            .await
    }
}

impl NodeExecs for Node {
    async fn describe_exec(&self, id: &SandboxId, exec: &ExecId) -> Result<ExecInfo, NodeError> {
        let (agent, _call) = self.agent(id).await?;
        execs::describe(&agent, exec).await
    }

    async fn list_execs(&self, id: &SandboxId) -> Result<Vec<ExecInfo>, NodeError> {
        let (agent, _call) = self.agent(id).await?;
        execs::list(&agent).await
    }

    async fn signal_exec(
        &self,
        id: &SandboxId,
        exec: &ExecId,
        signal: i32,
    ) -> Result<(), NodeError> {
        let (agent, _call) = self.agent(id).await?;
        execs::signal(&agent, exec, signal).await
    }

    async fn resize_exec(
        &self,
        id: &SandboxId,
        exec: &ExecId,
        size: WindowSize,
    ) -> Result<(), NodeError> {
        let (agent, _call) = self.agent(id).await?;
        execs::resize(&agent, exec, size).await
    }

    async fn forget_exec(&self, id: &SandboxId, exec: &ExecId) -> Result<(), NodeError> {
        let (agent, _call) = self.agent(id).await?;
        execs::forget(&agent, exec).await
    }
}

/// A node without a reserve is better than none.
fn open_reserve(path: &Path) -> Option<Arc<ReserveFile>> {
    match ReserveFile::open(path) {
        Ok(reserve) => Some(Arc::new(reserve)),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "no room can be held for the journal");
            None
        }
    }
}

pub(crate) fn unix_seconds(at: SystemTime) -> i64 {
    let since = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
