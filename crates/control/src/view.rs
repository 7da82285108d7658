//! What the node said last, in memory, so that no read has to ask it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use dayfly_node_api::{LifecycleReport, NodeStatus, SandboxReport};
use dayfly_types::{ProjectId, SandboxId, SandboxState};

use crate::time::{deadline_ms, now_ms};

/// One sandbox as its node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    pub report: SandboxReport,
    /// When the node will delete it, Unix milliseconds.
    pub expires_at_ms: Option<i64>,
    seen_at: Instant,
}

/// Sandboxes of one template in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SandboxCount {
    pub(crate) state: String,
    pub(crate) template: String,
    pub(crate) count: i64,
}

#[derive(Debug, Default)]
struct Inner {
    sandboxes: HashMap<SandboxId, Live>,
    status: Option<NodeStatus>,
    /// What the node keeps without being able to use it, and why.
    kept: HashMap<SandboxId, String>,
    connected: bool,
    is_known: bool,
}

/// Everything that the node said last.
#[derive(Debug, Default)]
pub struct LiveView {
    inner: RwLock<Inner>,
}

impl LiveView {
    // Every write below leaves the maps whole, so a panic elsewhere does not spoil them.
    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn get(&self, id: &SandboxId) -> Option<Live> {
        self.read().sandboxes.get(id).cloned()
    }

    /// Whether the node has spoken of a sandbox as this project's. For the path of every call, so
    /// nothing is copied.
    #[must_use]
    pub fn is_of(&self, id: &SandboxId, project: &ProjectId) -> bool {
        let inner = self.read();
        let live = inner.sandboxes.get(id);
        live.is_some_and(|live| live.report.project == *project)
    }

    /// Whether the node has spoken of a sandbox.
    #[must_use]
    pub fn knows(&self, id: &SandboxId) -> bool {
        self.read().sandboxes.contains_key(id)
    }

    /// Takes news, unless newer news is already here.
    pub fn apply(&self, report: SandboxReport) {
        let mut inner = self.write();
        let known = inner.sandboxes.get(&report.id);
        if known.is_some_and(|live| live.report.generation > report.generation) {
            return;
        }
        if report.state == SandboxState::Deleted {
            inner.sandboxes.remove(&report.id);
            return;
        }
        let expires_at_ms = deadline_ms(report.expires_in_seconds, now_ms());
        let live = Live {
            expires_at_ms,
            seen_at: Instant::now(),
            report,
        };
        inner.sandboxes.insert(live.report.id.clone(), live);
    }

    /// Takes the node's answer to a change of a lifecycle, so that the next read shows it.
    pub fn apply_lifecycle(&self, id: &SandboxId, report: &LifecycleReport) {
        if let Some(live) = self.write().sandboxes.get_mut(id) {
            live.report.lifecycle = report.lifecycle;
            live.expires_at_ms = deadline_ms(report.expires_in_seconds, now_ms());
        }
    }

    pub fn remove(&self, id: &SandboxId) {
        self.write().sandboxes.remove(id);
    }

    /// Forgets what the node did not list, unless it was heard of after the list was asked for.
    pub fn retain(&self, listed: &HashSet<SandboxId>, asked_at: Instant) {
        self.write()
            .sandboxes
            .retain(|id, live| listed.contains(id) || live.seen_at >= asked_at);
    }

    /// How many sandboxes there are of each template in each state.
    pub(crate) fn counts(&self) -> Vec<SandboxCount> {
        let inner = self.read();
        let mut counts: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for live in inner.sandboxes.values() {
            let key = (live.report.state.as_str(), live.report.template.as_str());
            *counts.entry(key).or_default() += 1;
        }
        let counts = counts.into_iter();
        counts
            .map(|((state, template), count)| SandboxCount {
                state: state.to_owned(),
                template: template.to_owned(),
                count,
            })
            .collect()
    }

    #[must_use]
    pub fn status(&self) -> Option<NodeStatus> {
        self.read().status.clone()
    }

    pub fn set_status(&self, status: NodeStatus) {
        let mut inner = self.write();
        let kept = status.kept.iter();
        inner.kept = kept
            .map(|kept| (kept.id.clone(), kept.reason.clone()))
            .collect();
        inner.status = Some(status);
    }

    /// Why the node cannot use a sandbox that it keeps.
    #[must_use]
    pub fn unavailable(&self, id: &SandboxId) -> Option<String> {
        let inner = self.read();
        let live = inner.sandboxes.get(id);
        match live {
            Some(live) => live.report.unavailable.clone(),
            None => inner.kept.get(id).cloned(),
        }
    }

    /// Whether node and database know each other.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.read().is_known
    }

    pub fn set_known(&self, is_known: bool) {
        self.write().is_known = is_known;
    }

    /// Whether the node is being watched right now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.read().connected
    }

    pub fn set_connected(&self, connected: bool) {
        self.write().connected = connected;
    }
}
