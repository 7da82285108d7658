//! The engine as the port sees it: boot, park, adopt.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use dayfly_host::process::ProcessError;
use dayfly_types::limits::ENGINE_COMMAND_DEADLINE;
use dayfly_vmm::{
    Accelerator, AdoptError, BootError, BootMemory, BootSpec, Capabilities, Engine, EngineProcess,
    MemoryImage, ParkError, ParkedVm, RestoreSpec, Slot, SlotProvider, Vm, file_names,
};

use crate::capabilities::capabilities;
use crate::counter::counter_khz;
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
    slots: Arc<dyn SlotProvider>,
    capabilities: Capabilities,
    counter_khz: Option<u64>,
}

impl QemuEngine {
    #[must_use]
    pub fn new(config: QemuConfig, slots: Arc<dyn SlotProvider>) -> Self {
        let processor_table = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let capabilities = capabilities(&config, &processor_table);
        let counter_khz = counter_khz(&processor_table);
        Self {
            config,
            slots,
            capabilities,
            counter_khz,
        }
    }
}

#[async_trait]
impl Engine for QemuEngine {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
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
        if let Err(error) = check_running(&mut started.monitor).await {
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
        let (spec, layout) = Layout::of_restore(slot, spec);
        lay_out(&slot.run_directory, layout)
            .await
            .map_err(|error| ParkError::Layout(error.into()))?;
        let image = memory_image(slot, &spec.memory_image);
        let launch = Launch {
            config: &self.config,
            slot,
            machine: &spec.machine,
            disks: &spec.disks,
            volumes: &spec.volumes,
            origin: Origin::Restore {
                memory_image: &image,
                has_layers: !spec.memory_layers.is_empty(),
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
        if let Err(error) = started
            .monitor
            .prepare_migration(ENGINE_COMMAND_DEADLINE)
            .await
        {
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
