//! Whether a node has room, decided on what it has promised and not on what is used just now.
//!
//! Guests may touch all the memory that they were promised, at any time. A node that counted only
//! pages in use would have to kill a running sandbox to keep its word to another. The same holds
//! for disks: what a sandbox or a volume has not written yet is still its own.
//!
//! A shared sandbox is promised a working set, and counts with what it has touched where that is
//! more. Since it may touch more at any time, a node that shares also looks at what its host really
//! has left; [`crate::pressure`] says when some of them must sleep.

use dayfly_types::{SandboxClass, limits};

/// What a node has and keeps back, in MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    pub memory_total_mib: u64,
    pub memory_reserve_mib: u64,
    /// What the host could give now, of a node that shares; another has promised no more than there
    /// is.
    pub memory_available_mib: Option<u64>,
    /// What the file system has left now, beyond what committed disks have already taken.
    pub disk_available_mib: u64,
    /// Kept for the journal, the database and whatever else the host writes.
    pub disk_reserve_mib: u64,
}

/// What is promised already, in MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Committed {
    pub memory_mib: u64,
    /// Of `memory_mib`, what nobody has touched yet, and so is still in what the host could give.
    pub memory_owed_mib: u64,
    pub disk_mib: u64,
    /// Of `disk_mib`, what is written already, and so missing from what the file system has left.
    pub disk_used_mib: u64,
    /// What captures, merges and new volumes that are under way may still write.
    pub disk_booked_mib: u64,
}

impl Committed {
    /// With a part more.
    pub fn add(&mut self, part: Self) {
        self.memory_mib += part.memory_mib;
        self.memory_owed_mib += part.memory_owed_mib;
        self.disk_mib += part.disk_mib;
        self.disk_used_mib += part.disk_used_mib;
        self.disk_booked_mib += part.disk_booked_mib;
    }

    /// Without a part that was added before.
    pub fn take_away(&mut self, part: Self) {
        self.memory_mib -= part.memory_mib;
        self.memory_owed_mib -= part.memory_owed_mib;
        self.disk_mib -= part.disk_mib;
        self.disk_used_mib -= part.disk_used_mib;
        self.disk_booked_mib -= part.disk_booked_mib;
    }
}

/// One sandbox's worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    pub memory_mib: u64,
    pub disk_mib: u64,
}

/// How many times over the sizes of shared sandboxes are promised. One is as often as they are
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharing {
    pub memory: u64,
    pub disk: u64,
}

impl Sharing {
    /// Every sandbox has what it is promised in full.
    pub const NONE: Self = Self { memory: 1, disk: 1 };

    /// Whether there are shared sandboxes here. Disks alone do not make any: what is not there
    /// cannot be had by putting somebody to sleep.
    #[must_use]
    pub const fn is_on(self) -> bool {
        self.memory > 1
    }
}

impl Demand {
    /// What a guest of this size is promised.
    #[must_use]
    pub fn of(class: SandboxClass, sharing: Sharing, memory_mib: u64, disk_mib: u64) -> Self {
        let full = Self::of_guest(memory_mib, disk_mib);
        if class.is_reserved() || !sharing.is_on() {
            return full;
        }
        let part =
            |whole: u64, ratio: u64, least: u64| (whole / ratio.max(1)).max(least).min(whole);
        Self {
            memory_mib: part(full.memory_mib, sharing.memory, limits::WORKING_SET_MIB_MIN),
            disk_mib: part(full.disk_mib, sharing.disk, limits::SHARED_DISK_MIB_MIN),
        }
    }

    /// A guest of this size with its engine.
    #[must_use]
    pub const fn of_guest(memory_mib: u64, disk_mib: u64) -> Self {
        Self {
            memory_mib: memory_mib + limits::ENGINE_OVERHEAD_MIB,
            disk_mib,
        }
    }
}

/// Which resource is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{wanted_mib} MiB of memory wanted, {left_mib} MiB left")]
    Memory { wanted_mib: u64, left_mib: u64 },
    #[error("{wanted_mib} MiB of disk wanted, {left_mib} MiB left")]
    Disk { wanted_mib: u64, left_mib: u64 },
}

