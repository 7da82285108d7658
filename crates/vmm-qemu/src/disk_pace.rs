//! How much one machine may do with its disks in a second, all of them together.
//!
//! The engine holds back what is too much, behind the guest's device: neither the graph of layers,
//! which captures change, nor the saved state of a device knows of it. So it is said to every
//! engine that is started, which keeps to it for as long as it runs.

use std::num::NonZeroU64;

use dayfly_types::limits::ENGINE_COMMAND_DEADLINE;
use serde_json::{Value, json};

use crate::error::MonitorError;
use crate::launch::{disk_id, disk_nodes};
use crate::qmp::Monitor;

/// What all disks of one machine share.
const GROUP: &str = "disks";
/// What comes in a burst after a pause goes through so much faster, for a second: programs that are
/// loaded and caches that are filled need not wait.
const BURST_TIMES: u64 = 8;

/// The rates of one machine. The default has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskPace {
    /// Read and written.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Reads and writes.
    pub operations_per_second: Option<NonZeroU64>,
}

impl DiskPace {
    const fn is_unlimited(self) -> bool {
        self.bytes_per_second.is_none() && self.operations_per_second.is_none()
    }

    /// The arguments for one disk. Zero is the engine's word for no limit.
    fn arguments(self, node: &str) -> Value {
        let rate = |rate: Option<NonZeroU64>| rate.map_or(0, NonZeroU64::get);
        let (bytes, operations) = (
            rate(self.bytes_per_second),
            rate(self.operations_per_second),
        );
        json!({
            "id": disk_id(node), "group": GROUP,
            "bps": bytes, "bps_rd": 0, "bps_wr": 0,
            "bps_max": bytes.saturating_mul(BURST_TIMES), "bps_max_length": 1,
            "iops": operations, "iops_rd": 0, "iops_wr": 0,
            "iops_max": operations.saturating_mul(BURST_TIMES), "iops_max_length": 1,
        })
    }

    /// Holds an engine with so many spare disks to it.
    pub(crate) async fn impose(
        self,
        monitor: &mut Monitor,
        spare_disks: u8,
    ) -> Result<(), MonitorError> {
        // Nobody has held a new engine to anything.
        if self.is_unlimited() {
            return Ok(());
        }
        for node in disk_nodes(spare_disks) {
            let arguments = self.arguments(&node);
            monitor
                .execute("block_set_io_throttle", arguments, ENGINE_COMMAND_DEADLINE)
                .await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_disks_of_a_machine_share_one_rate() {
        let pace = DiskPace {
            bytes_per_second: NonZeroU64::new(1_000_000),
            operations_per_second: None,
        };
        let ids = ["base", "writable", "spare0", "spare1"];
        let said: Vec<Value> = disk_nodes(2).map(|node| pace.arguments(&node)).collect();
        for (said, node) in said.iter().zip(ids) {
            assert_eq!(said["id"], format!("disk-{node}"));
            assert_eq!(said["group"], GROUP);
            assert_eq!(
                (&said["bps"], &said["iops"]),
                (&json!(1_000_000), &json!(0))
            );
        }
        assert_eq!(said.len(), ids.len());
    }
}
