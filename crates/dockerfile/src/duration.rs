//! Durations as Go writes them: `1m30s`, `1.5h`, `500ms`.

use std::time::Duration;

use crate::error::LineProblem;

/// Docker takes no shorter one.
const SHORTEST: Duration = Duration::from_millis(1);
const INSTEAD: &str = "write a duration of a millisecond or more, as in 30s or 1m30s";

/// The duration; none if it is 0, which means that nothing is said.
pub(crate) fn read(flag: &'static str, text: &str) -> Result<Option<Duration>, LineProblem> {
    let wrong = || LineProblem::value(flag, text, INSTEAD);
    if text == "0" {
        return Ok(None);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut nanoseconds: u64 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (part, after) = part(rest).ok_or_else(wrong)?;
        nanoseconds = nanoseconds.checked_add(part).ok_or_else(wrong)?;
        rest = after;
    }
    match Duration::from_nanos(nanoseconds) {
        Duration::ZERO => Ok(None),
        short if short < SHORTEST => Err(wrong()),
        duration => Ok(Some(duration)),
    }
}

/// One number with its unit, in nanoseconds, and what follows it.
fn part(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|one: char| !one.is_ascii_digit() && one != '.')?;
    let (number, rest) = text.split_at_checked(end)?;
    let end = rest.find(|one: char| one.is_ascii_digit() || one == '.');
    let (unit, after) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
    let unit: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: u128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    // More places than this are shorter than a nanosecond.
    let places: String = fraction.chars().take(15).collect();
    let scale = 10_u128.checked_pow(u32::try_from(places.len()).ok()?)?;
    let fraction: u128 = match places.as_str() {
        "" => 0,
        places => places.parse().ok()?,
    };
    let whole = whole.checked_mul(unit)?;
    let total = whole.checked_add(fraction.checked_mul(unit)? / scale)?;
    Some((u64::try_from(total).ok()?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let cases = [
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("1.5h", 5_400_000),
            ("500ms", 500),
            (".5s", 500),
            ("1.s", 1000),
            ("+2s", 2000),
            ("1000us", 1),
            ("1000µs", 1),
        ];
        for (text, milliseconds) in cases {
            let expected = Duration::from_millis(milliseconds);
            assert_eq!(read("--interval", text).unwrap(), Some(expected), "{text}");
        }
        for text in ["0", "0s", "0h0m"] {
            assert_eq!(read("--interval", text).unwrap(), None, "{text}");
        }
        let long = "9".repeat(60) + "h";
        for text in [
            "", "s", "5", "5x", "-5s", "5 s", "1us", ".s", "1..5s", "+", &long,
        ] {
            assert!(read("--interval", text).is_err(), "{text}");
        }
    }
}