/// Adds `demand` to what is committed, or says what is short.
///
/// # Errors
/// [`Refusal`] when the sum would reach into a reserve.
pub fn admit(
    capacity: Capacity,
    committed: Committed,
    demand: Demand,
) -> Result<Committed, Refusal> {
    let memory_left = memory_left(capacity, committed);
    if demand.memory_mib > memory_left {
        return Err(Refusal::Memory {
            wanted_mib: demand.memory_mib,
            left_mib: memory_left,
        });
    }
    let disk_left = disk_left(capacity, committed);
    if demand.disk_mib > disk_left {
        return Err(Refusal::Disk {
            wanted_mib: demand.disk_mib,
            left_mib: disk_left,
        });
    }
    Ok(Committed {
        memory_mib: committed.memory_mib + demand.memory_mib,
        memory_owed_mib: committed.memory_owed_mib + demand.memory_mib,
        disk_mib: committed.disk_mib + demand.disk_mib,
        ..committed
    })
}

/// What is neither kept back nor promised; where the host has less to give than that, what it has
/// beside its floor and what is owed.
#[must_use]
pub fn memory_left(capacity: Capacity, committed: Committed) -> u64 {
    let unpromised = capacity
        .memory_total_mib
        .saturating_sub(capacity.memory_reserve_mib)
        .saturating_sub(committed.memory_mib);
    let Some(available) = capacity.memory_available_mib else {
        return unpromised;
    };
    let real = available
        .saturating_sub(memory_floor(capacity))
        .saturating_sub(committed.memory_owed_mib);
    unpromised.min(real)
}

/// How much memory would have to come back before this much can be promised. More than what is
/// wanted where the host has less left than it owes already.
#[must_use]
pub fn memory_missing(capacity: Capacity, committed: Committed, wanted_mib: u64) -> u64 {
    let promised = capacity.memory_reserve_mib + committed.memory_mib + wanted_mib;
    let unpromised = promised.saturating_sub(capacity.memory_total_mib);
    let Some(available) = capacity.memory_available_mib else {
        return unpromised;
    };
    let needed = memory_floor(capacity) + committed.memory_owed_mib + wanted_mib;
    unpromised.max(needed.saturating_sub(available))
}

/// What a host that shares must always be able to give: half of what is kept for it, because the
/// host itself uses some of that.
#[must_use]
pub const fn memory_floor(capacity: Capacity) -> u64 {
    capacity.memory_reserve_mib / 2
}

/// What is neither kept back, nor promised and not yet written, nor booked.
#[must_use]
pub const fn disk_left(capacity: Capacity, committed: Committed) -> u64 {
    let promised = committed.disk_mib.saturating_sub(committed.disk_used_mib);
    capacity
        .disk_available_mib
        .saturating_sub(capacity.disk_reserve_mib)
        .saturating_sub(promised)
        .saturating_sub(committed.disk_booked_mib)
}

/// Books room for something that is about to be written, or says what is short.
///
/// # Errors
/// [`Refusal::Disk`] when it would reach into a reserve or into what others are promised.
pub const fn book(
    capacity: Capacity,
    committed: Committed,
    wanted_mib: u64,
) -> Result<Committed, Refusal> {
    let left_mib = disk_left(capacity, committed);
    if wanted_mib > left_mib {
        return Err(Refusal::Disk {
            wanted_mib,
            left_mib,
        });
    }
    Ok(Committed {
        disk_booked_mib: committed.disk_booked_mib + wanted_mib,
        ..committed
    })
}

