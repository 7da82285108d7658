//! The QEMU driver of the engine port: `microvm` machines under KVM or software emulation.
//!
//! It must not know sandboxes, snapshots' manifests or the guest's protocol; it starts processes
//! only through [`dayfly_vmm::SlotProvider`], so it neither knows whether they are jailed.
//! Start reading at [`driver`]; `launch` has the command line and why each part of it stands.
#![forbid(unsafe_code)]

pub mod bare;
pub mod capabilities;
mod counter;
mod discarding;
pub mod disk_pace;
pub mod disks;
pub mod driver;
pub mod error;
mod events;
mod frames;
mod give_back;
pub mod installed;
mod launch;
mod layout;
mod memory;
mod network;
mod parked;
pub mod probe;
mod process;
mod qmp;
mod start;
pub mod version;
mod vm;

/// What reads the lines of an engine's monitor, and needs nothing else for it.
pub mod monitor_lines {
    pub use crate::qmp::{QmpEvent, QmpMessage, parse, plain_file_name};
}

pub use bare::BareSlots;
pub use disk_pace::DiskPace;
pub use disks::{EmptyLayerError, create_empty_layer};
pub use driver::{KeptQemu, QemuConfig, QemuEngine};
pub use error::MonitorError;
pub use installed::{ENGINE_PROGRAM, MEMORY_LIBRARY, installed_version};
pub use probe::{ProbeError, ProbeOutcome, ProbeSpec, probe_accelerator};
pub use version::{EngineVersion, VersionError, engine_label, engine_version};
