//! What a machine is made of, and what a capture leaves behind.

use std::path::PathBuf;

use dayfly_types::{DiskMib, MemoryMib, Vcpus};
use serde::{Deserialize, Serialize};

/// Names of files and sockets in a slot's run directory. The same for every driver.
pub mod file_names {
    /// Agent control channel: a unix socket that the engine listens on.
    pub const CONTROL_SOCKET: &str = "control.sock";
    /// Agent bulk channel.
    pub const BULK_SOCKET: &str = "bulk.sock";
    /// The engine's own monitor.
    pub const MONITOR_SOCKET: &str = "monitor.sock";
    /// The writable disk of this vm.
    pub const WRITABLE_DISK: &str = "disk.img";
    /// Guest memory of a machine that was booted, shared with the file, for the capture.
    pub const MEMORY_IMAGE: &str = "memory.img";
    /// Where a capture writes its device state.
    pub const DEVICE_STATE: &str = "device.state";
    /// Engine messages and guest kernel messages.
    pub const CONSOLE_LOG: &str = "console.log";
}

/// The shape of a machine. A snapshot loads only into an equal one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSpec {
    pub memory: MemoryMib,
    pub vcpus: Vcpus,
    /// Size of the writable disk.
    pub disk: DiskMib,
    /// Empty disks baked in, so that volumes need no new device later.
    pub spare_disks: u8,
}

/// The disks of a machine, on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFiles {
    /// Shared, never written.
    pub base: PathBuf,
    /// Sealed layers under the writable disk, lowest first. The lowest is a raw image, which every
    /// engine reads; those above it are what the driver made of earlier writable disks.
    pub sealed: Vec<PathBuf>,
    /// An empty layer in the driver's format. Each vm's writable disk starts as a copy of it.
    pub empty_layer: PathBuf,
}

/// A machine to start from nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootSpec {
    pub machine: MachineSpec,
    pub kernel: PathBuf,
    pub initial_ram_disk: PathBuf,
    pub disks: DiskFiles,
}

/// A machine to restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreSpec {
    pub machine: MachineSpec,
    pub kernel: PathBuf,
    pub initial_ram_disk: PathBuf,
    pub disks: DiskFiles,
    /// Mapped privately; immutable for as long as any vm maps it.
    pub memory_image: PathBuf,
    pub device_state: PathBuf,
}

/// What [`crate::Vm::capture`] wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured {
    pub device_state_bytes: u64,
}
