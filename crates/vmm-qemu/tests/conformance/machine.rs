//! What QEMU does beyond the port's contract, on real machines.

use std::path::Path;
use std::time::Duration;

use crate::assets::{Assets, PROGRAM};
use dayfly_vmm::{Accelerator, BootError, BootSpec};
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
