//! Beginning a build, and what is written of its end.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use dayfly_api::{TemplateBuild, TemplateBuildEvent};
use dayfly_types::limits::{BUILD_ERROR_BYTES_MAX, BUILDS_REMEMBERED_MAX};
use dayfly_types::{ErrorCode, ProjectId};

use super::order::NewBuild;
use super::port::{
    BuildFailure, BuildKey, BuildOrder, BuiltVersion, TemplateBuilder, UploadedContext,
};
use super::read::present;
use super::running::{BuildPlace, LiveBuild};
use crate::control::Control;
use crate::input::ids::{self, NoRandomness};
use crate::store::{BuildDocument, BuildRow, BuildState, StoreError};
use crate::template::order::OrderTemplateError;
use crate::template::versions;
use crate::time::now_ms;

/// What the id of a build begins with.
const PREFIX: &str = "bld-";
const CANCELLED: &str = "the build was cancelled";

/// Why a build did not begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartBuildError {
    #[error(transparent)]
    Name(OrderTemplateError),
    #[error("project {0} may not be used any more")]
    ProjectClosed(ProjectId),
    #[error("cannot write the build down")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

impl StartBuildError {
    /// How a caller is told; without it, it is a fault of ours.
    pub(crate) const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::ProjectClosed(_) => Some(ErrorCode::ProjectSuspended),
            Self::Name(_) | Self::Store(_) | Self::Randomness(_) => None,
        }
    }
}

/// Who asked for a build.
#[derive(Debug)]
pub(crate) struct BuildAsker {
    pub(crate) project: ProjectId,
    pub(crate) key: BuildKey,
    pub(crate) key_prefix: String,
    pub(crate) client: Option<IpAddr>,
}

/// Begins a build, and does not wait for it.
///
/// # Errors
/// [`StartBuildError`].
pub(crate) async fn start(
    control: &Arc<Control>,
    builder: Arc<dyn TemplateBuilder>,
    asker: BuildAsker,
    (wish, context): (NewBuild, UploadedContext),
    place: BuildPlace,
) -> Result<TemplateBuild, StartBuildError> {
    let free = versions::ensure_name_is_free(control, &wish.name).await;
    free.map_err(StartBuildError::Name)?;
    let row = BuildRow {
        id: format!("{PREFIX}{}", hex::encode(ids::draw()?)),
        project: asker.project.clone(),
        name: wish.name.clone(),
        tag: wish.tag.clone(),
        state: BuildState::Queued,
        document: BuildDocument {
            image: wish.image.clone(),
            size_mb: wish.size_mb,
            ..BuildDocument::default()
        },
        made_by: asker.key_prefix,
        started_at_ms: now_ms(),
        ended_at_ms: None,
    };
    let most = BUILDS_REMEMBERED_MAX;
    if !control.store.insert_build(&row, most).await? {
        return Err(StartBuildError::ProjectClosed(asker.project));
    }
    let live = Arc::new(LiveBuild::new(row.clone()));
    control.builds.insert(Arc::clone(&live));
    let order = BuildOrder {
        key: asker.key,
        client: asker.client,
        wish,
        context,
    };
    let control = Arc::clone(control);
    // Not one of the tasks that the end of the process waits for: a build is begun again, and its
    // steps are kept.
    tokio::spawn(async move {
        let _place = place;
        run(&control, builder.as_ref(), &live, order).await;
    });
    Ok(present(row))
}

async fn run(
    control: &Control,
    builder: &dyn TemplateBuilder,
    live: &Arc<LiveBuild>,
    order: BuildOrder,
) {
    live.change(|row| row.state = BuildState::Running);
    let began = Instant::now();
    let told = Arc::clone(live);
    let building = builder.build(order, Box::new(move |event| told.log.push(event)));
    let outcome = tokio::select! {
        biased;
        () = live.cancelled.cancelled() => Err(BuildFailure {
            error: CANCELLED.to_owned(),
            step: None,
        }),
        outcome = building => outcome,
    };
    let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (row, event) = ended(live, outcome, elapsed_ms);
    if let Err(error) = control.store.update_build(&row).await {
        let error: &dyn std::error::Error = &error;
        tracing::warn!(build = row.id, error, "the end of a build was not written");
    }
    live.log.push(event);
}

