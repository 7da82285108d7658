//! How numbers and nulls of a request are read.

use serde::{Deserialize, Deserializer};

/// Takes `3600` and `3600.0` alike: JSON has one kind of number, and some clients print the latter.
pub(crate) fn whole_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    Option::<serde_json::Number>::deserialize(deserializer)?
        .map(|number| whole(&number))
        .transpose()
}

/// As [`whole_number`], where there must be one.
pub(crate) fn required_whole_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<u64, D::Error> {
    whole(&serde_json::Number::deserialize(deserializer)?)
}

/// As [`whole_number`], but null is a value: absent, null and a number are three wishes.
pub(crate) fn whole_number_or_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<u64>>, D::Error> {
    whole_number(deserializer).map(Some)
}

const MILLIS: f64 = 1000.0;

/// Seconds of one request as the milliseconds of another, none of them lost.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what does not fit is refused as a limit afterwards"
)]
#[must_use]
pub fn whole_milliseconds(seconds: f64) -> u64 {
    (seconds * MILLIS).ceil() as u64
}

fn whole<E: serde::de::Error>(number: &serde_json::Number) -> Result<u64, E> {
    let whole = number.as_u64().or_else(|| {
        let text = number.to_string();
        text.strip_suffix(".0")
            .and_then(|digits| digits.parse().ok())
    });
    whole.ok_or_else(|| E::custom("expected a whole number"))
}
