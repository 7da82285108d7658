//! What the fake node says of all its sandboxes: a list that is on its way for as long as a test
//! wants, and what each costs.

use std::sync::Arc;

use dayfly_node_api::{ResourceUse, SandboxReport};
use tokio::sync::Notify;

use super::fake_node::FakeNode;

/// The next list that the node is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldList {
    is_made: Arc<Notify>,
    may_go: Arc<Notify>,
}

impl HeldList {
    /// Waits until the node has made its list.
    pub(crate) async fn made(&self) {
        self.is_made.notified().await;
    }

    /// Lets it arrive.
    pub(crate) fn release(&self) {
        self.may_go.notify_one();
    }
}

impl FakeNode {
    /// Has the next list wait on its way.
    pub(crate) fn hold_next_list(&self) -> HeldList {
        let held = HeldList::default();
        self.with(|inner| inner.held_list = Some(held.clone()));
        held
    }

    pub(super) async fn list(&self) -> Vec<SandboxReport> {
        let (list, held) = self.with(|inner| {
            let list = inner.sandboxes.values().cloned().collect();
            (list, inner.held_list.take())
        });
        if let Some(held) = held {
            held.is_made.notify_one();
            held.may_go.notified().await;
        }
        list
    }

    /// What each sandbox that has a machine costs, whatever list is on its way.
    pub(super) fn loads_now(&self) -> Vec<ResourceUse> {
        let reports: Vec<_> = self.with(|inner| inner.sandboxes.values().cloned().collect());
        let with_machines = reports.into_iter().filter(|it| it.state.has_machine());
        with_machines.map(load).collect()
    }
}

/// What a machine is said to use: each is another one after a wake.
pub(crate) fn load(report: SandboxReport) -> ResourceUse {
    ResourceUse {
        id: report.id,
        cpu_micros: 1_500_000,
        memory_bytes: 64 << 20,
        disk_bytes: 3 << 20,
        network_in_bytes: 2000,
        network_out_bytes: 1000,
        machine: report.generation.0.to_string(),
    }
}
