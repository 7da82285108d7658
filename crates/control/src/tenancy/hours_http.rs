//! What projects used, hour by hour.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{UsageHour, UsageHourList};
use dayfly_types::ProjectId;

use crate::control::Control;
use crate::http::answer::SearchRefusals;
use crate::http::auth::Caller;
use crate::http::error::ApiError;
use crate::http::parameter::{HourCursor, Moment, Number, parameters, span_ms};
use crate::store::{HourPlace, HourSpan, UsageHourRow};
use crate::tenancy::whose::{Whose, WhoseParameter};
use crate::time::rfc3339;

const LIMIT_MAX: u64 = 1000;

parameters! {
    /// Which hours are wanted.
    Query HoursParameter {
        /// Only hours that end after this time (RFC 3339).
        since: Option<Moment>,
        /// Only hours that begin before this time (RFC 3339).
        until: Option<Moment>,
        /// `next_cursor` of the page before.
        cursor: Option<HourCursor>,
        /// At most this many. Default 1000.
        limit: Option<Number<1, LIMIT_MAX>>,
    }
}

/// What this project used in each hour, for billing. An operator may ask about others. Hours are kept
/// for 90 days.
#[utoipa::path(get, path = "/v1/usage/hours", operation_id = "get_usage_by_hour", tag = "projects",
    params(HoursParameter, WhoseParameter),
    responses((status = 200, body = UsageHourList), SearchRefusals))]
pub(crate) async fn read(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    whose: WhoseParameter,
    wanted: HoursParameter,
) -> Result<Json<UsageHourList>, ApiError> {
    let whose = whose.of(&control, &caller).await?;
    let (since_ms, until_ms) = span_ms(wanted.since, wanted.until)?;
    let span = HourSpan {
        since_ms,
        until_ms,
        after: wanted.cursor,
        limit: i64::try_from(wanted.limit.unwrap_or(LIMIT_MAX)).unwrap_or(i64::MAX),
    };
    let rows = match &whose {
        Whose::One(project) => control.store.usage_hours(project, &span).await?,
        Whose::Everybody => control.store.all_usage_hours(&span).await?,
    };
    let is_full = i64::try_from(rows.len()).unwrap_or(i64::MAX) == span.limit;
    let last = rows.last().filter(|_| is_full);
    let next_cursor = last.and_then(place_of).map(|place| place.to_string());
    let items = rows.iter().map(|row| present(row, &whose)).collect();
    Ok(Json(UsageHourList { items, next_cursor }))
}

fn place_of(row: &UsageHourRow) -> Option<HourPlace> {
    Some(HourPlace {
        hour_ms: row.hour_ms,
        project: ProjectId::parse(&row.project_id).ok()?,
    })
}

fn present(row: &UsageHourRow, whose: &Whose) -> UsageHour {
    let amounts = row.amounts;
    UsageHour {
        hour: rfc3339(row.hour_ms),
        sandboxes_started: amounts.started.unsigned_abs(),
        sandbox_seconds: thousandths(amounts.running_ms),
        vcpu_seconds: thousandths(amounts.vcpu_ms),
        memory_mb_seconds: thousandths(amounts.memory_mb_ms),
        cpu_seconds: thousandths(amounts.cpu_us / 1000),
        network_in_bytes: amounts.in_bytes.unsigned_abs(),
        network_out_bytes: amounts.out_bytes.unsigned_abs(),
        project: whose.named(&row.project_id),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "an hour of a host has far fewer than 2^53 milliseconds of anything"
)]
fn thousandths(count: i64) -> f64 {
    count as f64 / 1000.0
}
