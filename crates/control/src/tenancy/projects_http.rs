//! Projects, for operators, and what a project uses.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{
    ChangeLimits, CreateProject, Hint, Project, ProjectList, ProjectSuspension, ProjectUsage,
    ProjectUsageList, SandboxLoadList, SuspendProject,
};
use dayfly_types::ErrorCode;
use http::StatusCode;

use crate::admission::rates::{TooFast, TooManyCreates};
use crate::control::Control;
use crate::http::answer::{
    FindRefusals, NodeProjectRefusals, NodeRefusals, ProjectEndRefusals, ReadRefusals,
    TokenRefusals,
};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::{LooseFlag, ProjectParameter, parameters};
use crate::store::OverQuota;
use crate::tenancy::project_end::{self, EmptyError, Force};
use crate::tenancy::projects::{self, ProjectError};
use crate::tenancy::suspension;
use crate::tenancy::usage::{self, UsageError};
use crate::tenancy::whose::{OtherProjectParameter, WhoseParameter};

parameters! {
    /// What may go with a project.
    Query DeleteProjectParameter {
        /// Also delete its sandboxes, snapshots and volumes. `true`, `1`, `false` or `0`. Default
        /// false: it is deleted only if it has none.
        force: LooseFlag,
    }
}

/// All projects.
#[utoipa::path(get, path = "/v1/projects", operation_id = "list_projects", tag = "projects",
    responses((status = 200, body = ProjectList), ReadRefusals))]
pub(crate) async fn list(
    State(control): State<Arc<Control>>,
) -> Result<Json<ProjectList>, ApiError> {
    let items = projects::list(&control).await?;
    Ok(Json(ProjectList { items }))
}

/// Makes a project. It has no key yet.
#[utoipa::path(post, path = "/v1/projects", operation_id = "create_project", tag = "projects",
    request_body = CreateProject,
    responses((status = 201, body = Project), TokenRefusals))]
pub(crate) async fn create(
    State(control): State<Arc<Control>>,
    JsonObject(body): JsonObject<CreateProject>,
) -> Result<(StatusCode, Json<Project>), ApiError> {
    let made = projects::create(&control, body).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// One project.
#[utoipa::path(get, path = "/v1/projects/{project}", operation_id = "get_project", tag = "projects",
    params(ProjectParameter),
    responses((status = 200, body = Project), FindRefusals))]
pub(crate) async fn get(
    State(control): State<Arc<Control>>,
    ProjectParameter { project }: ProjectParameter,
) -> Result<Json<Project>, ApiError> {
    Ok(Json(projects::get(&control, &project).await?))
}

/// Deletes a project that has nothing, or with `force` everything of it. May be repeated.
#[utoipa::path(delete, path = "/v1/projects/{project}", operation_id = "delete_project", tag = "projects",
    params(ProjectParameter, DeleteProjectParameter),
    responses((status = 204, description = "It is gone."), ProjectEndRefusals))]
pub(crate) async fn delete(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ProjectParameter { project }: ProjectParameter,
    DeleteProjectParameter { force }: DeleteProjectParameter,
) -> Result<StatusCode, ApiError> {
    note(&control, &caller, &project).await?;
    caller.notebook.adds_to_detail("force", &force.to_string());
    let force = match force {
        true => Force::Everything,
        false => Force::OnlyEmpty,
    };
    let asked_by = (&caller.project, caller.key_prefix.as_str());
    project_end::delete(&control, asked_by, &project, force).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Suspends a project: its keys and links open nothing until it is resumed.
#[utoipa::path(post, path = "/v1/projects/{project}/suspend", operation_id = "suspend_project", tag = "projects",
    params(ProjectParameter), request_body = SuspendProject,
    responses((status = 200, body = ProjectSuspension), TokenRefusals))]
pub(crate) async fn suspend(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ProjectParameter { project }: ProjectParameter,
    JsonObject(body): JsonObject<SuspendProject>,
) -> Result<Json<ProjectSuspension>, ApiError> {
    note(&control, &caller, &project).await?;
    caller.notebook.adds_to_detail("reason", &body.reason);
    let done = suspension::suspend(&control, &caller.project, &project, body).await?;
    Ok(Json(done))
}

/// Lets a suspended project go on.
#[utoipa::path(post, path = "/v1/projects/{project}/resume", operation_id = "resume_project", tag = "projects",
    params(ProjectParameter),
    responses((status = 200, body = Project), TokenRefusals))]
pub(crate) async fn resume(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ProjectParameter { project }: ProjectParameter,
) -> Result<Json<Project>, ApiError> {
    note(&control, &caller, &project).await?;
    Ok(Json(suspension::resume(&control, &project).await?))
}

/// Has the entry in the record of the project that it is about, too.
async fn note(control: &Control, caller: &Caller, project: &str) -> Result<(), ProjectError> {
    let row = projects::find_ever(control, project).await?;
    caller.notebook.is_also_of(&row.id);
    Ok(())
}

