//! How a host is shared by its sandboxes.

use anyhow::{Result, ensure};
use clap::{Args, value_parser};
use dayfly_node::Sharing;
use dayfly_types::limits::SHARE_MAX;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Args, Serialize, Deserialize)]
pub(crate) struct SharingArguments {
    /// How many times over the memory of shared sandboxes is promised, up to 64. With 1 there are no
    /// shared sandboxes: each has all of its memory to itself and never sleeps for others.
    #[arg(
        long,
        value_name = "TIMES",
        env = "DAYFLYD_MEMORY_SHARE",
        default_value_t = 1,
        value_parser = value_parser!(u64).range(1..=SHARE_MAX)
    )]
    memory_share: u64,
    /// The same of the disks of shared sandboxes. A write that finds the disk full waits for room.
    #[arg(
        long,
        value_name = "TIMES",
        env = "DAYFLYD_DISK_SHARE",
        default_value_t = 1,
        value_parser = value_parser!(u64).range(1..=SHARE_MAX)
    )]
    disk_share: u64,
}

impl From<SharingArguments> for Sharing {
    fn from(arguments: SharingArguments) -> Self {
        Self {
            memory: arguments.memory_share,
            disk: arguments.disk_share,
        }
    }
}

/// Refuses what would mean nothing.
pub(crate) fn check(arguments: SharingArguments) -> Result<()> {
    ensure!(
        arguments.disk_share == 1 || arguments.memory_share > 1,
        "disk_share: it is for shared sandboxes, and memory_share = 1 allows none; set memory_share \
         to 2 or more, or leave disk_share out"
    );
    Ok(())
}
