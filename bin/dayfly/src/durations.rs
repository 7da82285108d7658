//! Times as people write them: `90`, `1.5`, `30s`, `5m`, `2h`, `1d`.

use std::time::Duration;

/// Why a text is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidDuration {
    #[error("give seconds, or a number with s, m, h or d, such as 30s or 2h")]
    NotATime,
    #[error("must be more than zero and at most a year")]
    OutOfRange,
}

const DURATION_MAX: Duration = Duration::from_secs(dayfly_types::limits::TTL_SECONDS_MAX);

pub(crate) fn parse(text: &str) -> Result<Duration, InvalidDuration> {
    let (number, factor) = match text.chars().last() {
        Some('s') => (&text[..text.len() - 1], 1.0),
        Some('m') => (&text[..text.len() - 1], 60.0),
        Some('h') => (&text[..text.len() - 1], 3600.0),
        Some('d') => (&text[..text.len() - 1], 86_400.0),
        _ => (text, 1.0),
    };
    let is_plain = number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = number.parse().map_err(|_| InvalidDuration::NotATime)?;
    if !is_plain {
        return Err(InvalidDuration::NotATime);
    }
    let duration =
        Duration::try_from_secs_f64(number * factor).map_err(|_| InvalidDuration::OutOfRange)?;
    if duration.is_zero() || duration > DURATION_MAX {
        return Err(InvalidDuration::OutOfRange);
    }
    Ok(duration)
}

/// Whole seconds, rounded up: nothing may end before its time.
pub(crate) fn seconds_up(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_times_in_many_ways() {
        for (text, seconds) in [
            ("90", 90.0),
            ("1.5", 1.5),
            ("30s", 30.0),
            ("5m", 300.0),
            ("2h", 7200.0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in [
            "", "s", "abc", "1x", "1 h", "inf", "NaN", "-1", "+1", "1e3", "é",
        ] {
            assert_eq!(parse(text), Err(InvalidDuration::NotATime), "{text:?}");
        }
        for text in ["0", "400d", "99999999999999999999999999"] {
            assert_eq!(parse(text), Err(InvalidDuration::OutOfRange), "{text:?}");
        }
    }

    #[test]
    fn fractions_are_rounded_up() {
        assert_eq!(seconds_up(Duration::from_millis(1)), 1);
        assert_eq!(seconds_up(Duration::from_secs(2)), 2);
    }
}
