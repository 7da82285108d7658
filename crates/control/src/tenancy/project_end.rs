//! Deleting a project with everything that it has.
//!
//! The wish is one write: the state `deleting`. What follows may be repeated from its beginning, so
//! the comparison of rows and node ([`crate::reconcile`]) finishes it after a crash or a failure.

use std::fmt;
use std::sync::Arc;

use dayfly_node_api::{NodeCalls, NodeError};
use dayfly_types::{ErrorCode, ProjectId};
use futures::{StreamExt, TryStreamExt};

use crate::admission::turns::TurnTimeout;
use crate::control::Control;
use crate::sandbox::delete::{self, DeleteError};
use crate::store::{OrderKind, ProjectRow, ProjectState, StoreError};
use crate::template::order;
use crate::tenancy::projects::{self, ProjectError};
use crate::tenancy::suspension::{ensure_can_end, enter, shut};
use crate::tenancy::usage::TURN_DEADLINE;
use crate::time::now_ms;

/// Sandboxes of it that are deleted at once.
const DELETES_MAX: usize = 8;
/// Sandboxes that are read at once.
const BATCH: i64 = 500;
/// Why a project may not be used while it is looked at for the last time.
const LAST_LOOK: &str = "it is being deleted";

/// What a project still has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holdings {
    sandboxes: u64,
    snapshots: usize,
    volumes: usize,
    templates: usize,
}

impl Holdings {
    async fn of(control: &Control, project: &ProjectId) -> Result<Self, EmptyError> {
        Ok(Self {
            sandboxes: control.store.used(project).await?.sandboxes,
            snapshots: control.node.snapshots_of(project).await?.len(),
            volumes: control.node.volumes_of(project).await?.len(),
            templates: control
                .store
                .orders(project, OrderKind::Version)
                .await?
                .len(),
        })
    }

    const fn is_nothing(self) -> bool {
        self.sandboxes == 0 && self.snapshots == 0 && self.volumes == 0 && self.templates == 0
    }
}

impl fmt::Display for Holdings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "sandboxes: {}, snapshots: {}, volumes: {}, templates: {}",
            self.sandboxes, self.snapshots, self.volumes, self.templates
        )
    }
}

/// Why a project still has something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EmptyError {
    #[error("cannot read or write what the project has")]
    Store(#[from] StoreError),
    #[error("the node did not delete everything of the project yet; it will be tried again")]
    Node(#[from] NodeError),
    #[error("not every sandbox of the project is gone yet; it will be tried again")]
    Sandbox(#[from] DeleteError),
    #[error(transparent)]
    Busy(#[from] TurnTimeout),
    #[error("something was added to the project meanwhile; it will be tried again")]
    Left,
}

/// What may go with a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Force {
    /// Nothing: it must be empty.
    OnlyEmpty,
    Everything,
}

/// Deletes a project, and waits until it is gone. May be repeated.
///
/// # Errors
/// [`ProjectError`].
///
/// # Cancel safety
/// Dropping the future does not stop the work.
pub(crate) async fn delete(
    control: &Arc<Control>,
    asked_by: (&ProjectId, &str),
    id: &str,
    force: Force,
) -> Result<(), ProjectError> {
    control.audit.ensure_writable()?;
    let (project, key_prefix) = asked_by;
    let row = projects::find_ever(control, id).await?;
    ensure_can_end(&row, project)?;
    let (control, key_prefix) = (Arc::clone(control), key_prefix.to_owned());
    let tasks = control.tasks.clone();
    let work = async move {
        let project = row.id.clone();
        match row.state {
            ProjectState::Deleted => return Ok(()),
            ProjectState::Deleting => {}
            ProjectState::Active | ProjectState::Suspended { .. } => {
                let row = match force {
                    Force::Everything => row,
                    Force::OnlyEmpty => closed_while_empty(&control, row).await?,
                };
                enter(&control, row, ProjectState::Deleting).await?;
            }
        }
        Ok(empty(&control, &project, &key_prefix).await?)
    };
    tasks
        .spawn(work)
        .await
        .unwrap_or(Err(ProjectError::Stopped))
}

/// A project that has nothing, and can get nothing any more. A crash in between leaves it suspended,
/// not deleted.
async fn closed_while_empty(
    control: &Control,
    row: ProjectRow,
) -> Result<ProjectRow, ProjectError> {
    ensure_empty(control, &row.id).await?;
    let before = row.state.clone();
    let reason = LAST_LOOK.to_owned();
    let closed = enter(control, row, ProjectState::Suspended { reason }).await?;
    control.forget_keys();
    if let Err(error) = ensure_empty(control, &closed.id).await {
        enter(control, closed, before).await?;
        control.forget_keys();
        return Err(error);
    }
    Ok(closed)
}

async fn ensure_empty(control: &Control, id: &ProjectId) -> Result<(), ProjectError> {
    let holdings = Holdings::of(control, id).await?;
    if holdings.is_nothing() {
        return Ok(());
    }
    let id = id.clone();
    Err(ProjectError::NotEmpty { id, holdings })
}

/// Deletes everything of a project whose row says that it is to go, and records that it is gone.
///
/// # Errors
/// [`EmptyError`]; what is gone is gone, and it may be called again.
pub(crate) async fn empty(
    control: &Arc<Control>,
    project: &ProjectId,
    key_prefix: &str,
) -> Result<(), EmptyError> {
    // Nobody uses it any more, and nobody is inside, before anything goes.
    shut(control, project).await?;
    control.builds.cancel(Some(project));
    let store = &control.store;
    store.end_keys_and_links(project, now_ms()).await?;
    loop {
        // Each batch is gone before the next is read from the beginning.
        let rows = store.sandboxes_after(project, None, BATCH).await?;
        if rows.is_empty() {
            break;
        }
        futures::stream::iter(rows)
            .map(Ok)
            .try_for_each_concurrent(DELETES_MAX, |row| {
                delete::delete(Arc::clone(control), project.clone(), row.id, key_prefix)
            })
            .await?;
    }
    let is_gone = |error: &NodeError| error.code == ErrorCode::NotFound;
    for snapshot in control.node.snapshots_of(project).await? {
        match control.node.delete_snapshot(&snapshot.id).await {
            Err(error) if !is_gone(&error) => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
    // The node gives them up here or in a later pass; nobody can use them any more.
    store.mark_all_orders(project).await?;
    store.delete_builds(project).await?;
    order::give_up_the_rest(control).await;
    // To the end: who waits for a turn to make one then finds the project gone.
    let _turn = control.volume_turns.wait(project, TURN_DEADLINE).await?;
    for volume in control.node.volumes_of(project).await? {
        match control.node.delete_volume(project, &volume.name).await {
            Err(error) if !is_gone(&error) => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
    let holdings = Holdings::of(control, project).await?;
    if holdings.is_nothing() && store.finish_project(project).await? {
        return Ok(());
    }
    Err(EmptyError::Left)
}

/// Goes on with deletions that were not finished. What fails is logged, and tried again the next
/// time.
pub(crate) async fn finish(control: Arc<Control>) {
    let projects = match control.store.projects_to_delete().await {
        Ok(projects) => projects,
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "cannot look for projects to delete");
            return;
        }
    };
    for ProjectRow { id: project, .. } in projects {
        if let Err(error) = empty(&control, &project, "server").await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(%project, error, "a project is not deleted yet");
        }
    }
}
