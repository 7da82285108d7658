//! The node that these tests make up does what a real one does, as far as the suite looks.

use std::sync::Arc;

use dayfly_testkit::node_conformance;

use crate::support::fake_node::FakeNode;

#[tokio::test]
async fn the_node_in_memory_is_conformant() {
    let report = node_conformance::run(Arc::new(FakeNode::default())).await;
    assert!(report.is_conformant(), "{report}");
}
