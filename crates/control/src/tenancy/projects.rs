//! Projects, as an operator makes them.

use dayfly_api::{ChangeLimits, CreateProject, Project, ProjectLimits as Limits};
use dayfly_types::ProjectId;

use crate::audit::Unrecorded;
use crate::control::Control;
use crate::input::Invalid;
use crate::store::{LimitsRow, ProjectRow, ProjectState, StoreError};
use crate::tenancy::project_end::{EmptyError, Holdings};
use crate::time::{now_ms, rfc3339};

/// What a new project may use unless its operator says otherwise.
const LIMITS_DEFAULT: LimitsRow = LimitsRow {
    sandboxes: Some(100),
    vcpus: Some(200),
    memory_mb: Some(256 << 10),
    snapshot_mb: Some(256 << 10),
    volume_mb: Some(256 << 10),
    requests_per_second: Some(200),
    disk_mb: Some(1 << 20),
    keeps_output: false,
};

/// What a database can hold.
const LIMIT_MAX: u64 = i64::MAX.unsigned_abs();

/// Why a project is not as it should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProjectError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error("there is no project {id}")]
    NotFound { id: String },
    #[error("project {id} exists already")]
    Exists { id: ProjectId },
    #[error("there was a project {id}; its audit record is kept, so nobody gets its name again")]
    Past { id: ProjectId },
    #[error("the default project is part of every installation and stays as it is")]
    Default,
    #[error("this key is of that project, and would lock itself out")]
    Own,
    #[error("project {id} is being deleted, or was changed meanwhile")]
    Changed { id: ProjectId },
    #[error("project {id} still has something ({holdings})")]
    NotEmpty { id: ProjectId, holdings: Holdings },
    #[error(transparent)]
    Empty(#[from] EmptyError),
    #[error("the work on the project stopped")]
    Stopped,
    #[error(transparent)]
    Unrecorded(#[from] Unrecorded),
    #[error("cannot read or write projects")]
    Store(#[from] StoreError),
}

/// Makes a project.
///
/// # Errors
/// [`ProjectError`].
pub(crate) async fn create(
    control: &Control,
    wish: CreateProject,
) -> Result<Project, ProjectError> {
    control.audit.ensure_writable()?;
    let wrong = |_| Invalid::field("id", "must be a DNS label of at most 63 characters");
    let id = ProjectId::parse(&wish.id).map_err(wrong)?;
    let row = ProjectRow {
        id: id.clone(),
        created_at_ms: now_ms(),
        limits: changed(LIMITS_DEFAULT, &wish.limits.unwrap_or_default())?,
        state: ProjectState::Active,
    };
    if control.store.insert_project(&row).await? {
        return Ok(present(&row));
    }
    let known = control.store.project(&id).await?;
    if known.is_some_and(|known| known.state == ProjectState::Deleted) {
        return Err(ProjectError::Past { id });
    }
    Err(ProjectError::Exists { id })
}

/// All projects, oldest first.
///
/// # Errors
/// [`StoreError`].
pub(crate) async fn list(control: &Control) -> Result<Vec<Project>, StoreError> {
    let rows = control.store.projects().await?;
    Ok(rows.iter().map(present).collect())
}

/// Changes what a project may use.
///
/// # Errors
/// [`ProjectError`].
pub(crate) async fn change(
    control: &Control,
    id: &str,
    wish: &ChangeLimits,
) -> Result<Project, ProjectError> {
    control.audit.ensure_writable()?;
    let mut row = find(control, id).await?;
    row.limits = changed(row.limits, wish)?;
    control
        .store
        .set_project_limits(&row.id, &row.limits)
        .await?;
    control.forget_keys();
    Ok(present(&row))
}

/// One project.
///
/// # Errors
/// [`ProjectError`].
pub(crate) async fn get(control: &Control, id: &str) -> Result<Project, ProjectError> {
    find(control, id).await.map(|row| present(&row))
}

/// The project of that name.
///
/// # Errors
/// [`ProjectError`].
pub(crate) async fn find(control: &Control, id: &str) -> Result<ProjectRow, ProjectError> {
    let row = find_ever(control, id).await?;
    if row.state == ProjectState::Deleted {
        return Err(ProjectError::NotFound { id: id.to_owned() });
    }
    Ok(row)
}

/// The project of that name, also one that was deleted: its audit record can still be read.
///
/// # Errors
/// [`ProjectError`].
pub(crate) async fn find_ever(control: &Control, id: &str) -> Result<ProjectRow, ProjectError> {
    let found = match ProjectId::parse(id) {
        Ok(id) => control.store.project(&id).await?,
        Err(_) => None,
    };
    found.ok_or_else(|| ProjectError::NotFound { id: id.to_owned() })
}

fn changed(limits: LimitsRow, wish: &ChangeLimits) -> Result<LimitsRow, Invalid> {
    for (field, wished) in [
        ("sandboxes", wish.sandboxes),
        ("vcpus", wish.vcpus),
        ("memory_mb", wish.memory_mb),
        ("snapshot_mb", wish.snapshot_mb),
        ("volume_mb", wish.volume_mb),
        ("requests_per_second", wish.requests_per_second),
        ("disk_mb", wish.disk_mb),
    ] {
        if wished.flatten().is_some_and(|number| number > LIMIT_MAX) {
            let rule = format!("must be at most {LIMIT_MAX}");
            return Err(Invalid::field(field, rule));
        }
    }
    Ok(LimitsRow {
        sandboxes: wish.sandboxes.unwrap_or(limits.sandboxes),
        vcpus: wish.vcpus.unwrap_or(limits.vcpus),
        memory_mb: wish.memory_mb.unwrap_or(limits.memory_mb),
        snapshot_mb: wish.snapshot_mb.unwrap_or(limits.snapshot_mb),
        volume_mb: wish.volume_mb.unwrap_or(limits.volume_mb),
        requests_per_second: wish
            .requests_per_second
            .unwrap_or(limits.requests_per_second),
        disk_mb: wish.disk_mb.unwrap_or(limits.disk_mb),
        keeps_output: wish.keeps_output.unwrap_or(limits.keeps_output),
    })
}

pub(crate) fn present(row: &ProjectRow) -> Project {
    Project {
        state: row.state.as_str().to_owned(),
        reason: row.state.reason().map(str::to_owned),
        id: row.id.to_string(),
        limits: to_wire(&row.limits),
        created_at: rfc3339(row.created_at_ms),
    }
}

/// Limits as the public API shows them.
pub(crate) fn to_wire(limits: &LimitsRow) -> Limits {
    Limits {
        sandboxes: limits.sandboxes,
        vcpus: limits.vcpus,
        memory_mb: limits.memory_mb,
        snapshot_mb: limits.snapshot_mb,
        volume_mb: limits.volume_mb,
        requests_per_second: limits.requests_per_second,
        disk_mb: limits.disk_mb,
        keeps_output: limits.keeps_output,
    }
}
