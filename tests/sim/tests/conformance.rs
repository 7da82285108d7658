//! The suite of the node's contract on the real node over simulated machines, called at once and
//! through the inner protocol.
#![expect(
    clippy::print_stdout,
    reason = "the claims and their number are part of the result"
)]

use std::sync::Arc;

use anyhow::{Result, ensure};
use dayfly_node_api::{NodeApi, NodeClient, server, socket};
use dayfly_sim::World;
use dayfly_testkit::node_conformance;

const ROOM: u64 = 5;

async fn conforms(node: Arc<dyn NodeApi>) -> Result<()> {
    let report = node_conformance::run(node).await;
    println!("{report}");
    ensure!(report.is_conformant(), "{report}");
    Ok(())
}

#[tokio::test]
async fn the_real_node_is_conformant() -> Result<()> {
    let world = World::with_room_for(ROOM)?;
    conforms(world.start_node().await?).await?;
    ensure!(world.slots_left().await? == 0 && world.journal_entries()? == 0);
    Ok(())
}

#[tokio::test]
async fn the_real_node_is_conformant_from_afar() -> Result<()> {
    let world = World::with_room_for(ROOM)?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("node.sock");
    let node = world.start_node().await?;
    let served = server::serve(socket::listen(&path)?, node as _, std::future::pending());
    let served = tokio::spawn(served);
    conforms(Arc::new(NodeClient::new(&path))).await?;
    served.abort();
    Ok(())
}
