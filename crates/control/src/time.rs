//! Wall-clock time, for display and for rows. Deadlines never use it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::time::OffsetDateTime;
use ::time::format_description::well_known::Rfc3339;

/// Now, in Unix milliseconds.
#[must_use]
pub fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The Unix milliseconds that lie this many seconds after `now_ms`.
#[must_use]
pub fn deadline_ms(seconds: Option<u64>, now_ms: i64) -> Option<i64> {
    let milliseconds = i64::try_from(seconds?)
        .unwrap_or(i64::MAX)
        .saturating_mul(1000);
    Some(now_ms.saturating_add(milliseconds))
}

/// The whole milliseconds of a duration.
#[must_use]
pub fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Unix milliseconds as RFC 3339 in UTC.
#[must_use]
pub fn rfc3339(milliseconds: i64) -> String {
    let nanoseconds = i128::from(milliseconds) * 1_000_000;
    OffsetDateTime::from_unix_timestamp_nanos(nanoseconds)
        .ok()
        .and_then(|time| time.format(&Rfc3339).ok())
        .unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_printed_in_utc() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(rfc3339(i64::MAX), "1970-01-01T00:00:00Z");
    }
}
