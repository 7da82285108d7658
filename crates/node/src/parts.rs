//! What every owner task shares.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_node_api::SandboxReport;
use dayfly_types::{Clock, SandboxId};
use dayfly_vmm::{Engine, SlotProvider};
use tokio::sync::broadcast;

use crate::capacity::Ledger;
use crate::journal::Journal;
use crate::pool::Pool;
use crate::sandbox::SandboxHandle;
use crate::templates::TemplateSource;

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
    pub(crate) boot_id: String,
    pub(crate) registry: Registry,
}

/// Every sandbox of this node, and who wants to hear of them.
#[derive(Debug)]
pub(crate) struct Registry {
    sandboxes: Mutex<HashMap<SandboxId, SandboxHandle>>,
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
    pub(crate) fn sandboxes(&self) -> MutexGuard<'_, HashMap<SandboxId, SandboxHandle>> {
        self.registry
            .sandboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, id: &SandboxId) -> Option<SandboxHandle> {
        self.sandboxes().get(id).cloned()
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
        self.sandboxes()
            .values()
            .map(SandboxHandle::report)
            .collect()
    }
}
