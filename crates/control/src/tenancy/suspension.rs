//! Suspending a project, and letting it go on.
//!
//! A suspended project's keys and links open nothing: no request, no stream, no port, no file. Reads
//! are refused too, all but `GET /v1/me`: a project is suspended because a key leaked or somebody
//! misuses it, and what can be read then is as good as lost. One rule without exceptions is also the
//! one that can be checked.

use std::sync::Arc;

use dayfly_api::{ProjectSuspension, SuspendProject};
use dayfly_types::limits::SUSPEND_REASON_CHARACTERS_MAX;
use dayfly_types::{ProjectId, SandboxId, SandboxState};
use futures::StreamExt;

use crate::control::Control;
use crate::input::Invalid;
use crate::sandbox::list::{self, Wanted};
use crate::sandbox::state::{self, StateChange};
use crate::store::{ProjectRow, ProjectState, StoreError};
use crate::tenancy::projects::{self, ProjectError};
use crate::tenancy::whose::Whose;
use crate::time::now_ms;

/// Captures of one project that are under way at once.
const HIBERNATE_AT_ONCE: usize = 2;

/// Suspends a project. May be repeated, also with another reason.
///
/// # Errors
/// [`ProjectError`].
///
/// # Cancel safety
/// Dropping the future does not stop the work.
pub(crate) async fn suspend(
    control: &Arc<Control>,
    asked_by: &ProjectId,
    id: &str,
    wish: SuspendProject,
) -> Result<ProjectSuspension, ProjectError> {
    let reason = wish.reason.trim().to_owned();
    let length = reason.chars().count();
    if !(1..=SUSPEND_REASON_CHARACTERS_MAX).contains(&length)
        || reason.chars().any(char::is_control)
    {
        let rule =
            format!("must be 1 to {SUSPEND_REASON_CHARACTERS_MAX} characters, none of control");
        return Err(Invalid::field("reason", rule).into());
    }
    let row = projects::find(control, id).await?;
    ensure_can_end(&row, asked_by)?;
    let control = Arc::clone(control);
    let tasks = control.tasks.clone();
    let work = async move {
        // Not only when its record can be written: who must be kept out is kept out.
        let row = enter(&control, row, ProjectState::Suspended { reason }).await?;
        shut(&control, &row.id).await?;
        let mut done = ProjectSuspension {
            project: projects::present(&row),
            hibernated: Vec::new(),
            failed: Vec::new(),
        };
        if wish.stop_sandboxes == Some(true) {
            hibernate_all(&control, &row.id, &mut done).await?;
        }
        Ok(done)
    };
    tasks
        .spawn(work)
        .await
        .unwrap_or(Err(ProjectError::Stopped))
}

/// Lets a suspended project go on. Its keys and links work again; what was hibernated sleeps until
/// somebody uses it.
///
/// # Errors
/// [`ProjectError`].
pub(crate) async fn resume(
    control: &Control,
    id: &str,
) -> Result<dayfly_api::Project, ProjectError> {
    control.audit.ensure_writable()?;
    let row = projects::find(control, id).await?;
    let row = enter(control, row, ProjectState::Active).await?;
    control.forget_keys();
    Ok(projects::present(&row))
}

/// Refuses to lock out whoever asks, and to close the project that every installation has.
pub(super) fn ensure_can_end(row: &ProjectRow, asked_by: &ProjectId) -> Result<(), ProjectError> {
    if row.id == ProjectId::default_project() {
        return Err(ProjectError::Default);
    }
    if row.id == *asked_by {
        return Err(ProjectError::Own);
    }
    Ok(())
}

/// Writes another state of a project that is active or suspended.
pub(super) async fn enter(
    control: &Control,
    row: ProjectRow,
    state: ProjectState,
) -> Result<ProjectRow, ProjectError> {
    let is_open = matches!(
        row.state,
        ProjectState::Active | ProjectState::Suspended { .. }
    );
    let store = &control.store;
    if !is_open || !store.set_project_state(&row.id, &row.state, &state).await? {
        return Err(ProjectError::Changed { id: row.id });
    }
    Ok(ProjectRow { state, ..row })
}

/// Cuts off everybody who came by a key or a link of a project, which may not be used any more as
/// the database says by now.
pub(super) async fn shut(control: &Control, project: &ProjectId) -> Result<(), StoreError> {
    control.forget_keys();
    let keys = control.store.api_keys(project, now_ms(), None, i64::MAX);
    for key in keys.await? {
        control.key_ends.revoke(&key.prefix);
    }
    for (sandbox, link) in control.store.links_of_project(project).await? {
        control.gateway.revoke(&sandbox, &link);
    }
    Ok(())
}

async fn hibernate_all(
    control: &Control,
    project: &ProjectId,
    done: &mut ProjectSuspension,
) -> Result<(), StoreError> {
    let whose = Whose::One(project.clone());
    let list = list::list(control, &whose, &Wanted::default()).await?;
    let awake = list.items.into_iter().filter(|sandbox| {
        !matches!(
            SandboxState::parse(&sandbox.status),
            Some(SandboxState::Hibernated | SandboxState::Deleting | SandboxState::Failed)
        )
    });
    let hibernate = async |id: String| {
        let Ok(parsed) = SandboxId::parse(&id) else {
            return (id, false);
        };
        let changed = state::change(control, project, &parsed, StateChange::Hibernate).await;
        if let Err(error) = &changed {
            let error: &dyn std::error::Error = error;
            tracing::warn!(sandbox_id = %id, error, "a sandbox of a suspended project runs on");
        }
        (id, changed.is_ok())
    };
    let mut outcomes = futures::stream::iter(awake)
        .map(|sandbox| hibernate(sandbox.id))
        .buffer_unordered(HIBERNATE_AT_ONCE);
    while let Some((id, is_asleep)) = outcomes.next().await {
        if is_asleep {
            done.hibernated.push(id);
        } else {
            done.failed.push(id);
        }
    }
    Ok(())
}
