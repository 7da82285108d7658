//! Claims about a machine that was restored from a capture.

use std::fs;
use std::time::Duration;

use dayfly_vmm::{
    AdoptError, ControlError, EngineKind, EngineProcess, RestoreError, RestoreSpec, Slot, Vm,
    VmExit, file_names,
};
use tokio::time::{sleep, timeout};

use super::observe::{ensure_running, ensure_still, is_alive, mappings_of, processor_ticks};
use super::{Claim, Failure, Template, World, ensure, in_slot};

/// How soon the end of a process must be known.
const DEATH_LIMIT: Duration = Duration::from_secs(2);
/// Long enough for a processor that runs to show in its process's time.
const IDLE_WINDOW: Duration = Duration::from_millis(500);
/// What an idle process may use in that window: its event loop, not a guest.
const IDLE_TICKS_MAX: u64 = 3;

async fn restore(world: &World, slot: &Slot, spec: &RestoreSpec) -> Result<Box<dyn Vm>, Failure> {
    let parked = world.engine.park(slot, spec).await?;
    Ok(parked.restore().await?)
}

/// The fake's processes are not in `/proc`.
fn has_real_processes(world: &World) -> bool {
    world.engine.capabilities().engine != EngineKind::Fake
}

pub(super) async fn parked_engine_is_idle_and_private(world: &World, template: &Template) -> Claim {
    in_slot(world, async |slot| {
        let parked = world.engine.park(slot, &template.spec).await?;
        ensure_still(slot).await?;
        if has_real_processes(world) {
            let process = parked.process();
            let before = processor_ticks(process)?;
            sleep(IDLE_WINDOW).await;
            let used = processor_ticks(process)? - before;
            ensure!(used <= IDLE_TICKS_MAX, "a parked engine used {used} ticks");
            let mappings = mappings_of(process, &template.memory_image)?;
            let is_private = mappings
                .iter()
                .all(|permissions| permissions.ends_with('p'));
            ensure!(
                !mappings.is_empty() && is_private,
                "memory is mapped {mappings:?}"
            );
        }
        let process = parked.process();
        let vm = parked.restore().await?;
        ensure!(
            vm.process() == process,
            "the process changed with the restore"
        );
        ensure_running(slot).await
    })
    .await
}

pub(super) async fn two_machines_run_from_one_image(world: &World, template: &Template) -> Claim {
    in_slot(world, async |first| {
        in_slot(world, async |second| {
            let (one, two) = tokio::join!(
                restore(world, first, &template.spec),
                restore(world, second, &template.spec),
            );
            let (mut one, two) = (one?, two?);
            ensure!(
                one.process() != two.process(),
                "two machines share a process"
            );
            ensure_running(first).await?;
            ensure_running(second).await?;
            one.kill().await?;
            ensure_running(second).await
        })
        .await
    })
    .await
}

pub(super) async fn pause_and_resume_may_be_repeated(world: &World, template: &Template) -> Claim {
    in_slot(world, async |slot| {
        let mut vm = restore(world, slot, &template.spec).await?;
        for _ in 0..2 {
            vm.pause().await?;
            vm.pause().await?;
            ensure_still(slot).await?;
            vm.resume().await?;
            vm.resume().await?;
            ensure_running(slot).await?;
        }
        Ok(())
    })
    .await
}

pub(super) async fn kill_may_be_repeated(world: &World, template: &Template) -> Claim {
    in_slot(world, async |slot| {
        let mut vm = restore(world, slot, &template.spec).await?;
        ensure!(
            timeout(Duration::from_millis(50), vm.wait()).await.is_err(),
            "wait was early"
        );
        vm.kill().await?;
        vm.kill().await?;
        let exit = timeout(DEATH_LIMIT, vm.wait()).await?;
        ensure!(
            exit == timeout(DEATH_LIMIT, vm.wait()).await?,
            "wait changed its answer"
        );
        ensure!(
            !matches!(exit, VmExit::Exited { code: 0 }),
            "a killed engine ended well"
        );
        ensure!(!is_alive(vm.process()), "the process is left after kill");
        Ok(())
    })
    .await
}