/// Changes what a project may use. What it has already stays.
#[utoipa::path(patch, path = "/v1/projects/{project}", operation_id = "change_project", tag = "projects",
    params(ProjectParameter), request_body(content = Option<ChangeLimits>),
    responses((status = 200, body = Project), TokenRefusals))]
pub(crate) async fn change(
    State(control): State<Arc<Control>>,
    ProjectParameter { project }: ProjectParameter,
    JsonObject(body): JsonObject<ChangeLimits>,
) -> Result<Json<Project>, ApiError> {
    Ok(Json(projects::change(&control, &project, &body).await?))
}

/// What this project uses, and may use. An operator may ask about another.
#[utoipa::path(get, path = "/v1/usage", operation_id = "get_usage", tag = "projects",
    params(OtherProjectParameter),
    responses((status = 200, body = ProjectUsage), NodeProjectRefusals))]
pub(crate) async fn usage(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    whose: OtherProjectParameter,
) -> Result<Json<ProjectUsage>, ApiError> {
    let (project, limits) = match whose.named(&control, &caller).await? {
        Some(row) => (row.id, row.limits),
        None => (caller.project, caller.limits),
    };
    let usage = usage::of_project(&control, &project, &limits).await?;
    Ok(Json(usage))
}

/// What each project uses, and may use, for operators.
#[utoipa::path(get, path = "/v1/usage/projects", operation_id = "get_usage_of_all", tag = "projects",
    responses((status = 200, body = ProjectUsageList), NodeRefusals))]
pub(crate) async fn usage_of_all(
    State(control): State<Arc<Control>>,
) -> Result<Json<ProjectUsageList>, ApiError> {
    let items = usage::of_all(&control).await?;
    Ok(Json(ProjectUsageList { items }))
}

/// What each sandbox of this project that runs costs the host. An operator may ask about others.
#[utoipa::path(get, path = "/v1/usage/sandboxes", operation_id = "get_sandbox_loads", tag = "projects",
    params(WhoseParameter),
    responses((status = 200, body = SandboxLoadList), NodeProjectRefusals))]
pub(crate) async fn loads(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    whose: WhoseParameter,
) -> Result<Json<SandboxLoadList>, ApiError> {
    let whose = whose.of(&control, &caller).await?;
    let loads = usage::loads(&control, &whose).await?;
    Ok(Json(loads))
}

impl From<ProjectError> for ApiError {
    fn from(error: ProjectError) -> Self {
        let text = error.to_string();
        match error {
            ProjectError::Invalid(error) => error.into(),
            ProjectError::NotFound { .. } => Self::new(ErrorCode::NotFound, text),
            ProjectError::Exists { .. } | ProjectError::Past { .. } => {
                Self::new(ErrorCode::AlreadyExists, text)
            }
            ProjectError::Default
            | ProjectError::Own
            | ProjectError::Changed { .. }
            | ProjectError::NotEmpty { .. } => Self::new(ErrorCode::WrongState, text),
            ProjectError::Empty(error) => error.into(),
            ProjectError::Stopped => Self::internal(&error),
            ProjectError::Unrecorded(error) => error.into(),
            ProjectError::Store(error) => error.into(),
        }
    }
}

impl From<EmptyError> for ApiError {
    fn from(error: EmptyError) -> Self {
        let text = error.to_string();
        match error {
            EmptyError::Store(error) => error.into(),
            EmptyError::Sandbox(error) => error.into(),
            EmptyError::Node(error) => Self {
                message: text,
                ..Self::from(error)
            },
            EmptyError::Busy(error) => error.into(),
            EmptyError::Left => Self::new(ErrorCode::WrongState, text),
        }
    }
}

impl From<UsageError> for ApiError {
    fn from(error: UsageError) -> Self {
        match error {
            UsageError::Over(error) => error.into(),
            UsageError::Store(error) => error.into(),
            UsageError::Node(error) => error.into(),
            UsageError::Volume(error) => error.into(),
            UsageError::Busy(error) => error.into(),
            UsageError::ProjectClosed => Self::new(ErrorCode::ProjectSuspended, error.to_string()),
            UsageError::Stopped => Self::internal(&error),
        }
    }
}

impl From<OverQuota> for ApiError {
    fn from(error: OverQuota) -> Self {
        // Without a time to ask again: only the caller, or an operator, can change it.
        Self::new(ErrorCode::QuotaExceeded, error.to_string()).hint(Hint::Quota)
    }
}

impl From<TooFast> for ApiError {
    fn from(error: TooFast) -> Self {
        Self {
            retry_after: Some(error.retry_after),
            ..Self::new(ErrorCode::RateLimited, error.to_string())
        }
    }
}

impl From<TooManyCreates> for ApiError {
    fn from(error: TooManyCreates) -> Self {
        Self {
            retry_after: Some(std::time::Duration::from_secs(1)),
            ..Self::new(ErrorCode::RateLimited, error.to_string())
        }
    }
}
