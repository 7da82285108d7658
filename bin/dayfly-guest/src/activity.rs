//! Whether the guest is busy, as its own code sees it.
//!
//! Any process may write a number of seconds into the busy file; from then on, for that long, the
//! guest counts as busy. To take a longer lease it writes again, to end it it writes zero.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use dayfly_types::limits::BUSY_LEASE_SECONDS_MAX;
use rustix::fs::OFlags;

use crate::clock::wall_clock_ms;

/// A number of seconds is shorter; what is longer is none.
const TEXT_BYTES_MAX: u64 = 32;

/// Makes the file that everybody may write to.
pub(crate) fn prepare(path: &Path) -> io::Result<()> {
    fs::write(path, "")?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))
}

/// How much longer the lease in the file lasts. Without a file or a number in it: not at all.
pub(crate) fn busy_ms(path: &Path) -> u64 {
    read(path).map_or(0, |(text, written_ms)| {
        left_ms(&text, written_ms, wall_clock_ms())
    })
}

/// The file's text and when it was written.
fn read(path: &Path) -> io::Result<(String, i64)> {
    // Non-blocking and without links: root in the guest may have put anything in its place.
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let file = fs::File::options()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut text = String::new();
    file.take(TEXT_BYTES_MAX).read_to_string(&mut text)?;
    let written_ms = metadata
        .mtime()
        .saturating_mul(1000)
        .saturating_add(metadata.mtime_nsec() / 1_000_000);
    Ok((text, written_ms))
}

/// The clock of the file's time is the wall clock, which a wake may have moved either way: a time
/// in the future counts as now, so no lease is ever longer than its own number.
fn left_ms(text: &str, written_ms: i64, now_ms: i64) -> u64 {
    let Ok(seconds) = text.trim().parse::<u64>() else {
        return 0;
    };
    let lease_ms = seconds.min(BUSY_LEASE_SECONDS_MAX) * 1000;
    let age_ms = u64::try_from(now_ms.saturating_sub(written_ms)).unwrap_or(0);
    lease_ms.saturating_sub(age_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_counts_from_the_time_of_writing() {
        assert_eq!(left_ms("10", 5000, 5000), 10_000);
        assert_eq!(left_ms(" 10\n", 5000, 8500), 6500);
        assert_eq!(left_ms("10", 5000, 15_000), 0);
        assert_eq!(left_ms("10", 5000, i64::MAX), 0);
    }

    #[test]
    fn clock_that_jumped_back_makes_no_lease_longer_than_its_number() {
        assert_eq!(left_ms("10", 1_000_000, 5000), 10_000);
        assert_eq!(left_ms("10", i64::MAX, i64::MIN), 10_000);
    }

    #[test]
    fn longest_lease_has_a_limit_and_garbage_is_none() {
        assert_eq!(
            left_ms("99999999999999", 0, 0),
            BUSY_LEASE_SECONDS_MAX * 1000
        );
        for garbage in [
            "",
            "\n",
            "ten",
            "-5",
            "1.5",
            "1e3",
            "99999999999999999999999",
        ] {
            assert_eq!(left_ms(garbage, 0, 0), 0, "{garbage:?}");
        }
    }

    #[test]
    fn only_a_regular_file_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("busy");
        assert_eq!(busy_ms(&path), 0, "there is none");
        prepare(&path).unwrap();
        assert_eq!(busy_ms(&path), 0, "it is empty");
        fs::write(&path, "60\n").unwrap();
        assert!((50_000..=60_000).contains(&busy_ms(&path)));
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(busy_ms(&link), 0);
        assert_eq!(busy_ms(directory.path()), 0);
    }
}
