//! Claims about memory that goes back to the host.

use std::time::Duration;

use dayfly_types::limits::GIVE_BACK_STOP_BYTES;
use dayfly_vmm::{FrameRange, GiveBackError, PAGE_BYTES};

use super::observe::ensure_running;
use super::{Claim, Template, World, ensure, in_slot};

/// One stop of the machine has room for it.
const SOME: u64 = GIVE_BACK_STOP_BYTES / PAGE_BYTES;
/// A machine that stands still longer than this is noticed by its users.
const STOP_MAX: Duration = Duration::from_secs(2);

pub(super) async fn what_is_free_is_given_back(world: &World, template: &Template) -> Claim {
    in_slot(world, async |slot| {
        let parked = world.engine.park(slot, &template.spec).await?;
        let mut vm = parked.restore().await?;
        ensure_running(slot).await?;
        let memory = template.spec.machine.memory.bytes();
        let all = memory / PAGE_BYTES;
        let early = vm.give_back(&[], 0).await;
        ensure!(
            matches!(early, Err(GiveBackError::NotNoted)),
            "gave back what nobody noted: {early:?}"
        );
        // A guest may say anything.
        ensure!(vm.note_writes(memory).await?, "this machine cannot do it");
        let elsewhere = [(all, 5), (u64::MAX, u64::MAX), (u64::MAX - 1, 1), (3, 0)];
        let elsewhere = elsewhere.map(|(first, count)| FrameRange { first, count });
        let nothing = vm.give_back(&elsewhere, 0).await?;
        ensure!(nothing.bytes == 0, "gave back what it has not: {nothing:?}");
        ensure_running(slot).await?;
        ensure!(vm.note_writes(memory).await?, "not twice");
        let whole = [FrameRange {
            first: 0,
            count: u64::MAX,
        }];
        let too_little = vm.give_back(&whole, memory + 1).await?;
        ensure!(
            too_little.bytes == 0 && too_little.stops == 0 && too_little.left_bytes > 0,
            "stopped for too little: {too_little:?}"
        );
        ensure_running(slot).await?;
        // What its kernel needs may be taken from it, so this is the last that it is good for.
        ensure!(vm.note_writes(memory).await?, "not three times");
        let lower = [FrameRange {
            first: 0,
            count: SOME,
        }];
        let given = vm.give_back(&lower, 0).await?;
        ensure!(
            given.bytes > 0 && given.bytes <= SOME * PAGE_BYTES && given.stops == 1,
            "gave back {given:?}"
        );
        ensure!(given.longest_stop < STOP_MAX, "stood still: {given:?}");
        vm.kill().await?;
        Ok(())
    })
    .await
}
