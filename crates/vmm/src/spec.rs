//! What a machine is made of, and what a capture leaves behind.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dayfly_types::{DiskMib, MemoryMib, Vcpus};
use serde::{Deserialize, Serialize};

use crate::capabilities::EngineBuild;

/// Names of files and sockets in a slot's run directory. The same for every driver.
pub mod file_names {
    /// Agent control channel: a unix socket that the engine listens on.
    pub const CONTROL_SOCKET: &str = "control.sock";
    /// Agent bulk channel.
    pub const BULK_SOCKET: &str = "bulk.sock";
    /// The engine's own monitor.
    pub const MONITOR_SOCKET: &str = "monitor.sock";
    /// A second one, on which it is only listened to.
    pub const EVENTS_SOCKET: &str = "events.sock";
    /// The writable disk of this vm.
    pub const WRITABLE_DISK: &str = "disk.img";
    /// Guest memory of a machine that was booted for its capture, shared with the file. Of another
    /// one that lies on no file of a template: as many zeros.
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
    /// Shared, never written. The last part, if it is cut into parts.
    pub base: PathBuf,
    /// All parts of the base, lowest first; none when it is one raw image.
    pub base_parts: Vec<BasePart>,
    /// Sealed layers under the writable disk, lowest first. The lowest is a raw image, which every
    /// engine reads; those above it are what the driver made of earlier writable disks.
    pub sealed: Vec<PathBuf>,
    /// An empty layer in the driver's format. Each vm's writable disk starts as a copy of it.
    pub empty_layer: PathBuf,
}

/// A file of a base disk that is cut into several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BasePart {
    /// Bytes, each at the place that it has on the disk.
    pub content: PathBuf,
    /// Which places are in this part, in the driver's format.
    pub map: PathBuf,
}

/// A machine to start from nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootSpec {
    pub machine: MachineSpec,
    pub kernel: PathBuf,
    pub initial_ram_disk: PathBuf,
    pub disks: DiskFiles,
    pub memory: BootMemory,
    /// The size of the writable disk, when it has grown beyond the machine's.
    pub disk: Option<DiskMib>,
    /// Files in the place of the empty spare disks.
    pub volumes: Vec<VolumeFile>,
}

impl BootSpec {
    /// A machine with the disks and volumes of one that could be restored, and with memory of its
    /// own.
    #[must_use]
    pub fn with_disks_of(spec: &RestoreSpec) -> Self {
        Self {
            machine: spec.machine.clone(),
            kernel: spec.kernel.clone(),
            initial_ram_disk: spec.initial_ram_disk.clone(),
            disks: spec.disks.clone(),
            memory: BootMemory::Private,
            disk: spec.disk,
            volumes: spec.volumes.clone(),
        }
    }
}

/// What becomes of the memory of a machine that is booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootMemory {
    /// It is written to [`file_names::MEMORY_IMAGE`], which others are restored from later. The
    /// console is kept beside it.
    Image,
    /// It stays the engine's, over [`MemoryImage::Zeros`], and is captured as that of a restored
    /// machine is. Whoever runs there may write to the console what he likes, so only the end of it is
    /// kept.
    Private,
}

/// A machine to restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreSpec {
    pub machine: MachineSpec,
    pub kernel: PathBuf,
    pub initial_ram_disk: PathBuf,
    pub disks: DiskFiles,
    /// Mapped privately.
    pub memory_image: MemoryImage,
    /// Mapped privately over the image, lowest first.
    pub memory_layers: Vec<MemoryLayer>,
    pub device_state: PathBuf,
    /// The size of the writable disk, when it has grown beyond the machine's.
    pub disk: Option<DiskMib>,
    /// One of [`crate::Engine::kept`]. None: the installed one.
    pub build: Option<EngineBuild>,
    /// Files in the place of the empty spare disks.
    pub volumes: Vec<VolumeFile>,
}

/// What lies below all layers of guest memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryImage {
    /// Immutable for as long as any vm maps it.
    File(PathBuf),
    /// Nothing: what the memory of a machine is before it boots.
    Zeros,
}

impl MemoryImage {
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Zeros => None,
        }
    }
}

/// Guest memory is counted in these.
pub const PAGE_BYTES: u64 = 4096;

/// Neighbouring pages of guest memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64)", into = "(u64, u64)")]
pub struct PageRange {
    pub first: u64,
    pub count: u64,
}

impl PageRange {
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.first * PAGE_BYTES
    }

    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.count * PAGE_BYTES
    }

    #[must_use]
    pub const fn end(self) -> u64 {
        self.first + self.count
    }
}

// A map has thousands of these; two numbers are enough for a reader.
impl From<(u64, u64)> for PageRange {
    fn from((first, count): (u64, u64)) -> Self {
        Self { first, count }
    }
}

impl From<PageRange> for (u64, u64) {
    fn from(range: PageRange) -> Self {
        (range.first, range.count)
    }
}

/// Pages that differ from what lies below. A page is at the same place in the file as in the
/// guest; what no extent names is a hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLayer {
    pub file: PathBuf,
    pub extents: Vec<PageRange>,
}

/// A disk that outlives the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeFile {
    /// Which spare disk it takes the place of.
    pub spare: u8,
    pub file: PathBuf,
    pub read_only: bool,
}

/// What becomes of a machine behind its capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    /// Its disk is sealed, and a new layer takes its writes.
    GoesOn,
    /// It is ended, and its disk is what it leaves. Until then it stays paused.
    Ends,
}

/// What to save of a paused machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureSpec {
    /// In the slot's run directory.
    pub device_state: PathBuf,
    /// `None` for one that was booted with [`BootMemory::Image`].
    pub memory: Option<MemoryCapture>,
    pub afterwards: Afterwards,
}

impl CaptureSpec {
    /// Device state alone, of a machine that ends.
    #[must_use]
    pub fn devices(device_state: impl Into<PathBuf>) -> Self {
        Self {
            device_state: device_state.into(),
            memory: None,
            afterwards: Afterwards::Ends,
        }
    }
}

/// Where changed memory goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryCapture {
    /// An empty file outside the slot, which no engine can write.
    pub layer: PathBuf,
    /// How much memory the machine has; anything else is refused.
    pub bytes: u64,
    /// How much may be written; more is refused before a byte is.
    pub bytes_max: u64,
    /// How a copy learns that it is one.
    pub patch: Option<PagePatch>,
}

/// A change made to the saved memory only: in each page that begins with `prefix`, the byte at
/// `offset` becomes `value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagePatch {
    pub prefix: Vec<u8>,
    pub offset: usize,
    pub value: u8,
}

/// What [`crate::Vm::capture`] wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    pub device_state_bytes: u64,
    /// The pages that are in the memory layer now.
    pub extents: Vec<PageRange>,
    /// How many pages the patch has changed.
    pub patched_pages: u64,
    /// Of the whole: writing device state, finding and copying memory.
    pub device_time: Duration,
    pub memory_time: Duration,
}
