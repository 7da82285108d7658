//! Builds as they are told.

use std::sync::Arc;

use dayfly_api::{TemplateBuild, TemplateBuildStatus};
use dayfly_types::ProjectId;

use super::running::{Builds, LiveBuild};
use crate::control::Control;
use crate::store::{BuildRow, BuildState, StoreError};
use crate::time::rfc3339;

/// Why a build did not end that began before this process did.
const LOST: &str = "the server was restarted; build again, finished steps are kept";

/// Why there is no such build.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FindBuildError {
    #[error("there is no build {id}")]
    NotFound { id: String },
    #[error("cannot read builds")]
    Store(#[from] StoreError),
}

/// A build that is known.
#[derive(Debug)]
pub(crate) enum FoundBuild {
    /// With its events.
    Live(Arc<LiveBuild>),
    Row(Box<BuildRow>),
}

impl FoundBuild {
    pub(crate) fn row(&self) -> BuildRow {
        match self {
            Self::Live(live) => live.row(),
            Self::Row(row) => (**row).clone(),
        }
    }
}

/// One build of a project.
///
/// # Errors
/// [`FindBuildError`].
pub(crate) async fn find(
    control: &Control,
    project: &ProjectId,
    id: &str,
) -> Result<FoundBuild, FindBuildError> {
    if let Some(live) = control.builds.find(project, id) {
        return Ok(FoundBuild::Live(live));
    }
    match control.store.build(project, id).await? {
        Some(row) => Ok(FoundBuild::Row(Box::new(of_earlier(&control.builds, row)))),
        None => Err(FindBuildError::NotFound { id: id.to_owned() }),
    }
}

/// All builds of a project that are remembered, newest first.
///
/// # Errors
/// [`StoreError`].
pub(crate) async fn list(
    control: &Control,
    project: &ProjectId,
) -> Result<Vec<TemplateBuild>, StoreError> {
    let rows = control.store.builds(project).await?;
    let shown = rows.into_iter().map(|row| {
        let live = control.builds.find(project, &row.id);
        present(match live {
            Some(live) => live.row(),
            None => of_earlier(&control.builds, row),
        })
    });
    Ok(shown.collect())
}

/// A row of which this process knows nothing: if it has no end, that was the end of an earlier process.
fn of_earlier(builds: &Builds, mut row: BuildRow) -> BuildRow {
    if row.is_open() {
        row.state = BuildState::Failed;
        row.document.error = Some(LOST.to_owned());
        row.ended_at_ms = Some(builds.since_ms.max(row.started_at_ms));
    }
    row
}

/// A build as the public API shows it.
pub(super) fn present(row: BuildRow) -> TemplateBuild {
    let document = row.document;
    let reference = format!("{}:{}", row.name, row.tag);
    TemplateBuild {
        status: match row.state {
            BuildState::Queued => TemplateBuildStatus::Queued,
            BuildState::Running => TemplateBuildStatus::Running,
            BuildState::Done => TemplateBuildStatus::Done,
            BuildState::Failed => TemplateBuildStatus::Failed,
        },
        image_ref: match document.image {
            Some(image) if row.state != BuildState::Done => image,
            _ => reference,
        },
        id: row.id,
        name: row.name,
        tag: row.tag,
        error: document.error,
        started_at: Some(rfc3339(row.started_at_ms)),
        ended_at: row.ended_at_ms.map(rfc3339),
        size_mb: document.size_mb,
        bytes: document.bytes,
        version: document.version,
        steps: document.steps,
        cached: document.cached,
    }
}
