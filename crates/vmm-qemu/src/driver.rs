//! The engine as the port sees it: boot, park, adopt.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use dayfly_host::process::ProcessError;
use dayfly_types::limits::ENGINE_COMMAND_DEADLINE;
use dayfly_vmm::{
    Accelerator, AdoptError, BootError, BootMemory, BootSpec, Capabilities, Engine, EngineBuild,
    EngineProcess, MemoryImage, ParkError, ParkedVm, RestoreSpec, Slot, SlotProvider, Vm,
    file_names,
};

use crate::capabilities::capabilities;
use crate::counter::counter_khz;
use crate::disk_pace::DiskPace;
use crate::error::MonitorError;
use crate::events::{CANNOT_RUN, SHUT_DOWN, STOPPED_BY_ERROR};
use crate::launch::{Launch, Mounts, Origin, command};
use crate::layout::{Layout, lay_out, memory_image};
use crate::parked::ParkedQemu;
use crate::process::Watched;
use crate::qmp::Monitor;
use crate::start::{MappedMemory, check_memory, end, start};
use crate::version::EngineVersion;
use crate::vm::QemuVm;

/// Which engine program to run, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QemuConfig {
    /// What the engine sees as `/`, where it is jailed.
    pub root: PathBuf,
    /// The digest of that, if it has one.
    pub build: Option<EngineBuild>,
    /// The program as the engine's own root has it.
    pub program: PathBuf,
    /// What [`crate::probe_accelerator`] found.
    pub accelerator: Accelerator,
    /// What [`crate::engine_version`] found.
    pub version: EngineVersion,
    /// The library that maps memory layers, as the engine's own root has it.
    pub memory_library: PathBuf,
}

/// QEMU on this host.
#[derive(Debug)]
pub struct QemuEngine {
    config: QemuConfig,
    kept: Vec<(KeptQemu, Capabilities)>,
    slots: Arc<dyn SlotProvider>,
    capabilities: Capabilities,
    counter_khz: Option<u64>,
    disk_pace: DiskPace,
}

/// An earlier build, for what it saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptQemu {
    pub config: QemuConfig,
    /// Once there is a file of this name the build is not used any more, from that moment on.
    pub retired: PathBuf,
}

impl QemuEngine {
    #[must_use]
    pub fn new(config: QemuConfig, slots: Arc<dyn SlotProvider>) -> Self {
        let processor_table = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let capabilities = capabilities(&config, &processor_table);
        let counter_khz = counter_khz(&processor_table);
        Self {
            config,
            kept: Vec::new(),
            slots,
            capabilities,
            counter_khz,
            disk_pace: DiskPace::default(),
        }
    }

    /// Holds each machine's disks to a rate, from its start on. One that runs already keeps to what it was held to.
    #[must_use]
    pub fn with_disk_pace(mut self, pace: DiskPace) -> Self {
        self.disk_pace = pace;
        self
    }

    /// Has earlier builds beside the installed one, oldest first.
    #[must_use]
    pub fn with_kept(mut self, kept: Vec<KeptQemu>) -> Self {
        let processor_table = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let with_capabilities = |kept: KeptQemu| {
            let capabilities = capabilities(&kept.config, &processor_table);
            (kept, capabilities)
        };
        self.kept = kept.into_iter().map(with_capabilities).collect();
        self
    }

    /// Those that nobody has retired, or removed after that.
    fn in_use(&self) -> impl Iterator<Item = &(KeptQemu, Capabilities)> {
        let is_in_use = |kept: &KeptQemu| !kept.retired.exists() && kept.config.root.is_dir();
        self.kept.iter().filter(move |(kept, _)| is_in_use(kept))
    }

    fn config_of(&self, build: Option<&EngineBuild>) -> Result<&QemuConfig, ParkError> {
        let Some(build) = build else {
            return Ok(&self.config);
        };
        let kept = self.in_use().map(|(kept, _)| &kept.config);
        let mut all = std::iter::once(&self.config).chain(kept);
        let found = all.find(|config| config.build.as_ref() == Some(build));
        found.ok_or_else(|| ParkError::NoBuild {
            build: build.clone(),
        })
    }
}

#[async_trait]
impl Engine for QemuEngine {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn kept(&self) -> Vec<Capabilities> {
        self.in_use()
            .map(|(_, capabilities)| capabilities.clone())
            .collect()
    }

    async fn boot(&self, slot: &Slot, spec: &BootSpec) -> Result<Box<dyn Vm>, BootError> {
        let (spec, layout) = Layout::of_boot(slot, spec);
        lay_out(&slot.run_directory, layout)
            .await
            .map_err(|error| BootError::Refused(error.into()))?;
        let launch = Launch {
            config: &self.config,
            slot,
            machine: &spec.machine,
            disks: &spec.disks,
            volumes: &spec.volumes,
            origin: Origin::Boot {
                kernel: &spec.kernel,
                initial_ram_disk: &spec.initial_ram_disk,
                memory: spec.memory,
                counter_khz: self.counter_khz,
            },
        };
        let command = command(&launch, Mounts::new(slot));
        let mut started = start(self.slots.as_ref(), slot, command).await?;
        let spare_disks = spec.machine.spare_disks;
        let paced = self.disk_pace.impose(&mut started.monitor, spare_disks);
        let running = match paced.await {
            Ok(()) => check_running(&mut started.monitor).await,
            Err(error) => Err(error),
        };
        if let Err(error) = running {
            end(&mut started.watched).await;
            return Err(error.into());
        }
        if spec.memory == BootMemory::Private {
            let memory = MappedMemory {
                image: memory_image(slot, &MemoryImage::Zeros),
                bytes: spec.machine.memory.bytes(),
                top: None,
            };
            if let Err(error) = check_memory(&started.watched, memory).await {
                end(&mut started.watched).await;
                return Err(BootError::Refused(error.into()));
            }
        }
        Ok(Box::new(QemuVm::new(slot.clone(), started.watched, None)))
    }