/// Takes one sandbox's worth back.
#[must_use]
pub fn release(committed: Committed, demand: Demand) -> Committed {
    Committed {
        memory_mib: committed.memory_mib.saturating_sub(demand.memory_mib),
        memory_owed_mib: committed.memory_owed_mib.saturating_sub(demand.memory_mib),
        disk_mib: committed.disk_mib.saturating_sub(demand.disk_mib),
        ..committed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Sandboxes write what they were promised while captures come and go: whatever is let in,
        /// the reserve is never touched.
        #[test]
        fn what_is_written_never_reaches_the_reserve(
            disk in 0u64..50_000, reserve in 0u64..10_000,
            steps in proptest::collection::vec((0u8..4, 0u64..5000), 0..80),
        ) {
            let mut committed = Committed::default();
            let mut available = disk;
            let mut refused = 0;
            for (kind, mib) in steps {
                let capacity = Capacity {
                    memory_total_mib: 1 << 40, memory_reserve_mib: 0,
                    memory_available_mib: None,
                    disk_available_mib: available, disk_reserve_mib: reserve,
                };
                match kind {
                    0 => match admit(capacity, committed, Demand { memory_mib: 0, disk_mib: mib }) {
                        Ok(after) => committed = after,
                        Err(_) => refused += 1,
                    },
                    // A guest writes, at most what it was promised.
                    1 => {
                        let written = mib.min(committed.disk_mib - committed.disk_used_mib);
                        committed.disk_used_mib += written;
                        available -= written;
                    }
                    // A capture begins, writes all that it booked, and ends; then what its disk
                    // layer held is promised anew.
                    2 => match book(capacity, committed, mib) {
                        Ok(_) => available -= mib,
                        Err(_) => refused += 1,
                    },
                    _ => match book(capacity, committed, committed.disk_used_mib) {
                        Ok(_) => committed.disk_used_mib = 0,
                        Err(_) => refused += 1,
                    },
                }
                let unwritten = committed.disk_mib - committed.disk_used_mib;
                prop_assert!(available >= reserve.min(disk), "after {refused} refusals");
                prop_assert!(unwritten == 0 || available - unwritten >= reserve);
            }
        }

        #[test]
        fn never_more_than_the_node_has_outside_its_reserve(
            total in 0u64..100_000, reserve in 0u64..100_000, disk in 0u64..100_000,
            demands in proptest::collection::vec((0u64..5000, 0u64..5000), 0..60),
        ) {
            let capacity = Capacity {
                memory_total_mib: total, memory_reserve_mib: reserve,
                memory_available_mib: None,
                disk_available_mib: disk, disk_reserve_mib: reserve,
            };
            let mut committed = Committed::default();
            let mut admitted = Vec::new();
            for (memory, disk_wanted) in demands {
                let demand = Demand::of_guest(memory, disk_wanted);
                if let Ok(after) = admit(capacity, committed, demand) {
                    committed = after;
                    admitted.push(demand);
                }
                prop_assert!(committed.memory_mib <= total.saturating_sub(reserve));
                prop_assert!(committed.disk_mib <= disk.saturating_sub(reserve));
            }
            for demand in admitted {
                committed = release(committed, demand);
            }
            prop_assert_eq!(committed, Committed::default());
        }

        /// Whatever was touched and whatever the host does beside, nobody is let in at the cost of
        /// the floor or of what others were promised.
        #[test]
        fn who_shares_is_let_in_only_on_what_the_host_has(
            available in 0u64..100_000, reserve in 0u64..10_000, ratio in 1u64..=64,
            steps in proptest::collection::vec((any::<bool>(), 128u64..8192, 0u64..8192), 0..60),
        ) {
            let sharing = Sharing { memory: ratio, disk: 1 };
            let mut committed = Committed::default();
            let mut available = available;
            for (is_shared, memory, touched) in steps {
                let class = if is_shared { SandboxClass::Shared } else { SandboxClass::Reserved };
                let capacity = Capacity {
                    memory_total_mib: 1 << 40, memory_reserve_mib: reserve,
                    memory_available_mib: Some(available),
                    disk_available_mib: 1 << 40, disk_reserve_mib: 0,
                };
                let demand = Demand::of(class, sharing, memory, 0);
                let missing = memory_missing(capacity, committed, demand.memory_mib);
                prop_assert_eq!(missing == 0, demand.memory_mib <= memory_left(capacity, committed));
                prop_assert!(demand.memory_mib <= Demand::of_guest(memory, 0).memory_mib);
                prop_assert!(demand.memory_mib >= limits::WORKING_SET_MIB_MIN);
                if let Ok(after) = admit(capacity, committed, demand) {
                    committed = after;
                    prop_assert!(committed.memory_owed_mib + memory_floor(capacity) <= available);
                }
                // Somebody touches what it was promised.
                let touched = touched.min(committed.memory_owed_mib);
                committed.memory_owed_mib -= touched;
                available -= touched;
            }
        }
    }

    #[test]
    fn a_shared_sandbox_is_promised_a_part_and_never_less_than_it_needs() {
        let sharing = Sharing {
            memory: 8,
            disk: 16,
        };
        let of = |class, memory, disk| Demand::of(class, sharing, memory, disk);
        let full = Demand::of_guest(512, 4096);
        assert_eq!(of(SandboxClass::Reserved, 512, 4096), full);
        let part = of(SandboxClass::Shared, 512, 4096);
        assert_eq!((part.memory_mib, part.disk_mib), (96, 256));
        let small = Demand::of(
            SandboxClass::Shared,
            Sharing {
                memory: 64,
                disk: 64,
            },
            128,
            32,
        );
        assert_eq!(
            (small.memory_mib, small.disk_mib),
            (limits::WORKING_SET_MIB_MIN, 32)
        );
        // A host that does not share any more keeps nobody to less.
        assert_eq!(
            Demand::of(SandboxClass::Shared, Sharing::NONE, 512, 4096),
            full
        );
    }
}
