//! What is carried elsewhere: the audit record and the events of all projects, in order.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{ExportPage, ExportedAudit, SandboxEvent};
use futures::future::select;
use tokio::time::{Instant, timeout_at};

use super::answer::SearchRefusals;
use super::audit_read;
use super::auth::Caller;
use super::error::ApiError;
use super::parameter::{Number, SEQUENCE_MAX, WAIT_SECONDS_MAX, parameters};
use crate::control::Control;
use crate::sandbox::events_http;
use crate::store::{NumberedAudit, StoreError};
use crate::tenancy::whose::Whose;

const LIMIT_MAX: u64 = 200;
const LIMIT_DEFAULT: u64 = 100;
/// What the details of a page take together, unless the first entry is longer: receivers of
/// webhooks seldom take more than 1 MiB.
const DETAIL_BYTES_MAX: usize = 512 << 10;

parameters! {
    /// What has been carried already.
    Query ExportParameter {
        /// The `number` of the last entry of the audit record. Default 0: from the first that is kept.
        after_audit: Option<Number<0, SEQUENCE_MAX>>,
        /// The `cursor` of the last event. Default 0: from the first that is kept.
        after_event: Option<Number<0, SEQUENCE_MAX>>,
        /// At most this many of each. Default 100.
        limit: Option<Number<1, LIMIT_MAX>>,
        /// Wait this long for a first one when there is none yet. Default 0.
        wait_seconds: Option<Number<0, WAIT_SECONDS_MAX>>,
    }
}

/// Where a page begins, and how long it may be.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    after_audit: i64,
    after_event: i64,
    limit: i64,
}

/// The audit record and the events of all projects behind what the caller has, each in the order in
/// which it was written. A page has at most some 512 KiB. Numbers of one `series` have no holes: one
/// that is missing was removed for its age or for want of room before it was read. Another `series`
/// means that a backup was put back, and that numbers begin anew.
#[utoipa::path(get, path = "/v1/export", operation_id = "export", tag = "projects",
    params(ExportParameter),
    responses((status = 200, body = ExportPage), SearchRefusals))]
pub(crate) async fn read(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    given: ExportParameter,
) -> Result<Json<ExportPage>, ApiError> {
    let number = |given: Option<u64>| i64::try_from(given.unwrap_or(0)).unwrap_or(i64::MAX);
    let wanted = Wanted {
        after_audit: number(given.after_audit),
        after_event: number(given.after_event),
        limit: number(Some(given.limit.unwrap_or(LIMIT_DEFAULT))),
    };
    let _place = control.limits.watch(&caller.project)?;
    // What was done before is in it.
    control.audit.flush().await;
    let wait = Duration::from_secs(given.wait_seconds.unwrap_or(0));
    let end = Instant::now() + wait;
    loop {
        let (audit, events) = (control.store.new_audit(), control.store.new_event());
        let (mut audit, mut events) = (pin!(audit.notified()), pin!(events.notified()));
        // Before the look, so that what is written in between is not missed.
        audit.as_mut().enable();
        events.as_mut().enable();
        let page = look(&control, wanted).await?;
        let is_empty = page.audit.is_empty() && page.events.is_empty();
        if !is_empty || timeout_at(end, select(audit, events)).await.is_err() {
            return Ok(Json(page));
        }
    }
}

async fn look(control: &Control, wanted: Wanted) -> Result<ExportPage, StoreError> {
    let store = &control.store;
    let audit = store.audit_behind(wanted.after_audit, wanted.limit).await?;
    let events = store.all_events(wanted.after_event, wanted.limit).await?;
    let audit = within_bytes(audit).map(|entry| ExportedAudit {
        number: entry.number.unsigned_abs(),
        entry: audit_read::present(entry.row, &Whose::Everybody),
    });
    let events = events.into_iter();
    let events = events.map(|row| events_http::present(row, &Whose::Everybody));
    Ok(ExportPage {
        series: store.export_series().await?,
        audit: audit.collect(),
        events: events.collect::<Vec<SandboxEvent>>(),
    })
}

/// The first entries, as many as fit, and at least one.
fn within_bytes(entries: Vec<NumberedAudit>) -> impl Iterator<Item = NumberedAudit> {
    let mut bytes = 0;
    let fits = move |(at, entry): &(usize, NumberedAudit)| {
        bytes += entry.row.detail.len();
        *at == 0 || bytes <= DETAIL_BYTES_MAX
    };
    let entries = entries.into_iter().enumerate().take_while(fits);
    entries.map(|(_, entry)| entry)
}