    async fn park(&self, slot: &Slot, spec: &RestoreSpec) -> Result<Box<dyn ParkedVm>, ParkError> {
        let config = self.config_of(spec.build.as_ref())?;
        let (spec, layout) = Layout::of_restore(slot, spec);
        lay_out(&slot.run_directory, layout)
            .await
            .map_err(|error| ParkError::Layout(error.into()))?;
        let image = memory_image(slot, &spec.memory_image);
        let launch = Launch {
            config,
            slot,
            machine: &spec.machine,
            disks: &spec.disks,
            volumes: &spec.volumes,
            origin: Origin::Restore {
                memory_image: &image,
            },
        };
        let mut mounts = Mounts::new(slot);
        let device_state = mounts.engine_path(&spec.device_state);
        let command = command(&launch, mounts);
        let mut started = start(self.slots.as_ref(), slot, command).await?;
        let memory = MappedMemory {
            image,
            bytes: spec.machine.memory.bytes(),
            top: spec.memory_layers.last().cloned(),
        };
        if let Err(error) = check_memory(&started.watched, memory).await {
            end(&mut started.watched).await;
            return Err(error.into());
        }
        let spare_disks = spec.machine.spare_disks;
        let paced = self.disk_pace.impose(&mut started.monitor, spare_disks);
        let prepared = match paced.await {
            Ok(()) => {
                let monitor = &mut started.monitor;
                monitor.prepare_migration(ENGINE_COMMAND_DEADLINE).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = prepared {
            end(&mut started.watched).await;
            return Err(error.into());
        }
        Ok(Box::new(ParkedQemu::new(
            slot.clone(),
            started,
            device_state,
        )))
    }

    async fn adopt(&self, slot: &Slot, process: EngineProcess) -> Result<Box<dyn Vm>, AdoptError> {
        let watched = Watched::open(process).map_err(|error| match error {
            ProcessError::Gone { .. } | ProcessError::Recycled { .. } => AdoptError::Gone,
            ProcessError::Open { .. }
            | ProcessError::Unreadable { .. }
            | ProcessError::Signal { .. }
            | ProcessError::Wait { .. } => AdoptError::Refused(error.into()),
        })?;
        let socket = slot.run_directory.join(file_names::MONITOR_SOCKET);
        let mut monitor = Monitor::open(&socket, ENGINE_COMMAND_DEADLINE).await?;
        let status = monitor.status(ENGINE_COMMAND_DEADLINE).await?;
        let monitor = match status.as_str() {
            // A write that waits for room waits for whoever takes the machine over, and a guest that
            // will not run again for whoever reads its console.
            "running" | STOPPED_BY_ERROR | SHUT_DOWN | CANNOT_RUN => None,
            "paused" => Some(monitor),
            // Never restored, or broken: there is no machine to take over.
            _ => {
                let wanted = "running or paused";
                return Err(MonitorError::WrongStatus { status, wanted }.into());
            }
        };
        Ok(Box::new(QemuVm::new(slot.clone(), watched, monitor)))
    }
}

async fn check_running(monitor: &mut Monitor) -> Result<(), MonitorError> {
    let status = monitor.status(ENGINE_COMMAND_DEADLINE).await?;
    if status == "running" {
        return Ok(());
    }
    Err(MonitorError::WrongStatus {
        status,
        wanted: "running",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bare::BareSlots;

    #[test]
    fn a_build_that_was_retired_or_removed_is_not_offered() {
        let directory = tempfile::tempdir().unwrap();
        let slots = Arc::new(BareSlots::new(directory.path()).unwrap());
        let version = EngineVersion {
            major: 10,
            minor: 0,
            micro: 2,
        };
        let config = |name: &str| QemuConfig {
            root: directory.path().join(name),
            build: Some(EngineBuild::new(name)),
            ..QemuConfig::installed(version, Accelerator::Tcg)
        };
        let kept = |name: &str| KeptQemu {
            config: config(name),
            retired: directory.path().join(name).with_extension("retired"),
        };
        for name in ["a", "b"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        let engine = QemuEngine::new(config("installed"), slots);
        let engine = engine.with_kept(vec![kept("a"), kept("b")]);
        let offered = |engine: &QemuEngine| {
            let builds = engine.kept().into_iter().filter_map(|one| one.build);
            builds.map(|build| build.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(offered(&engine), ["a", "b"]);
        let mark = directory.path().join("a.retired");
        std::fs::write(&mark, "").unwrap();
        assert_eq!(offered(&engine), ["b"]);
        // The collector removes the root, and the mark with it.
        std::fs::remove_dir(directory.path().join("a")).unwrap();
        std::fs::remove_file(&mark).unwrap();
        assert_eq!(offered(&engine), ["b"]);
        let gone = engine.config_of(Some(&EngineBuild::new("a")));
        assert!(matches!(gone, Err(ParkError::NoBuild { .. })));
        assert!(engine.config_of(Some(&EngineBuild::new("b"))).is_ok());
        assert!(engine.config_of(None).is_ok());
    }
}
