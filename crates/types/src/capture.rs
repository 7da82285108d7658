//! Captures: a sandbox's memory, devices and disk at one moment.

use serde::{Deserialize, Serialize};

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
