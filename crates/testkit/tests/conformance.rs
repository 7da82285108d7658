//! The fake engine keeps the port's contract.
#![expect(clippy::unwrap_used, reason = "this is a test")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dayfly_testkit::conformance::{self, Claim, Fixture, World};
use dayfly_testkit::{FakeEngine, FakeSlots, echo_guests};
use dayfly_types::{DiskMib, MemoryMib, Vcpus};
use dayfly_vmm::{BootMemory, BootSpec, DiskFiles, EngineProcess, MachineSpec, VmExit};

#[derive(Debug)]
struct FakeFixture {
    slots: Arc<FakeSlots>,
    assets: PathBuf,
}

#[async_trait::async_trait]
impl Fixture for FakeFixture {
    fn boot_spec(&self) -> BootSpec {
        BootSpec {
            machine: MachineSpec {
                memory: MemoryMib::new(128).unwrap(),
                vcpus: Vcpus::new(1).unwrap(),
                disk: DiskMib::new(64).unwrap(),
                spare_disks: 1,
            },
            kernel: self.assets.join("kernel"),
            initial_ram_disk: self.assets.join("initrd"),
            disks: DiskFiles {
                base: self.assets.join("base.img"),
                base_parts: Vec::new(),
                sealed: vec![self.assets.join("disk0.raw")],
                empty_layer: self.assets.join("empty.layer"),
            },
            memory: BootMemory::Image,
            disk: None,
            volumes: Vec::new(),
        }
    }

    fn boot_limit(&self) -> Duration {
        Duration::from_secs(5)
    }

    async fn crash(&self, process: EngineProcess) -> Claim {
        let ended = self.slots.end(process, VmExit::Signaled { signal: 11 });
        ended.then_some(()).ok_or_else(|| "no such process".into())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fake_engine_is_conformant() {
    let directory = tempfile::tempdir().unwrap();
    let assets = directory.path().join("assets");
    let captured = directory.path().join("captured");
    std::fs::create_dir(&assets).unwrap();
    std::fs::create_dir(&captured).unwrap();
    for name in ["kernel", "initrd", "base.img", "disk0.raw", "empty.layer"] {
        std::fs::write(assets.join(name), name).unwrap();
    }
    let slots = Arc::new(FakeSlots::new().unwrap());
    let world = World {
        engine: Arc::new(FakeEngine::with_guest(slots.clone(), echo_guests())),
        slots: slots.clone(),
        fixture: Arc::new(FakeFixture {
            slots: slots.clone(),
            assets,
        }),
        directory: captured,
    };
    let report = conformance::run(&world).await;
    println!("{report}");
    assert!(report.is_conformant(), "\n{report}");
    assert!(slots.running().is_empty());
}
