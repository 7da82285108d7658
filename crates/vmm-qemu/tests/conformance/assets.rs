//! The guest that these tests run, and an engine without a jail to run it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "this is part of a test"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dayfly_host::process::{Pidfd, ProcessIdentity};
use dayfly_testkit::conformance::{Claim, Fixture, World};
use dayfly_types::{DiskMib, MemoryMib, Vcpus};
use dayfly_vmm::{
    Accelerator, BootMemory, BootSpec, DiskFiles, Engine, EngineProcess, MachineSpec, SlotProvider,
};
use dayfly_vmm_qemu::{BareSlots, QemuConfig, QemuEngine, create_empty_layer, engine_version};

pub(crate) const PROGRAM: &str = "/usr/bin/qemu-system-x86_64";
const IMAGE_PROGRAM: &str = "/usr/bin/qemu-img";

/// A directory with the files of a guest.
#[derive(Debug)]
pub(crate) struct Assets {
    directory: PathBuf,
}

/// Everything a test needs to boot one.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) slots: Arc<dyn SlotProvider>,
    pub(crate) boot_spec: BootSpec,
}

impl Assets {
    /// `None` after a line that says why the test is left out.
    pub(crate) fn find() -> Option<Self> {
        if let Some(directory) = std::env::var_os("DAYFLY_TEST_ASSETS") {
            return Some(Self {
                directory: directory.into(),
            });
        }
        let is_required = std::env::var_os("DAYFLY_REQUIRE_VM").is_some_and(|value| value == "1");
        assert!(
            !is_required,
            "DAYFLY_REQUIRE_VM=1, but DAYFLY_TEST_ASSETS names no guest"
        );
        println!("skipped: DAYFLY_TEST_ASSETS names no directory with kernel, initrd and disks");
        None
    }

    pub(crate) fn kernel(&self) -> PathBuf {
        self.directory.join("kernel")
    }

    pub(crate) async fn set_up(&self) -> Setup {
        let directory = tempfile::tempdir().unwrap();
        let slots_directory = directory.path().join("slots");
        std::fs::create_dir(&slots_directory).unwrap();
        let disk0 = self.directory.join("disk0.raw");
        let disk_mib = std::fs::metadata(&disk0).unwrap().len() >> 20;
        let disk = DiskMib::new(disk_mib).unwrap();
        let empty_layer = directory.path().join("empty.qcow2");
        create_empty_layer(Path::new(IMAGE_PROGRAM), &empty_layer, disk)
            .await
            .unwrap();
        let slots = Arc::new(BareSlots::new(&slots_directory).unwrap());
        let config = QemuConfig {
            root: "/".into(),
            build: None,
            program: PROGRAM.into(),
            // Emulation runs on every machine; hardware has the same command line but for a word.
            accelerator: Accelerator::Tcg,
            version: engine_version(Path::new(PROGRAM)).await.unwrap(),
            memory_library: memory_library(),
        };
        let engine = Arc::new(QemuEngine::new(config, slots.clone()));
        let boot_spec = BootSpec {
            machine: MachineSpec {
                memory: MemoryMib::new(512).unwrap(),
                vcpus: Vcpus::new(1).unwrap(),
                disk,
                spare_disks: 3,
            },
            kernel: self.kernel(),
            initial_ram_disk: self.directory.join("initrd"),
            disks: DiskFiles {
                base: self.directory.join("base.img"),
                base_parts: Vec::new(),
                sealed: vec![disk0],
                empty_layer,
            },
            memory: BootMemory::Image,
            disk: None,
            volumes: Vec::new(),
        };
        Setup {
            directory,
            engine,
            slots,
            boot_spec,
        }
    }
}

/// `build.sh` leaves it beside the programs.
fn memory_library() -> PathBuf {
    let built = std::env::var_os("DAYFLY_E2E_PROGRAMS").map(PathBuf::from);
    let built =
        built.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/dist"));
    built.join("libdayfly_memory.so")
}

impl Setup {
    pub(crate) fn world(&self) -> World {
        let captured = self.directory.path().join("captured");
        std::fs::create_dir(&captured).unwrap();
        World {
            engine: self.engine.clone(),
            slots: self.slots.clone(),
            fixture: Arc::new(QemuFixture {
                boot_spec: self.boot_spec.clone(),
            }),
            directory: captured,
        }
    }
}

/// The suite's view of this guest.
#[derive(Debug)]
struct QemuFixture {
    boot_spec: BootSpec,
}

#[async_trait::async_trait]
impl Fixture for QemuFixture {
    fn boot_spec(&self) -> BootSpec {
        self.boot_spec.clone()
    }

    fn boot_limit(&self) -> Duration {
        // Ten seconds under emulation on an idle host; builds may run beside the test.
        Duration::from_secs(180)
    }

    async fn crash(&self, process: EngineProcess) -> Claim {
        let EngineProcess {
            pid,
            start_time_ticks,
        } = process;
        let pidfd = Pidfd::open(ProcessIdentity {
            pid,
            start_time_ticks,
        })?;
        pidfd.kill()?;
        let is_gone = pidfd.wait_blocking(Duration::from_secs(5));
        is_gone
            .then_some(())
            .ok_or_else(|| "the engine outlives its kill".into())
    }
}
