//! Deleting several things, and telling which are gone.

use std::collections::BTreeSet;

use dayfly_client::ClientError;
use futures::StreamExt as _;
use serde::Serialize;

use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::{error_text, exit_status};

/// Deletes that are under way at once.
const PARALLEL_MAX: usize = 16;

/// The object of every `rm --json`.
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

/// What can be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    Sandbox,
    /// Of another project.
    SandboxOf(&'a str),
    Snapshot,
    Volume,
}

impl Kind<'_> {
    fn word(self) -> &'static str {
        match self {
            Self::Sandbox | Self::SandboxOf(_) => "sandbox",
            Self::Snapshot => "snapshot",
            Self::Volume => "volume",
        }
    }

    fn subject(self) -> Subject {
        match self {
            Self::Sandbox | Self::SandboxOf(_) => Subject::Sandbox,
            Self::Snapshot => Subject::Snapshot,
            Self::Volume => Subject::Volume,
        }
    }

    async fn delete(self, session: &Session<'_>, id: &str) -> Result<(), ClientError> {
        match self {
            Self::Sandbox => session.client.delete_sandbox(id).await,
            Self::SandboxOf(project) => session.client.delete_sandbox_of(project, id).await,
            Self::Snapshot => session.client.delete_snapshot(id).await,
            Self::Volume => session.client.delete_volume(id).await,
        }
    }
}

/// Deletes everything that `ids` name, as far as it goes; gives the exit status.
pub(crate) async fn remove_all(
    session: &Session<'_>,
    kind: Kind<'_>,
    ids: Vec<String>,
) -> Result<u8, CommandError> {
    let delete = async |id: String| {
        let outcome = kind.delete(session, &id).await;
        (id, outcome)
    };
    let mut outcomes = futures::stream::iter(ids)
        .map(delete)
        .buffer_unordered(PARALLEL_MAX);
    let mut report = Report::default();
    let mut statuses = BTreeSet::new();
    while let Some((id, outcome)) = outcomes.next().await {
        match outcome {
            Ok(()) => {
                if !session.printer.is_json() {
                    session.printer.line(&id)?;
                }
                report.deleted.push(id);
            }
            Err(error) => {
                statuses.insert(exit_status::of_call(&error));
                report.failed.push(failed(session, kind, id, error));
            }
        }
    }
    if session.printer.is_json() {
        session.printer.json(&report)?;
    }
    Ok(match (statuses.first(), statuses.len()) {
        (None, _) => exit_status::OK,
        // All for one reason, and nothing was deleted.
        (Some(status), 1) if report.deleted.is_empty() => *status,
        (Some(_), _) => exit_status::FAILED,
    })
}

fn failed(session: &Session<'_>, kind: Kind<'_>, id: String, error: ClientError) -> Failed {
    let error = CommandError::call(format!("cannot delete {} {id}", kind.word()), error)
        .about(kind.subject());
    if !session.printer.is_json() {
        session.printer.failure(&error);
    }
    Failed {
        id,
        error: error_text::report(&error).error,
    }
}
