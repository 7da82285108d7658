//! What a sandbox used over its life.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{SandboxMetrics, SandboxSample};

use crate::control::Control;
use crate::http::answer::SearchRefusals;
use crate::http::auth::Caller;
use crate::http::error::ApiError;
use crate::http::parameter::{Moment, Number, SandboxParameter, parameters, span_ms};
use crate::sandbox::read::locate;
use crate::store::SampleRow;
use crate::tenancy::whose::OtherProjectParameter;
use crate::time::rfc3339;

/// More than a sandbox can have.
const LIMIT_MAX: u64 = 2000;

parameters! {
    /// Which samples are wanted.
    Query MetricsParameter {
        /// Only samples of this time or later (RFC 3339).
        since: Option<Moment>,
        /// Only samples of this time or earlier (RFC 3339).
        until: Option<Moment>,
        /// At most this many; of more, the newest. Default 2000, which no sandbox reaches.
        limit: Option<Number<1, LIMIT_MAX>>,
    }
}

/// CPU time, memory, disk and network of a sandbox over its life, sampled every ten seconds while
/// it has a machine. The newest twenty minutes are whole; older samples are thinned out, so that a
/// life of any length fits. They are deleted with the sandbox. An operator may ask about another
/// project's.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/metrics", operation_id = "get_sandbox_metrics",
    tag = "sandboxes",
    params(SandboxParameter, MetricsParameter, OtherProjectParameter),
    responses((status = 200, body = SandboxMetrics), SearchRefusals))]
pub(crate) async fn read(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    wanted: MetricsParameter,
    whose: OtherProjectParameter,
) -> Result<Json<SandboxMetrics>, ApiError> {
    let project = whose.of(&control, &caller).await?;
    let span = span_ms(wanted.since, wanted.until)?;
    locate(&control, &project, &id).await?;
    let limit = i64::try_from(wanted.limit.unwrap_or(LIMIT_MAX)).unwrap_or(i64::MAX);
    let samples = control.store.samples(&project, &id, span, limit).await?;
    let items = samples.into_iter().map(present).collect();
    Ok(Json(SandboxMetrics { items }))
}

fn present(row: SampleRow) -> SandboxSample {
    SandboxSample {
        at: rfc3339(row.at_ms),
        cpu_us: row.cpu_us.unsigned_abs(),
        memory_bytes: row.memory_bytes.unsigned_abs(),
        disk_bytes: row.disk_bytes.unsigned_abs(),
        network_in_bytes: row.in_bytes.unsigned_abs(),
        network_out_bytes: row.out_bytes.unsigned_abs(),
    }
}
