//! Moments as distances from now.

use time::OffsetDateTime;

use crate::moments;

/// How long ago `moment` was, such as `5m`; `-` when it cannot be told.
pub(crate) fn since(moment: &str, now: OffsetDateTime) -> String {
    match moments::of_server(moment) {
        Some(moment) => short((now - moment).whole_seconds()),
        None => "-".to_owned(),
    }
}

/// How long until `moment`; `-` when there is none.
pub(crate) fn until(moment: Option<&str>, now: OffsetDateTime) -> String {
    let moment = moment.and_then(moments::of_server);
    moment.map_or_else(
        || "-".to_owned(),
        |moment| short((moment - now).whole_seconds()),
    )
}

fn short(seconds: i64) -> String {
    let seconds = seconds.max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use time::format_description::well_known::Rfc3339;

    use super::*;

    #[test]
    fn distances_are_short_and_never_negative() {
        let now = OffsetDateTime::parse("2026-01-02T00:00:00Z", &Rfc3339).unwrap();
        assert_eq!(since("2026-01-01T23:59:30Z", now), "30s");
        assert_eq!(since("2026-01-01T23:00:00Z", now), "60m");
        assert_eq!(since("2025-12-01T00:00:00Z", now), "32d");
        assert_eq!(since("2026-01-03T00:00:00Z", now), "0s");
        assert_eq!(since("yesterday", now), "-");
        assert_eq!(until(Some("2026-01-02T03:00:00Z"), now), "3h");
        assert_eq!(until(None, now), "-");
    }
}
