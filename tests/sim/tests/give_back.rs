//! Claims about memory that a guest has freed and the host gets back.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use dayfly_node_api::NodeCalls;
use dayfly_sim::{World, until_true, wanted};
use dayfly_testkit::{EngineOperation, FakeEngine, FakeGuest, Fault};
use dayfly_types::{SandboxState, limits};
use dayfly_vmm::PAGE_BYTES;

const MIB: u64 = 1 << 20;

#[tokio::test]
async fn what_a_guest_has_freed_is_given_back_and_a_failure_harms_nobody() -> Result<()> {
    let mut world = World::with_room_for(1)?;
    let guest = FakeGuest::restored();
    let same = guest.clone();
    let factory = FakeGuest::factory(move || same.clone());
    world.engine = Arc::new(FakeEngine::with_guest(Arc::clone(&world.slots), factory));
    let node = world.start_node().await?;
    let made = node.ensure_sandbox(wanted(1, "p", None)?).await?;
    let running = world.slots.running();
    let pid = running.first().context("nothing runs")?.pid;
    world.host.engines.work(pid);
    let faults = world.engine.faults();
    faults.order(EngineOperation::GiveBack, 1, Fault::Fail);
    guest.set_free_pages(300 * MIB / PAGE_BYTES);
    world.host.engines.hold(pid, 400);
    until_true("the node tries again", async || {
        world.clock.advance(limits::GIVE_BACK_REST);
        world.engine.given_back_bytes(pid) > 0
    })
    .await?;
    ensure!(
        faults.next(EngineOperation::GiveBack).is_none(),
        "it did not fail at first"
    );
    let given = world.engine.given_back_bytes(pid);
    ensure!(given.is_multiple_of(300 * MIB), "{given} bytes");
    let now = node.sandbox(&made.id).await?;
    ensure!(now.state == SandboxState::Running, "{now:?}");
    Ok(())
}
