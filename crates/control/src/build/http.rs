//! Builds of templates in the server.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use dayfly_api::{BuildTemplateForm, TemplateBuild};
use dayfly_types::ErrorCode;

use super::form::{self, FormError};
use super::order::NewBuild;
use super::port::{BuildKey, TemplateBuilder};
use super::read::{self, FindBuildError, FoundBuild, present};
use super::start::{self, BuildAsker, StartBuildError};
use crate::control::Control;
use crate::http::Arrival;
use crate::http::answer::{BuildRefusals, FindRefusals, ReadRefusals};
use crate::http::auth::{Caller, key_ended};
use crate::http::error::ApiError;
use crate::http::key_bound::is_key_end;
use crate::http::parameter::{BuildName, parameters};
use crate::tenancy::key::bearer;

/// A build that was cancelled has ended before this long.
const CANCEL_DEADLINE: Duration = Duration::from_secs(5);

parameters! {
    Path BuildParameter {
        /// The build.
        id: BuildName,
    }
}

/// What runs builds, where something does.
#[derive(Clone)]
pub(crate) struct RunsBuilds(pub(crate) Arc<dyn TemplateBuilder>);

/// Builds a template of the project, from a Dockerfile or an image, and does not wait for it. The
/// build does what the caller could do with the same key: steps run in sandboxes of the project, and
/// a step that an earlier build has done is not done again.
///
/// Every part of the form with a file name is a file of the build context: its field name is the path
/// below it, and `context.modes` says the modes that are not 0644. `.dockerignore` holds. A build
/// context has at most 10,000 files of together 256 MiB; two builds of a project may be under way.
#[utoipa::path(post, path = "/v1/templates/build", operation_id = "build_template", tag = "templates",
    request_body(content(
        (BuildTemplateForm = "multipart/form-data"),
        (BuildTemplateForm = "application/x-www-form-urlencoded"))),
    responses((status = 202, body = TemplateBuild), BuildRefusals))]
pub(crate) async fn build(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    runs: Option<Extension<RunsBuilds>>,
    arrival: Option<Extension<Arrival>>,
    request: Request,
) -> Result<(StatusCode, Json<TemplateBuild>), ApiError> {
    let Some(Extension(RunsBuilds(builder))) = runs else {
        let text = "this server runs no builds; run `dayfly template build` where the files are";
        return Err(ApiError::new(ErrorCode::NotImplemented, text));
    };
    let Some(key) = bearer(request.headers()).map(BuildKey::new) else {
        return Err(ApiError::new(
            ErrorCode::Unauthorized,
            "this needs an API key",
        ));
    };
    let place = control.builds.place(&caller.project)?;
    let form = form::read(request, &control.builds.directory).await?;
    let wanted = NewBuild::parse(form)?;
    let asker = BuildAsker {
        project: caller.project.clone(),
        key,
        key_prefix: caller.key_prefix.clone(),
        client: arrival.map(|Extension(arrival)| arrival.client),
    };
    let begun = start::start(&control, builder, asker, wanted, place).await?;
    caller.notebook.names_subject(&begun.name);
    caller.notebook.adds_to_detail("build", &begun.id);
    Ok((StatusCode::ACCEPTED, Json(begun)))
}

/// The builds of the project that are remembered, newest first, at most 100.
#[utoipa::path(get, path = "/v1/templates/builds", operation_id = "list_builds", tag = "templates",
    responses((status = 200, body = Vec<TemplateBuild>), ReadRefusals))]
pub(crate) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Vec<TemplateBuild>>, ApiError> {
    Ok(Json(read::list(&control, &caller.project).await?))
}

/// One build. One that ran when the server was ended has failed.
#[utoipa::path(get, path = "/v1/templates/builds/{id}", operation_id = "get_build", tag = "templates",
    params(BuildParameter),
    responses((status = 200, body = TemplateBuild), FindRefusals))]
pub(crate) async fn get(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    BuildParameter { id }: BuildParameter,
) -> Result<Json<TemplateBuild>, ApiError> {
    let found = read::find(&control, &caller.project, &id).await?;
    Ok(Json(present(found.row())))
}

/// Cancels a build that runs; steps that are done are kept, and its builder goes within two minutes.
/// Forgets one that has ended; what it made stays.
#[utoipa::path(delete, path = "/v1/templates/builds/{id}", operation_id = "delete_build", tag = "templates",
    params(BuildParameter),
    responses((status = 204, description = "It is cancelled, or forgotten."), FindRefusals))]
pub(crate) async fn delete(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    BuildParameter { id }: BuildParameter,
) -> Result<StatusCode, ApiError> {
    let project = &caller.project;
    match read::find(&control, project, &id).await? {
        FoundBuild::Live(live) if live.row().is_open() => {
            live.cancelled.cancel();
            let mut watch = live.log.watch();
            let ended = async { while live.row().is_open() && watch.changed().await.is_ok() {} };
            // It ends in any case.
            let _ = tokio::time::timeout(CANCEL_DEADLINE, ended).await;
        }
        FoundBuild::Live(_) | FoundBuild::Row(_) => {
            control.store.delete_build(project, &id).await?;
            control.builds.forget(project, &id);
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

impl From<FindBuildError> for ApiError {
    fn from(error: FindBuildError) -> Self {
        match error {
            FindBuildError::NotFound { .. } => Self::new(ErrorCode::NotFound, error.to_string()),
            FindBuildError::Store(_) => Self::internal(&error),
        }
    }
}

impl From<StartBuildError> for ApiError {
    fn from(error: StartBuildError) -> Self {
        match (error.code(), error) {
            (Some(code), error) => Self::new(code, error.to_string()),
            (None, StartBuildError::Name(error)) => error.into(),
            (None, error) => Self::internal(&error),
        }
    }
}

impl From<FormError> for ApiError {
    fn from(error: FormError) -> Self {
        let text = error.to_string();
        match error {
            FormError::MediaType => Self::new(ErrorCode::UnsupportedMediaType, text),
            FormError::TooLarge { .. } => Self::new(ErrorCode::TooLarge, text),
            // The body may notice before whoever waits for the answer.
            FormError::BrokenOff(cause) if is_key_end(&cause) => key_ended(),
            FormError::TooSlow | FormError::BrokenOff(_) | FormError::Unfit(_) => {
                Self::invalid(text)
            }
            FormError::Keep(cause) if is_full(&cause) => {
                let text = "the disk of the server has no room for the build context";
                Self::new(ErrorCode::StorageFull, text)
            }
            FormError::Keep(_) => Self::internal(&error),
        }
    }
}

fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}
