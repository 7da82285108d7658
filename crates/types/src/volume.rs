//! Volumes: disks that outlive the sandboxes that use them.

use serde::{Deserialize, Serialize};

use crate::VolumeName;

/// A volume in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountedVolume {
    pub name: VolumeName,
    /// Absolute, in the guest.
    pub path: String,
    #[serde(default)]
    pub read_only: bool,
}
