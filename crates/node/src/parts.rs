//! What every owner task shares.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_core::admission::Demand;
use dayfly_node_api::{EnsureVolume, SandboxReport};
use dayfly_types::{Clock, DiskMib, SandboxClass, SandboxId, SnapshotId};
use dayfly_vmm::{Engine, MachineSpec, SlotProvider};
use tokio::sync::{Notify, broadcast, watch};

use crate::boots::Boots;
use crate::bring_up_line::BringUpLine;
use crate::capacity::{Booking, Ledger, Promise};
use crate::effects::{Captures, Effects};
use crate::egress::{EgressGate, EgressSpool, NetworkLogs};
use crate::identity::Identity;
use crate::journal::Journal;
use crate::kept::Kept;
use crate::pause_guard::PauseGuard;
use crate::pool::Pool;
use crate::relief::Relief;
use crate::reserve::ReserveFile;
use crate::sandbox::SandboxHandle;
use crate::sandbox_table::{self, SandboxTable};
use crate::templates::TemplateSource;
use crate::volumes::{VolumeError, VolumeStore};

/// Reports that a slow watcher may miss before it is told everything anew.
const ANNOUNCEMENTS_MAX: usize = 1024;

/// The node's parts, behind their ports.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) slots: Arc<dyn SlotProvider>,
    pub(crate) templates: Arc<dyn TemplateSource>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) journal: Journal,
    pub(crate) pool: Arc<Pool>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) relief: Relief,
    pub(crate) boot_id: String,
    pub(crate) registry: Registry,
    pub(crate) kept: Kept,
    pub(crate) identity: Identity,
    pub(crate) captures: Arc<Captures>,
    pub(crate) effects: Effects,
    pub(crate) volumes: Arc<VolumeStore>,
    pub(crate) pins: Arc<Pins>,
    pub(crate) boots: Arc<Boots>,
    pub(crate) bring_up_line: Arc<BringUpLine>,
    pub(crate) pause_guard: PauseGuard,
    pub(crate) egress: Arc<dyn EgressGate>,
    pub(crate) network_logs: Arc<NetworkLogs>,
    pub(crate) egress_spool: Arc<EgressSpool>,
    /// Free space of the node's disk when it was last looked at.
    pub(crate) disk_available_mib: watch::Sender<u64>,
    pub(crate) reserve: Option<Arc<ReserveFile>>,
    /// Woken when something may have become garbage.
    pub(crate) housekeeping: Notify,
}

/// Captures that must stay although no record names them yet.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<HashMap<SnapshotId, usize>>);

/// Keeps one capture for as long as it lives.
#[derive(Debug)]
pub(crate) struct Pin {
    pins: Arc<Pins>,
    id: SnapshotId,
}

impl Pins {
    fn lock(&self) -> MutexGuard<'_, HashMap<SnapshotId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pin(self: &Arc<Self>, id: &SnapshotId) -> Pin {
        *self.lock().entry(id.clone()).or_default() += 1;
        Pin {
            pins: Arc::clone(self),
            id: id.clone(),
        }
    }

    pub(crate) fn all(&self) -> Vec<SnapshotId> {
        self.lock().keys().cloned().collect()
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = self.pins.lock();
        if let Some(count) = pins.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.id);
            }
        }
    }
}

/// Every sandbox of this node, and who wants to hear of them.
#[derive(Debug)]
pub(crate) struct Registry {
    sandboxes: Mutex<SandboxTable>,
    announcements: broadcast::Sender<Arc<SandboxReport>>,
}

impl Default for Registry {
    fn default() -> Self {
        let (announcements, _) = broadcast::channel(ANNOUNCEMENTS_MAX);
        Self {
            sandboxes: Mutex::default(),
            announcements,
        }
    }
}

impl Parts {
    pub(crate) fn sandboxes(&self) -> MutexGuard<'_, SandboxTable> {
        sandbox_table::lock(&self.registry.sandboxes)
    }

    /// Every sandbox, a page at a time: nobody waits for the whole.
    pub(crate) fn all_sandboxes(&self) -> impl Iterator<Item = SandboxHandle> {
        sandbox_table::all_of(&self.registry.sandboxes)
    }

    /// Books what a volume gets that it does not have yet. Blocks.
    pub(crate) fn book_volume(&self, wanted: &EnsureVolume) -> Result<Booking, VolumeError> {
        let has = self.volumes.size_mib(&wanted.project, &wanted.name);
        let more = u64::from(wanted.size).saturating_sub(has.unwrap_or(0));
        self.ledger.book(more).map_err(VolumeError::NoRoom)
    }

    pub(crate) fn find(&self, id: &SandboxId) -> Option<SandboxHandle> {
        self.sandboxes().get(id).cloned()
    }

    /// Books what a machine that runs already may use.
    pub(crate) fn book(
        &self,
        class: SandboxClass,
        machine: &MachineSpec,
        disk: Option<DiskMib>,
    ) -> Promise {
        self.ledger.note(class, self.demand(class, machine, disk))
    }

    /// What a machine is promised in a class.
    pub(crate) fn demand(
        &self,
        class: SandboxClass,
        machine: &MachineSpec,
        disk: Option<DiskMib>,
    ) -> Demand {
        let disk = disk.unwrap_or(machine.disk);
        self.ledger
            .demand(class, machine.memory.into(), disk.into())
    }

    pub(crate) fn forget(&self, id: &SandboxId) {
        self.sandboxes().remove(id);
    }

    /// Tells every watcher. Nobody watching is fine.
    pub(crate) fn announce(&self, report: &Arc<SandboxReport>) {
        let _ = self.registry.announcements.send(Arc::clone(report));
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<SandboxReport>> {
        self.registry.announcements.subscribe()
    }

    pub(crate) fn reports(&self) -> Vec<Arc<SandboxReport>> {
        self.all_sandboxes().map(|handle| handle.report()).collect()
    }
}
