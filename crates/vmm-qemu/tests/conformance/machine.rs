//! What QEMU does beyond the port's contract, on real machines.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::assets::{Assets, PROGRAM};
use dayfly_testkit::conformance::{captured_machine, observe};
use dayfly_vmm::{Accelerator, BootError, BootSpec, RestoreSpec, file_names};
use dayfly_vmm_qemu::{ProbeSpec, probe_accelerator};

#[tokio::test]
async fn a_kernel_decides_which_accelerator_works() {
    let Some(assets) = Assets::find() else { return };
    let spec = ProbeSpec {
        program: PROGRAM.into(),
        kernel: assets.kernel(),
        limit: Duration::from_secs(10),
    };
    let outcome = probe_accelerator(&spec).await.unwrap();
    println!("{outcome:?}");
    if !Path::new("/dev/kvm").exists() {
        assert_eq!(outcome.accelerator, Accelerator::Tcg);
    }
    assert!(!outcome.reason.is_empty());
}

#[tokio::test]
async fn an_engine_that_cannot_start_says_why_and_leaves_no_process() {
    let Some(assets) = Assets::find() else { return };
    let setup = assets.set_up().await;
    let slot = setup.slots.acquire().await.unwrap();
    let kernel = setup.directory.path().join("absent");
    let spec = BootSpec {
        kernel,
        ..setup.boot_spec.clone()
    };
    let error = setup.engine.boot(&slot, &spec).await.unwrap_err();
    let BootError::Refused(source) = error else {
        panic!("{error:?}")
    };
    assert!(source.to_string().contains("absent"), "{source}");
    setup.slots.release(slot.index).await.unwrap();
}

/// The way to fork and to hibernate until only changed pages are saved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_capture_of_a_restored_machine_carries_its_memory() {
    let Some(assets) = Assets::find() else { return };
    let setup = assets.set_up().await;
    let world = setup.world();
    let template = captured_machine(&world).await.unwrap();
    let parent = setup.slots.acquire().await.unwrap();
    let start = Instant::now();
    let parked = setup.engine.park(&parent, &template).await.unwrap();
    let park_time = start.elapsed();
    let start = Instant::now();
    let mut vm = parked.restore().await.unwrap();
    println!("park {park_time:?}, restore {:?}", start.elapsed());
    observe::ensure_running(&parent).await.unwrap();
    println!("restore to answer {:?}", start.elapsed());
    let start = Instant::now();
    vm.pause().await.unwrap();
    let state = parent.run_directory.join(file_names::DEVICE_STATE);
    let captured = vm.capture(&state).await.unwrap();
    println!("capture {captured:?} took {:?}", start.elapsed());
    let resident_at_least = 32 << 20;
    assert!(
        captured.device_state_bytes > resident_at_least,
        "{captured:?}"
    );

    let mut spec = RestoreSpec {
        device_state: world.directory.join("child.state"),
        ..template
    };
    let disk = world.directory.join("child.qcow2");
    std::fs::copy(&state, &spec.device_state).unwrap();
    std::fs::copy(parent.run_directory.join(file_names::WRITABLE_DISK), &disk).unwrap();
    spec.disks.sealed.push(disk);
    vm.resume().await.unwrap();
    observe::ensure_running(&parent).await.unwrap();
    let child = setup.slots.acquire().await.unwrap();
    let parked = setup.engine.park(&child, &spec).await.unwrap();
    let start = Instant::now();
    let _vm = parked.restore().await.unwrap();
    println!("restore with memory took {:?}", start.elapsed());
    observe::ensure_running(&child).await.unwrap();
    observe::ensure_running(&parent).await.unwrap();
    setup.slots.release(parent.index).await.unwrap();
    setup.slots.release(child.index).await.unwrap();
}
