//! Where an engine runs and which process it is.

use serde::{Deserialize, Serialize};

/// Which slot of a node. Reused only after the former holder's resources are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SlotIndex(pub u32);

/// A process that cannot be confused with a later one of the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EngineProcess {
    pub pid: i32,
    /// Field 22 of `/proc/PID/stat`.
    pub start_time_ticks: u64,
}
