//! What a host has, and what its engines use of it.

use std::path::PathBuf;
use std::time::Duration;

use dayfly_core::pressure::MemoryStall;
use dayfly_host::memory_pressure::StallTrigger;
use dayfly_host::process;
use dayfly_types::limits;

/// Reads what the host has. Behind a trait so that a simulated node can have any size.
pub trait HostResources: Send + Sync + std::fmt::Debug + 'static {
    fn memory_total_mib(&self) -> u64;
    /// What it could give to processes now.
    fn memory_available_mib(&self) -> u64;
    /// How much it stalls on memory, where the kernel says that.
    fn memory_stall(&self) -> Option<MemoryStall> {
        None
    }
    fn processors(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
    /// Free space of the data directory.
    fn disk_available_mib(&self) -> u64;
    /// What an engine has used. `None`: it is gone.
    fn engine_load(&self, pid: i32) -> Option<EngineLoad> {
        Some(EngineLoad {
            cpu: process::cpu_time(pid).ok()?,
            memory_mib: process::own_memory_bytes(pid).ok()? >> 20,
        })
    }
    /// Wakes the node when the host stalls on memory, where the kernel does that.
    fn stall_trigger(&self) -> Option<StallTrigger> {
        None
    }
}

/// What one engine has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLoad {
    pub cpu: Duration,
    /// Memory that it alone has.
    pub memory_mib: u64,
}

/// The host itself.
#[derive(Debug)]
pub struct RealResources {
    pub data_directory: PathBuf,
}

impl HostResources for RealResources {
    fn memory_total_mib(&self) -> u64 {
        dayfly_host::memory::host_memory().map_or(0, |memory| memory.total_bytes >> 20)
    }

    fn memory_available_mib(&self) -> u64 {
        dayfly_host::memory::host_memory().map_or(0, |memory| memory.available_bytes >> 20)
    }

    fn memory_stall(&self) -> Option<MemoryStall> {
        let stall = dayfly_host::memory_pressure::host_stall()?;
        Some(MemoryStall {
            some_percent: stall.some,
            full_percent: stall.full,
        })
    }

    fn stall_trigger(&self) -> Option<StallTrigger> {
        let (stall, window) = (
            limits::PRESSURE_TRIGGER_STALL,
            limits::PRESSURE_TRIGGER_WINDOW,
        );
        match StallTrigger::of_host(stall, window) {
            Ok(trigger) => Some(trigger),
            Err(error) => {
                tracing::warn!(%error,
                    "the kernel does not say when memory stalls; the node looks every second");
                None
            }
        }
    }

    fn disk_available_mib(&self) -> u64 {
        dayfly_host::files::disk_space(&self.data_directory)
            .map_or(0, |space| space.available_bytes >> 20)
    }
}
