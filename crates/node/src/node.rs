//! The node as the control plane sees it: [`NodeApi`] over the owners of this host's sandboxes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dayfly_core::admission::Demand;
use dayfly_core::expiry;
use dayfly_node_api::{
    Directory, DirectoryEntry, EnsureSandbox, ExecEvents, ExecRequest, FileBytes, FileInfo,
    FileRead, FileWrite, NodeApi, NodeError, NodeStatus, PoolStatus, SandboxReport, TemplateReport,
    Watch,
};
use dayfly_types::{Clock, ErrorCode, Isolation, NodeId, SandboxId, SandboxState};
use dayfly_vmm::{Engine, SlotProvider};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::calls;
use crate::capacity::{HostResources, Ledger, Reserve};
use crate::journal::{JOURNAL_FORMAT, Journal, JournalError, SandboxRecord};
use crate::parts::{Parts, Registry};
use crate::pool::{Pool, PoolTargets};
use crate::reconcile::{ReconcileError, Reconciled, reconcile};
use crate::sandbox::owner::{FIRST_GENERATION, Owner};
use crate::sandbox::{Request, SandboxHandle};
use crate::templates::{ReadyTemplate, TemplateSource};

/// How soon a caller may ask again when the node is full.
const FULL_RETRY: Duration = Duration::from_secs(5);

/// Settings of one node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    pub node: NodeId,
    /// Where the journal is.
    pub journal_directory: PathBuf,
    pub reserve: Reserve,
    pub pool: PoolTargets,
    /// Let several projects share a node whose guests are only emulated.
    pub allow_shared_emulation: bool,
    pub boot_id: String,
}

