//! `dayfly ttl`.

use dayfly_api::{ChangeLifecycle, Lifecycle};

use crate::dispatch::Session;
use crate::exit_status;
use crate::failure::CommandError;
use crate::sandbox::args::TtlArgs;
use crate::sandbox::prefixes;
use crate::table::Table;
use crate::tenancy::limit_changes::LimitChange;

pub(crate) async fn ttl(session: &Session<'_>, args: &TtlArgs) -> Result<u8, CommandError> {
    let id = prefixes::resolve(&session.client, &args.id).await?;
    let change = ChangeLifecycle {
        ttl_seconds: args.ttl.map(LimitChange::to_seconds),
        persistent: args.persistent,
        idle_seconds: args.idle.map(LimitChange::to_seconds),
        on_timeout: args.on_timeout.map(Into::into),
    };
    let lifecycle = if change == ChangeLifecycle::default() {
        session.client.lifecycle(&id).await.map_err(|source| {
            CommandError::call(format!("cannot read how long sandbox {id} lives"), source)
        })?
    } else {
        let changed = session.client.set_lifecycle(&id, &change).await;
        changed.map_err(|source| {
            CommandError::call(format!("cannot change how long sandbox {id} lives"), source)
        })?
    };
    if session.printer.is_json() {
        session.printer.json(&lifecycle)?;
    } else {
        session.printer.table(&table(&lifecycle))?;
    }
    Ok(exit_status::OK)
}

fn table(lifecycle: &Lifecycle) -> Table {
    let seconds = |value: Option<u64>| value.map(|seconds| format!("{seconds} s"));
    let none = || "none".to_owned();
    let mut table = Table::new(&["FIELD", "VALUE"]);
    let mut row = |field: &str, value: String| table.push(vec![field.to_owned(), value]);
    row("ttl", seconds(lifecycle.ttl_seconds).unwrap_or_else(none));
    row(
        "expires",
        lifecycle
            .expires_at
            .clone()
            .unwrap_or_else(|| "never".to_owned()),
    );
    row("idle", seconds(lifecycle.idle_seconds).unwrap_or_else(none));
    row("on timeout", lifecycle.on_timeout.as_str().to_owned());
    row(
        "persistent",
        if lifecycle.persistent { "yes" } else { "no" }.to_owned(),
    );
    row("idle for", format!("{} s", lifecycle.idle_for_seconds));
    table
}