pub(super) async fn adopt_takes_over(world: &World, template: &Template) -> Claim {
    in_slot(world, async |slot| {
        let vm = restore(world, slot, &template.spec).await?;
        let process = vm.process();
        drop(vm);
        let reopened = world.slots.reopen(slot.index).await?;
        ensure!(reopened == *slot, "the slot changed when it was reopened");
        let mut vm = world.engine.adopt(&reopened, process).await?;
        ensure!(vm.process() == process, "another process was adopted");
        ensure_running(slot).await?;
        vm.pause().await?;
        drop(vm);
        let mut vm = world.engine.adopt(slot, process).await?;
        ensure_still(slot).await?;
        vm.resume().await?;
        ensure_running(slot).await?;
        vm.kill().await?;
        timeout(DEATH_LIMIT, vm.wait()).await?;
        Ok(())
    })
    .await
}

pub(super) async fn adopt_refuses_others(world: &World, template: &Template) -> Claim {
    in_slot(world, async |slot| {
        let mut vm = restore(world, slot, &template.spec).await?;
        let process = vm.process();
        let start_time_ticks = process.start_time_ticks + 1;
        let later = EngineProcess {
            start_time_ticks,
            ..process
        };
        let result = world.engine.adopt(slot, later).await;
        ensure!(
            matches!(result, Err(AdoptError::Gone)),
            "a recycled pid was adopted: {result:?}"
        );
        ensure_running(slot).await?;
        vm.kill().await?;
        let result = world.engine.adopt(slot, process).await;
        ensure!(
            matches!(result, Err(AdoptError::Gone)),
            "a dead engine was adopted: {result:?}"
        );
        Ok(())
    })
    .await?;
    in_slot(world, async |slot| {
        let parked = world.engine.park(slot, &template.spec).await?;
        let process = parked.process();
        drop(parked);
        let result = world.engine.adopt(slot, process).await;
        ensure!(
            matches!(result, Err(AdoptError::Refused(_))),
            "adopted no machine: {result:?}"
        );
        Ok(())
    })
    .await
}

pub(super) async fn death_is_seen(world: &World, template: &Template) -> Claim {
    in_slot(world, async |slot| {
        let mut vm = restore(world, slot, &template.spec).await?;
        world.fixture.crash(vm.process()).await?;
        timeout(DEATH_LIMIT, vm.wait()).await?;
        let result = vm.pause().await;
        ensure!(
            matches!(result, Err(ControlError::Gone)),
            "a dead engine paused: {result:?}"
        );
        vm.kill().await?;
        Ok(())
    })
    .await?;
    in_slot(world, async |slot| {
        let parked = world.engine.park(slot, &template.spec).await?;
        world.fixture.crash(parked.process()).await?;
        let result = timeout(DEATH_LIMIT, parked.restore()).await?;
        ensure!(
            matches!(result, Err(RestoreError::Gone)),
            "a dead engine restored: {result:?}"
        );
        Ok(())
    })
    .await
}

pub(super) async fn damaged_state_is_refused(world: &World, template: &Template) -> Claim {
    let damaged = world.directory.join("damaged.state");
    let state = fs::read(&template.spec.device_state)?;
    fs::write(&damaged, &state[..state.len() / 2])?;
    let spec = RestoreSpec {
        device_state: damaged,
        ..template.spec.clone()
    };
    in_slot(world, async |slot| {
        let parked = world.engine.park(slot, &spec).await?;
        let process = parked.process();
        let result = parked.restore().await;
        ensure!(
            matches!(result, Err(RestoreError::Refused(_))),
            "half a state: {result:?}"
        );
        ensure!(!is_alive(process), "the engine lives on without a machine");
        Ok(())
    })
    .await
}

pub(super) async fn release_ends_a_running_machine(world: &World, template: &Template) -> Claim {
    in_slot(world, async |slot| {
        let mut vm = restore(world, slot, &template.spec).await?;
        ensure_running(slot).await?;
        world.slots.release(slot.index).await?;
        timeout(DEATH_LIMIT, vm.wait()).await?;
        ensure!(!is_alive(vm.process()), "the process is left after release");
        let socket = slot.run_directory.join(file_names::CONTROL_SOCKET);
        ensure!(!socket.exists(), "a socket is left after release");
        Ok(())
    })
    .await
}
