//! Numbers of a request that become sizes.

use dayfly_types::{CpuMillis, DiskMib, MemoryMib, Vcpus, limits};

use super::Invalid;

const MILLIS: f64 = 1000.0;
const MIB_OF_GIB: f64 = 1024.0;
/// A little more than one MiB, so that it is a number that people write.
const DISK_GB_MIN: f64 = 0.001;
/// What the smallest volume has.
const VOLUME_GB_MIN: f64 = 0.015_625;

/// Processors, as people count them.
pub(crate) fn cpu_limit(processors: f64) -> Result<CpuMillis, Invalid> {
    let (min, max) = (
        float(limits::CPU_MILLIS_MIN) / MILLIS,
        float(limits::VCPUS_MAX),
    );
    check("cpu", processors, min, max)?;
    CpuMillis::new(whole((processors * MILLIS).round()))
        .map_err(|error| Invalid::field("cpu", format!("does not fit: {error}")))
}

/// Memory, of which nothing is rounded.
pub(crate) fn memory_mb(megabytes: u64) -> Result<MemoryMib, Invalid> {
    let allowed = limits::MEMORY_MIB_MIN..=limits::MEMORY_MIB_MAX;
    MemoryMib::new(megabytes).map_err(|_| between("memory_mb", allowed.start(), allowed.end()))
}

/// Virtual CPUs, whole ones.
pub(crate) fn vcpus(count: u64) -> Result<Vcpus, Invalid> {
    Vcpus::new(count).map_err(|_| between("cpu", 1, limits::VCPUS_MAX))
}

/// Gibibytes of disk, rounded up: nobody gets less than was asked for.
pub(crate) fn disk_gb(gigabytes: f64) -> Result<DiskMib, Invalid> {
    from_gigabytes("disk_gb", gigabytes, DISK_GB_MIN)
}

/// The size of a volume, which is given in exactly one of two units.
pub(crate) fn volume_size(
    megabytes: Option<u64>,
    gigabytes: Option<f64>,
) -> Result<DiskMib, Invalid> {
    match (megabytes, gigabytes) {
        (Some(megabytes), None) => {
            let allowed = limits::VOLUME_MIB_MIN..=limits::DISK_MIB_MAX;
            if !allowed.contains(&megabytes) {
                return Err(between("size_mb", allowed.start(), allowed.end()));
            }
            DiskMib::new(megabytes)
                .map_err(|error| Invalid::field("size_mb", format!("does not fit: {error}")))
        }
        (None, Some(gigabytes)) => from_gigabytes("size_gb", gigabytes, VOLUME_GB_MIN),
        (None, None) => Err(Invalid::field("size_mb", "or size_gb must be given")),
        (Some(_), Some(_)) => Err(Invalid::field("size_mb", "and size_gb exclude each other")),
    }
}

/// MiB as people read them.
#[must_use]
pub(crate) fn gigabytes(mebibytes: u64) -> f64 {
    float(mebibytes) / MIB_OF_GIB
}

/// Says which numbers a field takes.
pub(crate) fn between(
    field: &'static str,
    min: impl std::fmt::Display,
    max: impl std::fmt::Display,
) -> Invalid {
    Invalid::field(field, format!("must be between {min} and {max}"))
}

fn from_gigabytes(field: &'static str, gigabytes: f64, min: f64) -> Result<DiskMib, Invalid> {
    check(
        field,
        gigabytes,
        min,
        float(limits::DISK_MIB_MAX) / MIB_OF_GIB,
    )?;
    DiskMib::new(whole((gigabytes * MIB_OF_GIB).ceil()))
        .map_err(|error| Invalid::field(field, format!("does not fit: {error}")))
}

fn check(field: &'static str, given: f64, min: f64, max: f64) -> Result<(), Invalid> {
    if (min..=max).contains(&given) {
        return Ok(());
    }
    Err(between(field, min, max))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no limit and no disk is near 2^53"
)]
fn float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, positive and within the limits that `check` held"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_become_the_next_larger_size() {
        assert_eq!(u64::from(cpu_limit(0.1).unwrap()), 100);
        assert_eq!(u64::from(cpu_limit(1.5).unwrap()), 1500);
        assert_eq!(u64::from(disk_gb(0.001).unwrap()), 2);
        assert_eq!(u64::from(disk_gb(8.0).unwrap()), 8192);
        assert_eq!(u64::from(volume_size(None, Some(0.015_625)).unwrap()), 16);
        assert_eq!(u64::from(volume_size(Some(16), None).unwrap()), 16);
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        for processors in [0.0, 0.0999, 32.1, -1.0, f64::NAN] {
            assert!(cpu_limit(processors).is_err(), "{processors}");
        }
        for gigabytes in [0.0, 1024.1, f64::INFINITY] {
            assert!(disk_gb(gigabytes).is_err(), "{gigabytes}");
            assert!(volume_size(None, Some(gigabytes)).is_err(), "{gigabytes}");
        }
        assert!(volume_size(Some(15), None).is_err());
        assert!(volume_size(Some(limits::DISK_MIB_MAX + 1), None).is_err());
        assert!(volume_size(None, None).is_err());
        assert!(volume_size(Some(16), Some(1.0)).is_err());
    }
}
