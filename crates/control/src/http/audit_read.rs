//! The audit record, as it is read.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{AuditEntry as WireEntry, AuditList};
use serde_json::json;

use super::answer::SearchRefusals;
use super::audit::SUBJECT_BYTES_MAX;
use super::auth::Caller;
use super::error::ApiError;
use super::parameter::{AuditCursor, Moment, Number, Text, parameters, span_ms};
use crate::control::Control;
use crate::store::{AuditPage, AuditPlace, AuditRow};
use crate::tenancy::whose::{Whose, WhoseParameter};
use crate::time::rfc3339;

const LIMIT_MAX: u64 = 1000;
const LIMIT_DEFAULT: u64 = 100;

/// Where a page of the record begins: at a number of one project, or at a place among all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageBegin {
    Number(i64),
    Place(AuditPlace),
}

parameters! {
    /// Which part of the record is wanted.
    Query AuditParameter {
        /// Only what was about this sandbox, snapshot, volume or key.
        subject: Option<Text<0, SUBJECT_BYTES_MAX>>,
        /// Only what was done at this time or later (RFC 3339).
        since: Option<Moment>,
        /// Only what was done at this time or earlier (RFC 3339).
        until: Option<Moment>,
        /// `next_cursor` of the page before.
        cursor: Option<AuditCursor>,
        /// At most this many entries. Default 100.
        limit: Option<Number<1, LIMIT_MAX>>,
    }
}

/// Who did what in this project, newest first: every call that changed something, every command,
/// and what was refused for want of a right.
#[utoipa::path(get, path = "/v1/audit", operation_id = "read_audit", tag = "projects",
    params(AuditParameter, WhoseParameter),
    responses((status = 200, body = AuditList), SearchRefusals))]
pub(crate) async fn read(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    whose: WhoseParameter,
    wanted: AuditParameter,
) -> Result<Json<AuditList>, ApiError> {
    let whose = whose.of(&control, &caller).await?;
    // What its caller did before is in it.
    control.audit.flush().await;
    let limit = wanted.limit.unwrap_or(LIMIT_DEFAULT);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (since_ms, until_ms) = span_ms(wanted.since, wanted.until)?;
    let page = AuditPage {
        before: i64::MAX,
        subject: wanted.subject.as_deref().filter(|text| !text.is_empty()),
        since_ms,
        until_ms,
        limit,
    };
    let rows = rows(&control, &whose, wanted.cursor, page).await?;
    let is_full = i64::try_from(rows.len()).unwrap_or(i64::MAX) == limit;
    let last = rows.last().filter(|_| is_full);
    let next_cursor = last.map(|row| match whose {
        Whose::One(_) => row.seq.to_string(),
        Whose::Everybody => AuditPlace::of(row).to_string(),
    });
    let items = rows.into_iter().map(|row| present(row, &whose));
    Ok(Json(AuditList {
        items: items.collect(),
        next_cursor,
    }))
}

async fn rows(
    control: &Control,
    whose: &Whose,
    cursor: Option<PageBegin>,
    page: AuditPage<'_>,
) -> Result<Vec<AuditRow>, ApiError> {
    let store = &control.store;
    let read = match (whose, cursor) {
        (Whose::One(project), None) => store.audit(project, page).await,
        (Whose::One(project), Some(PageBegin::Number(before))) => {
            store.audit(project, AuditPage { before, ..page }).await
        }
        (Whose::Everybody, None) => store.all_audit(None, page).await,
        (Whose::Everybody, Some(PageBegin::Place(place))) => {
            store.all_audit(Some(&place), page).await
        }
        (Whose::One(_), Some(PageBegin::Place(_)))
        | (Whose::Everybody, Some(PageBegin::Number(_))) => {
            let text = "`cursor` is of another view: one project and all have their own";
            return Err(ApiError::invalid(text));
        }
    };
    Ok(read?)
}

pub(super) fn present(row: AuditRow, whose: &Whose) -> WireEntry {
    WireEntry {
        project: whose.named(&row.project_id),
        seq: row.seq.unsigned_abs(),
        at: rfc3339(row.at_ms),
        key_prefix: row.key_prefix,
        request_id: row.request_id,
        operation: row.operation,
        subject: row.subject,
        status: u16::try_from(row.status).unwrap_or(0),
        detail: serde_json::from_str(&row.detail).unwrap_or_else(|_| json!({})),
        client: row.client,
    }
}
