//! The fake engine goes wrong when told to, and cleans up as a real one does.
#![expect(clippy::unwrap_used, reason = "this is a test")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dayfly_testkit::{EngineOperation, FakeEngine, FakeSlots, Fault, SlotOperation};
use dayfly_types::{DiskMib, MemoryMib, Vcpus};
use dayfly_vmm::{
    BootError, BootMemory, BootSpec, CaptureSpec, DiskFiles, Engine, EngineCaptureError,
    MachineSpec, MemoryImage, RestoreError, RestoreSpec, Slot, SlotProvider, Vm, VmExit,
    file_names,
};

struct Fake {
    slots: Arc<FakeSlots>,
    engine: FakeEngine,
    assets: tempfile::TempDir,
}

fn fake() -> Fake {
    let assets = tempfile::tempdir().unwrap();
    for name in ["kernel", "initrd", "base", "disk0", "empty"] {
        std::fs::write(assets.path().join(name), name).unwrap();
    }
    let slots = Arc::new(FakeSlots::new().unwrap());
    let engine = FakeEngine::new(slots.clone());
    Fake {
        slots,
        engine,
        assets,
    }
}

fn boot_spec(assets: &Path) -> BootSpec {
    BootSpec {
        machine: MachineSpec {
            memory: MemoryMib::new(128).unwrap(),
            vcpus: Vcpus::new(1).unwrap(),
            disk: DiskMib::new(64).unwrap(),
            spare_disks: 0,
        },
        kernel: assets.join("kernel"),
        initial_ram_disk: assets.join("initrd"),
        disks: DiskFiles {
            base: assets.join("base"),
            base_parts: Vec::new(),
            sealed: vec![assets.join("disk0")],
            empty_layer: assets.join("empty"),
        },
        memory: BootMemory::Image,
        disk: None,
        volumes: Vec::new(),
    }
}

impl Fake {
    async fn booted(&self) -> (Slot, Box<dyn Vm>) {
        let slot = self.slots.acquire().await.unwrap();
        let vm = self
            .engine
            .boot(&slot, &boot_spec(self.assets.path()))
            .await
            .unwrap();
        (slot, vm)
    }

    async fn captured(&self) -> RestoreSpec {
        let (slot, mut vm) = self.booted().await;
        vm.pause().await.unwrap();
        let state = slot.run_directory.join(file_names::DEVICE_STATE);
        vm.capture(&CaptureSpec::devices(&state)).await.unwrap();
        let keep = |name: &str| {
            let kept = self.assets.path().join(name);
            std::fs::rename(slot.run_directory.join(name), &kept).unwrap();
            kept
        };
        let BootSpec {
            machine,
            kernel,
            initial_ram_disk,
            disks,
            ..
        } = boot_spec(self.assets.path());
        let memory_image = MemoryImage::File(keep(file_names::MEMORY_IMAGE));
        let device_state = keep(file_names::DEVICE_STATE);
        self.slots.release(slot.index).await.unwrap();
        RestoreSpec {
            machine,
            kernel,
            initial_ram_disk,
            disks,
            memory_image,
            memory_layers: Vec::new(),
            device_state,
            disk: None,
            build: None,
            volumes: Vec::new(),
        }
    }
}

#[tokio::test]
async fn a_boot_that_fails_leaves_no_process() {
    let fake = fake();
    let slot = fake.slots.acquire().await.unwrap();
    fake.engine
        .faults()
        .order(EngineOperation::Boot, 1, Fault::Fail);
    let result = fake
        .engine
        .boot(&slot, &boot_spec(fake.assets.path()))
        .await;
    assert!(matches!(result, Err(BootError::Refused(_))));
    assert!(fake.slots.running().is_empty());
}

#[tokio::test]
async fn a_launch_that_fails_is_told_apart() {
    let fake = fake();
    let slot = fake.slots.acquire().await.unwrap();
    fake.slots
        .faults()
        .order(SlotOperation::Launch, 1, Fault::Fail);
    let result = fake
        .engine
        .boot(&slot, &boot_spec(fake.assets.path()))
        .await;
    assert!(matches!(result, Err(BootError::Launch(_))));
}

#[tokio::test]
async fn an_engine_that_exits_in_a_capture_is_gone() {
    let fake = fake();
    let (slot, mut vm) = fake.booted().await;
    vm.pause().await.unwrap();
    fake.engine
        .faults()
        .order(EngineOperation::Capture, 1, Fault::Exit);
    let state = slot.run_directory.join(file_names::DEVICE_STATE);
    assert!(matches!(
        vm.capture(&CaptureSpec::devices(&state)).await,
        Err(EngineCaptureError::Gone)
    ));
    assert_eq!(vm.wait().await, VmExit::Exited { code: 1 });
}

#[tokio::test]
async fn the_second_restore_fails_when_that_is_the_order() {
    let fake = fake();
    let spec = fake.captured().await;
    fake.engine
        .faults()
        .order(EngineOperation::Restore, 2, Fault::Fail);
    for is_fine in [true, false, true] {
        let slot = fake.slots.acquire().await.unwrap();
        let parked = fake.engine.park(&slot, &spec).await.unwrap();
        let process = parked.process();
        let result = parked.restore().await;
        assert_eq!(result.is_ok(), is_fine);
        assert_eq!(fake.slots.running().contains(&process), is_fine);
    }
}

#[tokio::test]
async fn a_state_of_another_machine_is_refused() {
    let fake = fake();
    let mut spec = fake.captured().await;
    spec.machine.memory = MemoryMib::new(256).unwrap();
    let slot = fake.slots.acquire().await.unwrap();
    let parked = fake.engine.park(&slot, &spec).await.unwrap();
    assert!(matches!(
        parked.restore().await,
        Err(RestoreError::Refused(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_hanging_pause_never_answers_and_may_be_dropped() {
    let fake = fake();
    let (_slot, mut vm) = fake.booted().await;
    fake.engine
        .faults()
        .order(EngineOperation::Pause, 1, Fault::Hang);
    let hung = tokio::time::timeout(Duration::from_secs(3600), vm.pause()).await;
    assert!(hung.is_err());
    vm.pause().await.unwrap();
}
