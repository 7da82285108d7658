//! What is carried elsewhere: the audit record, the events and the decisions about egress of all
//! projects, in order.

use std::cmp::Ordering;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{
    ExportPage, ExportedAudit, ExportedDecision, ExportedDecisions, ExportedEgress, SandboxEvent,
};
use dayfly_node_api::{EgressDecision, NodeCalls as _, NodeError, ReadNetworkLog};
use dayfly_types::limits::{
    EGRESS_DECISIONS_AT_ONCE_MAX, EGRESS_DECISIONS_DEADLINE, EGRESS_DECISIONS_GATHER,
};
use tokio::time::{Instant, sleep_until, timeout};

use super::answer::SearchRefusals;
use super::audit_read;
use super::auth::Caller;
use super::error::ApiError;
use super::parameter::{Number, SEQUENCE_MAX, WAIT_SECONDS_MAX, parameters};
use crate::control::Control;
use crate::network::read::present_record;
use crate::sandbox::events_http;
use crate::store::{NumberedAudit, StoreError};
use crate::tenancy::whose::Whose;

const LIMIT_MAX: u64 = 200;
const _: () = assert!(LIMIT_MAX == EGRESS_DECISIONS_AT_ONCE_MAX as u64);
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
        /// The number that the last page of decisions about egress came to, its `through`. Default 0:
        /// from the first that is kept.
        after_egress: Option<Number<0, SEQUENCE_MAX>>,
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
    after_egress: u64,
    limit: i64,
}

impl Wanted {
    fn decisions(&self, wait: Duration) -> ReadNetworkLog {
        ReadNetworkLog {
            after: self.after_egress,
            max: usize::try_from(self.limit).unwrap_or(usize::MAX),
            wait,
        }
    }
}

/// The audit record, the events and the decisions about egress of all projects behind what the caller
/// has, each in the order in which it was written. A page has at most some 768 KiB. Numbers of one
/// `series` have no holes: one that is missing was removed for its age or for want of room before it
/// was read, or a decision about egress was lost. Another `series` means that a backup was put back,
/// and that numbers begin anew; decisions about egress have one of their own, and are null while the
/// host does not respond.
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
        after_egress: given.after_egress.unwrap_or(0),
        limit: number(Some(given.limit.unwrap_or(LIMIT_DEFAULT))),
    };
    let _place = control.limits.watch(&caller.project)?;
    // What was done before is in it.
    control.audit.flush().await;
    let wait = Duration::from_secs(given.wait_seconds.unwrap_or(0));
    let end = Instant::now() + wait;
    let mut gathered_at: Option<Instant> = None;
    loop {
        let (audit, events) = (control.store.new_audit(), control.store.new_event());
        let (mut audit, mut events) = (pin!(audit.notified()), pin!(events.notified()));
        // Before the look, so that what is written in between is not missed.
        audit.as_mut().enable();
        events.as_mut().enable();
        let page = look(&control, wanted).await?;
        let now = Instant::now();
        let until = match Found::of(&page, wanted) {
            Found::Enough => return Ok(Json(page)),
            Found::FewDecisions => {
                *gathered_at.get_or_insert((now + EGRESS_DECISIONS_GATHER).min(end))
            }
            Found::Nothing => {
                gathered_at = None;
                end
            }
        };
        if now >= until {
            return Ok(Json(page));
        }
        // When it is over the look is repeated, with what came meanwhile.
        tokio::select! {
            () = audit => {}
            () = events => {}
            () = new_decision(&control, wanted, end), if gathered_at.is_none() => {}
            () = sleep_until(until) => {}
        }
    }
}

/// What a page has for whoever waits for one.
#[derive(Debug, Clone, Copy)]
enum Found {
    Nothing,
    /// Others may follow soon, and can go with them.
    FewDecisions,
    Enough,
}

impl Found {
    fn of(page: &ExportPage, wanted: Wanted) -> Self {
        if !page.audit.is_empty() || !page.events.is_empty() {
            return Self::Enough;
        }
        let Some(egress) = page.egress.told() else {
            return Self::Nothing;
        };
        let is_full = egress.decisions.len() as u64 >= wanted.limit.unsigned_abs();
        match egress.through.cmp(&wanted.after_egress) {
            Ordering::Equal => Self::Nothing,
            Ordering::Greater if !is_full => Self::FewDecisions,
            // A smaller number is of another series.
            Ordering::Greater | Ordering::Less => Self::Enough,
        }
    }
}

/// Ends when there is a decision that the caller has not, and never while the node does not say.
async fn new_decision(control: &Control, wanted: Wanted, end: Instant) {
    let wait = end.saturating_duration_since(Instant::now());
    let read = control.node.egress_decisions(wanted.decisions(wait)).await;
    if read.is_ok_and(|page| page.through != wanted.after_egress) {
        return;
    }
    std::future::pending::<()>().await;
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
    let egress = decisions(control, wanted).await;
    Ok(ExportPage {
        series: store.export_series().await?,
        audit: audit.collect(),
        events: events.collect::<Vec<SandboxEvent>>(),
        egress,
    })
}

/// What the node has; a node that is away holds up nothing else.
async fn decisions(control: &Control, wanted: Wanted) -> ExportedEgress {
    let read = control
        .node
        .egress_decisions(wanted.decisions(Duration::ZERO));
    let read = timeout(EGRESS_DECISIONS_DEADLINE, read).await;
    let read = read.unwrap_or_else(|_| Err(NodeError::unavailable("it takes too long")));
    match read {
        Ok(page) => ExportedEgress::Told(ExportedDecisions {
            series: page.series,
            decisions: page.decisions.iter().map(present_decision).collect(),
            through: page.through,
        }),
        Err(error) => {
            tracing::debug!(%error, "the node does not say what it decided about egress");
            ExportedEgress::Away
        }
    }
}

fn present_decision(decision: &EgressDecision) -> ExportedDecision {
    ExportedDecision {
        number: decision.number,
        project: decision.project.to_string(),
        sandbox_id: decision.sandbox.to_string(),
        record: present_record(&decision.record),
    }
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