/// The outside of a node, real or simulated.
#[derive(Debug)]
pub struct NodePorts {
    pub engine: Arc<dyn Engine>,
    pub slots: Arc<dyn SlotProvider>,
    pub templates: Arc<dyn TemplateSource>,
    pub clock: Arc<dyn Clock>,
    pub resources: Box<dyn HostResources>,
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot open the journal")]
    Journal(#[source] JournalError),
    #[error("cannot find out what an earlier run left")]
    Reconcile(#[source] ReconcileError),
}

/// One host's node.
#[derive(Debug)]
pub struct Node {
    config: NodeConfig,
    parts: Arc<Parts>,
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
        let journal = Journal::open(&config.journal_directory).map_err(StartError::Journal)?;
        let pool = Pool::new(
            Arc::clone(&ports.engine),
            Arc::clone(&ports.slots),
            Arc::clone(&ports.templates),
            config.pool,
        );
        let parts = Arc::new(Parts {
            engine: ports.engine,
            slots: ports.slots,
            templates: ports.templates,
            clock: ports.clock,
            journal,
            pool: Arc::clone(&pool),
            ledger: Arc::new(Ledger::new(ports.resources, config.reserve)),
            boot_id: config.boot_id.clone(),
            registry: Registry::default(),
        });
        let reconciled = reconcile(&parts).await.map_err(StartError::Reconcile)?;
        let tasks = TaskTracker::new();
        tasks.spawn(pool.run(stop));
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

    fn isolation(&self) -> Isolation {
        self.parts.engine.capabilities().accelerator.isolation()
    }

    fn find(&self, id: &SandboxId) -> Result<SandboxHandle, NodeError> {
        self.parts
            .find(id)
            .ok_or_else(|| NodeError::not_found(format!("no sandbox {id}")))
    }

    /// The handle of the sandbox, made now if it is not there. A repeat finds the same owner.
    fn find_or_begin(&self, wanted: &EnsureSandbox) -> Result<SandboxHandle, NodeError> {
        if let Some(handle) = self.parts.find(&wanted.id) {
            return Ok(handle);
        }
        let template = self.parts.templates.ready(&wanted.template)?;
        let machine = &template.restore.machine;
        let demand = Demand::of_guest(machine.memory.into(), machine.disk.into());
        let promise = self.parts.ledger.promise(demand).map_err(|refusal| {
            NodeError::new(
                ErrorCode::NoCapacity,
                format!("this node is full: {refusal}"),
            )
            .retry_after(FULL_RETRY)
        })?;
        let record = self.new_record(wanted, &template)?;
        let mut sandboxes = self.parts.sandboxes();
        // Asked again under the lock: two repeats of one call may have come this far.
        if let Some(handle) = sandboxes.get(&wanted.id) {
            return Ok(handle.clone());
        }
        self.check_sharing(wanted, sandboxes.values())?;
        self.parts.journal.write(&record).map_err(|error| {
            tracing::error!(error = %crate::error_chain(&error), "cannot write the journal");
            NodeError::internal("the node could not write its journal")
        })?;
        let (owner, handle, incoming) = Owner::new(Arc::clone(&self.parts), record, Some(promise));
        sandboxes.insert(wanted.id.clone(), handle.clone());
        drop(sandboxes);
        tokio::spawn(owner.create_and_run(template, incoming));
        Ok(handle)
    }

    /// Emulation is not a boundary between tenants.
    fn check_sharing<'a>(
        &self,
        wanted: &EnsureSandbox,
        mut others: impl Iterator<Item = &'a SandboxHandle>,
    ) -> Result<(), NodeError> {
        if self.isolation() == Isolation::Hardware || self.config.allow_shared_emulation {
            return Ok(());
        }
        if others.any(|handle| handle.report().project != wanted.project) {
            let text = "guests of this node are only emulated, and another project is on it; \
                        emulation does not keep projects apart";
            return Err(NodeError::new(ErrorCode::EmulationNotShared, text));
        }
        Ok(())
    }

    fn new_record(
        &self,
        wanted: &EnsureSandbox,
        template: &ReadyTemplate,
    ) -> Result<SandboxRecord, NodeError> {
        let mut token = [0_u8; 32];
        getrandom::fill(&mut token)
            .map_err(|_| NodeError::internal("no randomness could be had"))?;
        let wall = self
            .parts
            .clock
            .wall()
            .duration_since(std::time::SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let expires_wall = wanted
            .ttl_seconds
            .map(|seconds| wall + Duration::from_secs(seconds));
        Ok(SandboxRecord {
            format: JOURNAL_FORMAT,
            id: wanted.id.clone(),
            project: wanted.project.clone(),
            template: wanted.template.clone(),
            template_version: template.version.clone(),
            machine: template.restore.machine.clone(),
            state: SandboxState::Creating,
            generation: FIRST_GENERATION,
            reason: None,
            boot_id: self.config.boot_id.clone(),
            expires: expiry::deadline(self.parts.clock.now(), wanted.ttl_seconds),
            expires_wall_ms: expires_wall
                .map(|at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX)),
            slot: None,
            process: None,
            agent_token: hex::encode(token),
            ready_ms: None,
        })
    }

    fn pools(&self) -> Vec<PoolStatus> {
        let target = self.parts.pool.targets().engines as u64;
        let ready = self.parts.templates.all_ready();
        ready
            .into_iter()
            .map(|template| PoolStatus {
                parked: self.parts.pool.count(&template.name) as u64,
                template: template.name.clone(),
                target,
            })
            .collect()
    }
}

#[async_trait]
impl NodeApi for Node {
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
        })
    }

    async fn templates(&self) -> Result<Vec<TemplateReport>, NodeError> {
        Ok(self.parts.templates.reports())
    }

    async fn ensure_sandbox(&self, wanted: EnsureSandbox) -> Result<SandboxReport, NodeError> {
        let handle = self.find_or_begin(&wanted)?;
        if handle.report().project != wanted.project {
            return Err(NodeError::not_found(format!("no sandbox {}", wanted.id)));
        }
        handle.created().await.map(|report| (*report).clone())
    }

    async fn delete_sandbox(&self, id: &SandboxId) -> Result<(), NodeError> {
        let Some(handle) = self.parts.find(id) else {
            return Ok(());
        };
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
        Ok(self
            .parts
            .sandboxes()
            .values()
            .map(|handle| handle.report_at(now))
            .collect())
    }

    async fn watch(&self) -> Result<Watch, NodeError> {
        Ok(calls::watch(Arc::clone(&self.parts)))
    }

    async fn exec(&self, id: &SandboxId, request: ExecRequest) -> Result<ExecEvents, NodeError> {
        let agent = calls::agent(&self.find(id)?).await?;
        calls::exec(&agent, request).await
    }

    async fn read_file(
        &self,
        id: &SandboxId,
        request: FileRead,
    ) -> Result<(FileInfo, FileBytes), NodeError> {
        let agent = calls::agent(&self.find(id)?).await?;
        calls::read_file(&agent, request).await
    }

    async fn write_file(
        &self,
        id: &SandboxId,
        request: FileWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        let agent = calls::agent(&self.find(id)?).await?;
        calls::write_file(&agent, request, content).await
    }

    async fn list_directory(&self, id: &SandboxId, path: &str) -> Result<Directory, NodeError> {
        let agent = calls::agent(&self.find(id)?).await?;
        calls::list_directory(&agent, path).await
    }

    async fn stat(&self, id: &SandboxId, path: &str) -> Result<DirectoryEntry, NodeError> {
        let agent = calls::agent(&self.find(id)?).await?;
        calls::stat(&agent, path).await
    }
}
