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

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
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

impl From<Vcpus> for CpuMillis {
    fn from(vcpus: Vcpus) -> Self {
        Self(u32::from(vcpus.get()) * 1000)
    }
}

/// How large a machine is that is captured whole. Neither can change while it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TemplateSize {
    pub memory: MemoryMib,
    pub vcpus: Vcpus,
}

impl std::fmt::Display for TemplateSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (memory, vcpus) = (self.memory.get(), self.vcpus.get());
        let plural = if vcpus == 1 { "" } else { "s" };
        write!(f, "{memory} MiB and {vcpus} CPU{plural}")
    }
}

/// Why a template is not available in a size. The text follows the name of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnfitSize {
    #[error("must be at least {least}, which the template has")]
    LessMemory { least: MemoryMib },
    #[error(
        "must be a multiple of {}, or {own} as the template has",
        limits::VARIANT_MEMORY_STEP_MIB
    )]
    UnevenMemory { own: MemoryMib },
    #[error("must be at least {least}, which the template has")]
    FewerProcessors { least: Vcpus },
}

impl TemplateSize {
    /// Says whether a template of this size can be baked in another.
    ///
    /// # Errors
    /// [`UnfitSize`].
    pub fn allows(self, other: Self) -> Result<(), UnfitSize> {
        if other.memory < self.memory {
            return Err(UnfitSize::LessMemory { least: self.memory });
        }
        let is_even = u64::from(other.memory).is_multiple_of(limits::VARIANT_MEMORY_STEP_MIB);
        if other.memory != self.memory && !is_even {
            return Err(UnfitSize::UnevenMemory { own: self.memory });
        }
        if other.vcpus < self.vcpus {
            return Err(UnfitSize::FewerProcessors { least: self.vcpus });
        }
        Ok(())
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn size(memory: u64, vcpus: u64) -> TemplateSize {
        TemplateSize {
            memory: MemoryMib::new(memory).unwrap(),
            vcpus: Vcpus::new(vcpus).unwrap(),
        }
    }

    #[test]
    fn a_template_is_available_in_no_less_than_it_says_and_in_even_steps() {
        let own = size(300, 2);
        for (memory, vcpus) in [(300, 2), (300, 3), (384, 2), (65_536, 32)] {
            assert_eq!(own.allows(size(memory, vcpus)), Ok(()), "{memory} {vcpus}");
        }
        let refused = |memory, vcpus| own.allows(size(memory, vcpus)).unwrap_err().to_string();
        assert!(refused(256, 2).contains("at least 300"));
        let uneven = refused(400, 2);
        assert!(uneven.contains("128") && uneven.contains("300"), "{uneven}");
        assert!(refused(300, 1).contains("at least 2"));
        assert_eq!(size(512, 1).to_string(), "512 MiB and 1 CPU");
    }
}
