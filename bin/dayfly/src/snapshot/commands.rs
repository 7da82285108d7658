//! `dayfly snapshot`.

use std::time::Duration;

use dayfly_api::{CreateSnapshot, Snapshot};
use time::OffsetDateTime;

use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::sandbox::args::SnapshotCommand;
use crate::sandbox::prefixes;
use crate::sandbox::removal;
use crate::sandbox::removal::Kind;
use crate::table::Table;
use crate::{ages, durations, exit_status, text};

pub(crate) async fn snapshot(
    session: &Session<'_>,
    command: &SnapshotCommand,
) -> Result<u8, CommandError> {
    match command {
        SnapshotCommand::Create { id, name, retain } => {
            create(session, id, name.clone(), *retain).await
        }
        SnapshotCommand::Ls { id } => list(session, id.as_deref()).await,
        SnapshotCommand::Rm { snapshots } => remove(session, snapshots).await,
    }
}

async fn create(
    session: &Session<'_>,
    id: &str,
    name: Option<String>,
    retain: Option<Duration>,
) -> Result<u8, CommandError> {
    let id = prefixes::resolve(&session.client, id).await?;
    let request = CreateSnapshot {
        name,
        retain_seconds: retain.map(durations::seconds_up),
    };
    let snapshot = session
        .client
        .create_snapshot(&id, &request)
        .await
        .map_err(|source| {
            CommandError::call(format!("cannot take a snapshot of sandbox {id}"), source)
        })?;
    if session.printer.is_json() {
        session.printer.json(&snapshot)?;
        return Ok(exit_status::OK);
    }
    session.printer.line(&text::visible(&snapshot.id))?;
    let pause_ms = snapshot.capture.pause_ms;
    session
        .printer
        .note(&format!("the sandbox was paused for {pause_ms} ms"));
    Ok(exit_status::OK)
}

async fn list(session: &Session<'_>, sandbox: Option<&str>) -> Result<u8, CommandError> {
    let sandbox = match sandbox {
        Some(text) => Some(prefixes::resolve(&session.client, text).await?),
        None => None,
    };
    let snapshots = session
        .client
        .list_snapshots(sandbox.as_deref())
        .await
        .map_err(|source| CommandError::call("cannot list snapshots", source))?;
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&snapshots)?;
        return Ok(exit_status::OK);
    }
    if printer.is_quiet() {
        let ids = snapshots
            .iter()
            .map(|snapshot| text::visible(&snapshot.id) + "\n");
        printer.data(&ids.collect::<String>())?;
        return Ok(exit_status::OK);
    }
    printer.table(&table(&snapshots))?;
    if snapshots.is_empty() {
        printer.note("no snapshots; `dayfly snapshot create` takes one");
    }
    Ok(exit_status::OK)
}

fn table(snapshots: &[Snapshot]) -> Table {
    let now = OffsetDateTime::now_utc();
    let mut table = Table::new(&[
        "ID", "SANDBOX", "TEMPLATE", "NAME", "AGE", "EXPIRES", "SIZE",
    ]);
    for snapshot in snapshots {
        table.push(vec![
            snapshot.id.clone(),
            snapshot.sandbox_id.clone(),
            snapshot.template.clone(),
            snapshot.name.clone().unwrap_or_else(|| "-".to_owned()),
            ages::since(&snapshot.created_at, now),
            ages::until(snapshot.expires_at.as_deref(), now),
            format!("{} MiB", snapshot.size_bytes >> 20),
        ]);
    }
    table
}

async fn remove(session: &Session<'_>, texts: &[String]) -> Result<u8, CommandError> {
    // All names are settled before the first delete, so that a typing error deletes nothing.
    let mut ids = Vec::new();
    for text in texts {
        ids.push(prefixes::resolve_snapshot(&session.client, text).await?);
    }
    removal::remove_all(session, Kind::Snapshot, ids).await
}
