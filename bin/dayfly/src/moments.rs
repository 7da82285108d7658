//! Moments on the command line: `10m` ago, `2026-01-31`, `2026-01-31T12:00:00Z`.

use time::format_description::well_known::{Iso8601, Rfc3339};
use time::{Date, OffsetDateTime, Time};

use crate::durations;

/// Why a text is not a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give how long ago, such as 10m or 2h, a date such as 2026-01-31, or 2026-01-31T12:00:00Z")]
pub(crate) struct InvalidMoment;

pub(crate) fn parse(text: &str) -> Result<OffsetDateTime, InvalidMoment> {
    parse_at(text, OffsetDateTime::now_utc())
}

/// A date alone is its beginning, in UTC, as all times of the server are.
fn parse_at(text: &str, now: OffsetDateTime) -> Result<OffsetDateTime, InvalidMoment> {
    if let Some(moment) = of_server(text) {
        return Ok(moment);
    }
    if let Ok(date) = Date::parse(text, &Iso8601::DATE) {
        return Ok(date.with_time(Time::MIDNIGHT).assume_utc());
    }
    let ago = durations::parse(text).map_err(|_| InvalidMoment)?;
    now.checked_sub(ago.try_into().map_err(|_| InvalidMoment)?)
        .ok_or(InvalidMoment)
}

/// A moment as the server writes it.
pub(crate) fn of_server(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

/// A moment as the server reads it.
pub(crate) fn rfc3339(moment: &OffsetDateTime) -> String {
    // One that has no such form is refused by the server, aloud.
    moment.format(&Rfc3339).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_date_a_time_or_a_while_ago() {
        let now = OffsetDateTime::parse("2026-01-31T12:00:00Z", &Rfc3339).unwrap();
        for (text, moment) in [
            ("90", "2026-01-31T11:58:30Z"),
            ("2h", "2026-01-31T10:00:00Z"),
            ("1d", "2026-01-30T12:00:00Z"),
            ("2026-01-30", "2026-01-30T00:00:00Z"),
            ("2026-01-30T05:00:00+02:00", "2026-01-30T03:00:00Z"),
        ] {
            let expected = OffsetDateTime::parse(moment, &Rfc3339).unwrap();
            assert_eq!(parse_at(text, now), Ok(expected), "{text}");
        }
        for text in ["", "yesterday", "-1h", "2026-13-01", "2026-01-30 05:00"] {
            assert_eq!(parse_at(text, now), Err(InvalidMoment), "{text:?}");
        }
    }
}
