//! Projects, for operators, and what a project uses.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{
    ChangeLimits, CreateProject, Hint, Project, ProjectList, ProjectUsage, ProjectUsageList,
    SandboxLoadList,
};
use dayfly_types::ErrorCode;
use http::StatusCode;

use crate::admission::rates::{TooFast, TooManyCreates};
use crate::control::Control;
use crate::http::answer::{
    FindRefusals, NodeProjectRefusals, NodeRefusals, ReadRefusals, TokenRefusals,
};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::ProjectParameter;
use crate::store::OverQuota;
use crate::tenancy::projects::{self, ProjectError};
use crate::tenancy::usage::{self, UsageError};
use crate::tenancy::whose::{OtherProjectParameter, WhoseParameter};

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
    let project = whose.of(&control, &caller).await?;
    let limits = if project == caller.project {
        caller.limits
    } else {
        projects::find(&control, project.as_str()).await?.limits
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
            ProjectError::Exists { .. } => Self::new(ErrorCode::AlreadyExists, text),
            ProjectError::Unrecorded(error) => error.into(),
            ProjectError::Store(error) => error.into(),
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
