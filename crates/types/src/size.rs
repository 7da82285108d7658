//! Sizes with their unit in the type.

use serde::{Deserialize, Serialize};

use crate::limits;

/// Why a number is not a size that we run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be between {min} and {max}, not {given}")]
pub struct InvalidSize {
    pub what: &'static str,
    pub min: u64,
    pub max: u64,
    pub given: u64,
}

macro_rules! size {
    ($(#[$doc:meta])* $name:ident, $inner:ty, $what:literal, $min:expr, $max:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "u64", into = "u64")]
        pub struct $name($inner);

        impl $name {
            /// Checks a number that came from outside.
            ///
            /// # Errors
            /// [`InvalidSize`] when it is out of range.
            pub fn new(given: u64) -> Result<Self, InvalidSize> {
                let error = InvalidSize { what: $what, min: $min, max: $max, given };
                if !($min..=$max).contains(&given) {
                    return Err(error);
                }
                <$inner>::try_from(given).map(Self).map_err(|_| error)
            }

            #[must_use]
            pub fn get(self) -> $inner {
                self.0
            }
        }

        impl TryFrom<u64> for $name {
            type Error = InvalidSize;
            fn try_from(given: u64) -> Result<Self, InvalidSize> {
                Self::new(given)
            }
        }

        impl From<$name> for u64 {
            fn from(size: $name) -> u64 {
                u64::from(size.0)
            }
        }
    };
}

size!(
    /// Guest memory, in MiB.
    MemoryMib, u32, "memory in MiB", limits::MEMORY_MIB_MIN, limits::MEMORY_MIB_MAX
);
size!(
    /// A disk, in MiB.
    DiskMib, u32, "disk in MiB", limits::DISK_MIB_MIN, limits::DISK_MIB_MAX
);
size!(
    /// Virtual processors.
    Vcpus, u8, "vCPU count", 1, limits::VCPUS_MAX
);

size!(
    /// Processor time, in thousandths of one processor.
    CpuMillis, u32, "CPU in thousandths", limits::CPU_MILLIS_MIN, limits::VCPUS_MAX * 1000
);

impl MemoryMib {
    #[must_use]
    pub fn bytes(self) -> u64 {
        u64::from(self.0) << 20
    }
}

impl DiskMib {
    #[must_use]
    pub fn bytes(self) -> u64 {
        u64::from(self.0) << 20
    }
}
