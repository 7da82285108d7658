//! `dayfly project usage --by-hour`.

use std::time::Duration;

use dayfly_api::UsageHour;
use dayfly_client::UsageSpan;
use time::OffsetDateTime;

use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::table::Table;
use crate::tenancy::args::WhoseArgs;
use crate::{exit_status, moments};

/// How far it goes back unless something else is said.
const SPAN_DEFAULT: Duration = Duration::from_secs(24 * 3600);

pub(crate) async fn show(
    session: &Session<'_>,
    whose: &WhoseArgs,
    since: Option<OffsetDateTime>,
    until: Option<OffsetDateTime>,
) -> Result<u8, CommandError> {
    let since = since.unwrap_or_else(|| OffsetDateTime::now_utc() - SPAN_DEFAULT);
    let span = UsageSpan {
        since: Some(moments::rfc3339(&since)),
        until: until.as_ref().map(moments::rfc3339),
        projects: whose.choice(),
    };
    let read = session.client.usage_hours(&span).await;
    let hours = read.map_err(|source| CommandError::call("cannot read the usage", source))?;
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&hours)?;
        return Ok(exit_status::OK);
    }
    printer.table(&table(&hours))?;
    if hours.is_empty() {
        printer.note("nothing was used in that time");
    }
    Ok(exit_status::OK)
}

fn table(hours: &[UsageHour]) -> Table {
    let mut table = Table::new(&[
        "HOUR",
        "STARTED",
        "SANDBOX S",
        "VCPU S",
        "MEMORY MB S",
        "CPU S",
        "IN BYTES",
        "OUT BYTES",
    ]);
    for hour in hours {
        let seconds = |seconds: f64| format!("{seconds:.1}");
        table.push(vec![
            hour.hour.clone(),
            hour.sandboxes_started.to_string(),
            seconds(hour.sandbox_seconds),
            seconds(hour.vcpu_seconds),
            seconds(hour.memory_mb_seconds),
            seconds(hour.cpu_seconds),
            hour.network_in_bytes.to_string(),
            hour.network_out_bytes.to_string(),
        ]);
    }
    if hours.iter().any(|hour| hour.project.is_some()) {
        table.lead_with_projects(hours.iter().map(|hour| &hour.project));
    }
    table
}
