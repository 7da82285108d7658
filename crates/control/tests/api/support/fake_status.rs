//! What the node in memory says of itself.

use dayfly_node_api::{NodeStatus, PoolStatus, SharingStatus};
use dayfly_types::{Isolation, NodeId, TemplateName};

use super::fake_network::egress_status;
use super::fake_node::FakeNode;

pub(super) fn status(node: &FakeNode) -> NodeStatus {
    NodeStatus {
        node: NodeId::parse("fake").unwrap(),
        isolation: Isolation::Emulated,
        engine: "fake".to_owned(),
        engine_version: "1".to_owned(),
        accelerator: "none".to_owned(),
        sandboxes: node.ids().len() as u64,
        memory_total_mib: 1024,
        memory_committed_mib: 0,
        memory_reserve_mib: 0,
        disk_available_mib: node.with(|inner| if inner.disk_is_full { 64 } else { 1024 }),
        disk_committed_mib: 0,
        disk_reserve_mib: 64,
        pools: vec![PoolStatus {
            template: TemplateName::parse("base").unwrap(),
            parked: 1,
            target: 2,
        }],
        held_slots: Vec::new(),
        kept: node.with(|inner| inner.kept.clone()),
        parked_slots: 1,
        parked_slots_target: 2,
        restarts: 3,
        egress: egress_status(),
        sharing: SharingStatus {
            put_to_sleep: 4,
            ..SharingStatus::default()
        },
    }
}
