//! When a node that shares its memory must put somebody to sleep.
//!
//! Shared sandboxes are promised less than they may touch. What they touch beyond it comes out of
//! what the host has left, and before that is gone the node makes room while there still is some.

use dayfly_types::limits;

use crate::admission::{Capacity, Committed, memory_floor};

/// How much of the last ten seconds something on the host waited for memory, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryStall {
    /// At least one of those that had work.
    pub some_percent: u64,
    /// All of them.
    pub full_percent: u64,
}

/// What is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Pressure {
    /// Shared sandboxes have touched more than they were promised, and with that the sum is more
    /// than there is to promise.
    #[error("{over_mib} MiB more memory is promised and used than there is for sandboxes")]
    Promises { over_mib: u64 },
    /// The host has less to give than its floor and what it owes.
    #[error("the host has {available_mib} MiB of memory left and needs {needed_mib} MiB")]
    Memory { available_mib: u64, needed_mib: u64 },
    /// What runs waits for memory, and there is little of it.
    #[error("{percent} % of the time something waits for memory")]
    Stall { percent: u64 },
}

/// What is short now, if anything is.
///
/// A stall alone does not count while there is memory: a guest at the limit of its own control
/// group stalls as well, and nobody else must sleep for that.
#[must_use]
pub fn judge(
    capacity: Capacity,
    committed: Committed,
    stall: Option<MemoryStall>,
) -> Option<Pressure> {
    let available_mib = capacity.memory_available_mib?;
    let promisable = capacity
        .memory_total_mib
        .saturating_sub(capacity.memory_reserve_mib);
    if committed.memory_mib > promisable {
        return Some(Pressure::Promises {
            over_mib: committed.memory_mib - promisable,
        });
    }
    let needed_mib = memory_floor(capacity) + committed.memory_owed_mib;
    if available_mib < needed_mib {
        return Some(Pressure::Memory {
            available_mib,
            needed_mib,
        });
    }
    let stall = stall.unwrap_or_default();
    let percent = stall.some_percent.max(stall.full_percent);
    let is_little = available_mib < capacity.memory_reserve_mib + committed.memory_owed_mib;
    (percent >= limits::PRESSURE_STALL_PERCENT && is_little).then_some(Pressure::Stall { percent })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Capacity = Capacity {
        memory_total_mib: 10_000,
        memory_reserve_mib: 1000,
        memory_available_mib: Some(5000),
        disk_available_mib: 0,
        disk_reserve_mib: 0,
    };

    fn with(available: u64) -> Capacity {
        Capacity {
            memory_available_mib: Some(available),
            ..HOST
        }
    }

    fn promised(memory_mib: u64, memory_owed_mib: u64) -> Committed {
        Committed {
            memory_mib,
            memory_owed_mib,
            ..Committed::default()
        }
    }

    #[test]
    fn growth_beyond_the_promises_and_a_host_that_has_little_left_are_pressure() {
        assert_eq!(judge(HOST, promised(9000, 4000), None), None);
        let over = Pressure::Promises { over_mib: 1 };
        assert_eq!(judge(HOST, promised(9001, 0), None), Some(over));
        let short = Pressure::Memory {
            available_mib: 4499,
            needed_mib: 4500,
        };
        assert_eq!(judge(with(4499), promised(9000, 4000), None), Some(short));
    }

    #[test]
    fn a_stall_is_pressure_only_where_memory_is_nearly_used() {
        let stall = Some(MemoryStall {
            some_percent: 80,
            full_percent: 40,
        });
        assert_eq!(judge(HOST, promised(100, 0), stall), None);
        let nearly = with(900);
        let expected = Some(Pressure::Stall { percent: 80 });
        assert_eq!(judge(nearly, promised(100, 0), stall), expected);
        assert_eq!(judge(nearly, promised(100, 0), None), None);
    }

    #[test]
    fn a_node_that_does_not_share_is_never_under_pressure() {
        let host = Capacity {
            memory_available_mib: None,
            ..HOST
        };
        assert_eq!(judge(host, promised(90_000, 0), None), None);
    }
}
