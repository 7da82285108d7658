//! Captures: a sandbox's memory, devices and disk at one moment.

use serde::{Deserialize, Serialize};

use crate::SnapshotId;

/// What a machine was started from, and so what its memory and its disk lie on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MachineOrigin {
    /// Restored from its template.
    #[default]
    Template,
    /// Restored from a capture, with the memory of that one.
    Capture(SnapshotId),
    /// Booted on the disk of a capture. Its memory lies on nothing.
    DiskOf(SnapshotId),
}

impl MachineOrigin {
    /// The capture that its disk lies on.
    #[must_use]
    pub const fn capture(&self) -> Option<&SnapshotId> {
        match self {
            Self::Template => None,
            Self::Capture(id) | Self::DiskOf(id) => Some(id),
        }
    }

    /// The capture whose memory it has.
    #[must_use]
    pub const fn restored_from(&self) -> Option<&SnapshotId> {
        match self {
            Self::Capture(id) => Some(id),
            Self::Template | Self::DiskOf(_) => None,
        }
    }
}

/// What one capture cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CaptureCost {
    /// Engine stopped to engine running.
    pub pause_us: u64,
    /// User processes frozen to thawed.
    pub frozen_us: u64,
    /// Of the pause: stopping the engine and writing its device state.
    pub device_us: u64,
    /// Of the pause: finding and copying changed memory.
    pub memory_us: u64,
    /// Of the pause: sealing the disk.
    pub disk_us: u64,
    /// From the call to files that are complete; in the answer to the call itself, to files that
    /// are durable.
    pub total_us: u64,
    pub memory_bytes: u64,
    /// Bytes of the sealed disk layer.
    pub disk_bytes: u64,
}
