//! `dayfly rm`.

use dayfly_client::ClientError;
use futures::StreamExt as _;
use serde::Serialize;

use crate::args::RemoveArgs;
use crate::commands::Session;
use crate::failure::CommandError;
use crate::{error_text, exit_status, prefixes};

/// Deletes that are under way at once.
const PARALLEL_MAX: usize = 16;

/// The object of `rm --json`.
#[derive(Debug, Default, Serialize)]
struct Report {
    deleted: Vec<String>,
    failed: Vec<Failed>,
}

#[derive(Debug, Serialize)]
struct Failed {
    id: String,
    error: String,
}

pub(crate) async fn remove(session: &Session<'_>, args: &RemoveArgs) -> Result<u8, CommandError> {
    let ids = if args.all {
        let ids = all_ids(session).await?;
        if !ids.is_empty() && !args.yes && !is_confirmed(session, ids.len())? {
            session.printer.note("nothing was deleted");
            return Ok(exit_status::OK);
        }
        ids
    } else {
        // All names are settled before the first delete, so that a typing error deletes nothing.
        let mut ids = Vec::new();
        for text in &args.ids {
            ids.push(prefixes::resolve(&session.client, text).await?);
        }
        ids
    };
    let report = delete_all(session, ids).await?;
    if session.printer.is_json() {
        session.printer.json(&report)?;
    }
    Ok(if report.failed.is_empty() {
        exit_status::OK
    } else {
        exit_status::FAILED
    })
}

async fn all_ids(session: &Session<'_>) -> Result<Vec<String>, CommandError> {
    let sandboxes = session
        .client
        .list_sandboxes()
        .await
        .map_err(|source| CommandError::call("cannot list sandboxes", source))?;
    Ok(sandboxes.into_iter().map(|sandbox| sandbox.id).collect())
}

fn is_confirmed(session: &Session<'_>, count: usize) -> Result<bool, CommandError> {
    if !session.printer.can_ask() {
        return Err(CommandError::Refused {
            what: format!("will not delete all {count} sandboxes without being asked twice"),
            hint: "add --yes",
        });
    }
    let answer = session
        .printer
        .ask(&format!("delete all {count} sandboxes? [y/N]"))?;
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

async fn delete_all(session: &Session<'_>, ids: Vec<String>) -> Result<Report, CommandError> {
    let delete = async |id: String| {
        let outcome = session.client.delete_sandbox(&id).await;
        (id, outcome)
    };
    let mut outcomes = futures::stream::iter(ids)
        .map(delete)
        .buffer_unordered(PARALLEL_MAX);
    let mut report = Report::default();
    while let Some((id, outcome)) = outcomes.next().await {
        match outcome {
            Ok(()) => {
                if !session.printer.is_json() {
                    session.printer.line(&id)?;
                }
                report.deleted.push(id);
            }
            Err(error) => report.failed.push(failed(session, id, error)),
        }
    }
    Ok(report)
}

fn failed(session: &Session<'_>, id: String, error: ClientError) -> Failed {
    let error = CommandError::call(format!("cannot delete sandbox {id}"), error);
    if !session.printer.is_json() {
        session.printer.failure(&error);
    }
    Failed {
        id,
        error: error_text::report(&error).error,
    }
}
