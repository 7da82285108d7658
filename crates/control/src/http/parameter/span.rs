//! What lies between two moments.

use time::OffsetDateTime;

use crate::http::error::ApiError;

/// In a millisecond.
const NANOSECONDS: i128 = 1_000_000;

/// The first and the last millisecond that lie within two moments.
///
/// # Errors
/// [`ApiError`] when they are the wrong way round.
pub(crate) fn span_ms(
    since: Option<OffsetDateTime>,
    until: Option<OffsetDateTime>,
) -> Result<(i64, i64), ApiError> {
    if let (Some(since), Some(until)) = (since, until)
        && since > until
    {
        return Err(ApiError::invalid("`since` is after `until`"));
    }
    let first = since.map_or(i64::MIN, |since| {
        milliseconds(since.unix_timestamp_nanos() + NANOSECONDS - 1)
    });
    let last = until.map_or(i64::MAX, |until| milliseconds(until.unix_timestamp_nanos()));
    Ok((first, last))
}

/// The whole milliseconds of a time since 1970, or before.
fn milliseconds(nanoseconds: i128) -> i64 {
    i64::try_from(nanoseconds.div_euclid(NANOSECONDS)).unwrap_or(i64::MAX)
}
