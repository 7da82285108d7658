//! How much one sandbox may do with its disks: what the operator says of it.

use std::num::NonZeroU64;

use dayfly_types::limits::{DISK_BYTES_PER_SECOND, DISK_OPERATIONS_PER_SECOND, DISK_PACE_MAX};
use dayfly_vmm_qemu::DiskPace;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
pub(crate) struct DiskPaceArguments {
    /// Bytes that one sandbox may read from its disks and write to them in a second, eight times as
    /// many in the first second after a pause. 0: no limit.
    #[arg(
        long,
        value_name = "BYTES",
        env = "DAYFLYD_DISK_RATE",
        default_value_t = DISK_BYTES_PER_SECOND,
        value_parser = clap::value_parser!(u64).range(..=DISK_PACE_MAX)
    )]
    disk_rate: u64,
    /// Reads and writes of one sandbox in a second, likewise. 0: no limit.
    #[arg(
        long,
        value_name = "N",
        env = "DAYFLYD_DISK_OPERATIONS",
        default_value_t = DISK_OPERATIONS_PER_SECOND,
        value_parser = clap::value_parser!(u64).range(..=DISK_PACE_MAX)
    )]
    disk_operations: u64,
}

impl DiskPaceArguments {
    pub(crate) fn pace(&self) -> DiskPace {
        DiskPace {
            bytes_per_second: NonZeroU64::new(self.disk_rate),
            operations_per_second: NonZeroU64::new(self.disk_operations),
        }
    }
}
