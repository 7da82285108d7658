//! A list of sandboxes that is on its way for as long as a test wants.

use std::sync::Arc;

use dayfly_node_api::SandboxReport;
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
}
