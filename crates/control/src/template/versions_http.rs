//! Templates of projects.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use dayfly_api::{
    CreateTemplate, EnsureImage, ImageTemplate, SetTemplateTag, TemplateVersion,
    TemplateVersionList,
};

use crate::control::Control;
use crate::http::answer::{ChangeRefusals, NodeFindRefusals, RemoveRefusals};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::{TagName, TemplateParameter, VersionName, parameters};
use crate::store::TagRow;
use crate::template::images::{self, ImageWish};
use crate::template::reference::{self, VersionReference, Which};
use crate::template::versions::{self, Maker, NewVersion};

parameters! {
    Path TagParameter {
        /// The tag.
        tag: TagName,
    }

    Path VersionParameter {
        /// The version.
        version: VersionName,
    }
}

/// Makes sure that the image of a container can be used by the project, and says how far it is: it is
/// fetched and baked the first time. May be repeated.
#[utoipa::path(post, path = "/v1/templates/images", operation_id = "ensure_image", tag = "templates",
    request_body = EnsureImage,
    responses((status = 200, body = ImageTemplate), ChangeRefusals))]
pub(crate) async fn ensure_image(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    JsonObject(body): JsonObject<EnsureImage>,
) -> Result<Json<ImageTemplate>, ApiError> {
    let wish = ImageWish::parse(body)?;
    let key = Some(caller.key_prefix.as_str());
    let report = images::ensure(&control, &caller.project, &wish, key).await?;
    Ok(Json(images::present_image(&wish.address, report)))
}

/// Makes a new version of a template of the project, from the disk of a snapshot, and does not wait
/// for it. No tag means it until one is set.
#[utoipa::path(post, path = "/v1/templates", operation_id = "create_template", tag = "templates",
    request_body = CreateTemplate,
    responses((status = 202, body = TemplateVersion), ChangeRefusals))]
pub(crate) async fn create(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    JsonObject(body): JsonObject<CreateTemplate>,
) -> Result<(StatusCode, Json<TemplateVersion>), ApiError> {
    let new = NewVersion::parse(body)?;
    let maker = Maker {
        project: &caller.project,
        key: &caller.key_prefix,
    };
    let version = versions::create(&control, maker, new).await?;
    caller.notebook.names_subject(&version.name);
    caller.notebook.adds_to_detail("version", &version.id);
    Ok((StatusCode::ACCEPTED, Json(version)))
}

/// All versions of a template of the project, newest first.
#[utoipa::path(get, path = "/v1/templates/{name}/versions", operation_id = "list_template_versions", tag = "templates",
    params(TemplateParameter),
    responses((status = 200, body = TemplateVersionList), NodeFindRefusals))]
pub(crate) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    TemplateParameter { name }: TemplateParameter,
) -> Result<Json<TemplateVersionList>, ApiError> {
    let items = versions::list(&control, &caller.project, name.as_str()).await?;
    Ok(Json(TemplateVersionList { items }))
}

/// One version, by its id or by a tag.
#[utoipa::path(get, path = "/v1/templates/{name}/versions/{version}", operation_id = "get_template_version", tag = "templates",
    params(TemplateParameter, VersionParameter),
    responses((status = 200, body = TemplateVersion), NodeFindRefusals))]
pub(crate) async fn get(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    TemplateParameter { name }: TemplateParameter,
    VersionParameter { version }: VersionParameter,
) -> Result<Json<TemplateVersion>, ApiError> {
    let which = match reference::version_id("version", &version) {
        Ok(id) => Which::Version(id.to_owned()),
        Err(_) => Which::Tag(version),
    };
    let name = name.to_string();
    let wanted = VersionReference { name, which };
    Ok(Json(
        versions::get(&control, &caller.project, &wanted).await?,
    ))
}

/// Deletes a version that no tag means. Sandboxes and snapshots that were made from it stay. May be
/// repeated.
#[utoipa::path(delete, path = "/v1/templates/{name}/versions/{version}", operation_id = "delete_template_version", tag = "templates",
    params(TemplateParameter, VersionParameter),
    responses((status = 204, description = "It is gone."), RemoveRefusals))]
pub(crate) async fn delete_version(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    TemplateParameter { name }: TemplateParameter,
    VersionParameter { version }: VersionParameter,
) -> Result<StatusCode, ApiError> {
    let id = reference::version_id("version", &version)?.to_owned();
    let (name, which) = (name.to_string(), Which::Version(id));
    let wanted = VersionReference { name, which };
    versions::delete_version(&control, &caller.project, &wanted).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a template of the project with all its versions and tags. Those of the server stay. Sandboxes and snapshots that were
/// made from it stay. May be repeated.
#[utoipa::path(delete, path = "/v1/templates/{name}", operation_id = "delete_template", tag = "templates",
    params(TemplateParameter),
    responses((status = 204, description = "It is gone."), RemoveRefusals))]
pub(crate) async fn delete(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    TemplateParameter { name }: TemplateParameter,
) -> Result<StatusCode, ApiError> {
    versions::delete_template(&control, &caller.project, name.as_str()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lets a tag mean a version of the same template: to promote one, or to go back. Sandboxes that are
/// created with the tag from then on are of that version.
#[utoipa::path(put, path = "/v1/templates/{name}/tags/{tag}", operation_id = "set_template_tag", tag = "templates",
    params(TemplateParameter, TagParameter), request_body = SetTemplateTag,
    responses((status = 200, body = TemplateVersion), ChangeRefusals))]
pub(crate) async fn set_tag(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    TemplateParameter { name }: TemplateParameter,
    TagParameter { tag }: TagParameter,
    JsonObject(body): JsonObject<SetTemplateTag>,
) -> Result<Json<TemplateVersion>, ApiError> {
    reference::check_tag(&tag)?;
    let id = reference::version_id("version", &body.version)?;
    caller.notebook.adds_to_detail("version", id);
    let row = TagRow {
        name: name.to_string(),
        tag,
        version_id: id.to_owned(),
    };
    let version = versions::set_tag(&control, &caller.project, row).await?;
    Ok(Json(version))
}

/// Deletes a tag; the version stays. May be repeated.
#[utoipa::path(delete, path = "/v1/templates/{name}/tags/{tag}", operation_id = "delete_template_tag", tag = "templates",
    params(TemplateParameter, TagParameter),
    responses((status = 204, description = "It is gone."), RemoveRefusals))]
pub(crate) async fn delete_tag(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    TemplateParameter { name }: TemplateParameter,
    TagParameter { tag }: TagParameter,
) -> Result<StatusCode, ApiError> {
    reference::check_tag(&tag)?;
    let store = &control.store;
    store
        .delete_tag(&caller.project, name.as_str(), &tag)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