/// Notes how a build ended, and says it.
fn ended(
    live: &LiveBuild,
    outcome: Result<BuiltVersion, BuildFailure>,
    elapsed_ms: u64,
) -> (BuildRow, TemplateBuildEvent) {
    match outcome {
        Ok(built) => {
            let row = live.change(|row| {
                row.state = BuildState::Done;
                row.ended_at_ms = Some(now_ms());
                let document = &mut row.document;
                document.version = Some(built.version);
                (document.steps, document.cached) = (built.steps, built.cached);
                (document.size_mb, document.bytes) = (built.disk_mb, built.bytes);
                document.elapsed_ms = elapsed_ms;
            });
            let event = last_event(&row);
            (row, event)
        }
        Err(failure) => {
            let BuildFailure { error, step } = bounded(failure);
            let row = live.change(|row| {
                row.state = BuildState::Failed;
                row.ended_at_ms = Some(now_ms());
                row.document.error = Some(error.clone());
                row.document.elapsed_ms = elapsed_ms;
            });
            let step = step.map(|step| *step);
            (row, TemplateBuildEvent::Failed { error, step })
        }
    }
}

/// What the last event of a build says, as far as its row knows.
pub(super) fn last_event(row: &BuildRow) -> TemplateBuildEvent {
    let document = &row.document;
    match &document.version {
        Some(version) => TemplateBuildEvent::Built {
            name: row.name.clone(),
            tag: row.tag.clone(),
            version: version.clone(),
            steps: document.steps,
            cached: document.cached,
            elapsed_ms: document.elapsed_ms,
        },
        None => TemplateBuildEvent::Failed {
            error: document.error.clone().unwrap_or_default(),
            step: None,
        },
    }
}

/// What a stranger's program said is cut to what one event may be, last lines first.
fn bounded(mut failure: BuildFailure) -> BuildFailure {
    cut(&mut failure.error, BUILD_ERROR_BYTES_MAX);
    if let Some(step) = &mut failure.step {
        let mut room = BUILD_ERROR_BYTES_MAX;
        let mut kept = Vec::new();
        for mut line in std::mem::take(&mut step.tail).into_iter().rev() {
            cut(&mut line, room);
            room -= line.len();
            kept.push(line);
            if room == 0 {
                break;
            }
        }
        kept.reverse();
        step.tail = kept;
    }
    failure
}

fn cut(text: &mut String, most: usize) {
    text.truncate(text.floor_char_boundary(most));
}

#[cfg(test)]
mod tests {
    use dayfly_api::FailedBuildStep;

    use super::*;
    use crate::http::sse;

    #[test]
    fn the_failure_of_a_step_fits_into_one_event() {
        let failure = bounded(BuildFailure {
            error: "é".repeat(100_000),
            step: Some(Box::new(FailedBuildStep {
                number: 1,
                steps: 1,
                line: 1,
                text: "é".repeat(200),
                exit_code: 1,
                tail: (0..20)
                    .map(|line| format!("{line} {}", "é".repeat(2000)))
                    .collect(),
                sandbox: "sb-local-a".to_owned(),
            })),
        });
        let tail = &failure.step.as_ref().unwrap().tail;
        assert!(tail.last().unwrap().starts_with("19 "), "{tail:?}");
        let (error, step) = (failure.error, failure.step.map(|step| *step));
        let event = TemplateBuildEvent::Failed { error, step };
        assert!(sse::ascii_json(&event).len() < sse::EVENT_BYTES_MAX / 2);
    }
}
