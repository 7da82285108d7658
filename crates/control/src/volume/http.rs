//! Volumes.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{CreateVolume, GrowVolume, Volume, VolumeList};
use dayfly_types::VolumeName;
use http::StatusCode;

use crate::control::Control;
use crate::http::answer::{ChangeRefusals, NodeFindRefusals, NodeRefusals, RemoveRefusals};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::VolumeParameter;
use crate::input::Invalid;
use crate::input::quantity::volume_size;
use crate::tenancy::usage::{self, VolumeChange, VolumeWish};
use crate::volume::change::{self, Created};

/// Makes a volume. One with the same name and size is returned as it is.
#[utoipa::path(post, path = "/v1/volumes", operation_id = "create_volume", tag = "volumes",
    request_body = CreateVolume,
    responses((status = 201, body = Volume), (status = 200, body = Volume, description = "It was there."), ChangeRefusals))]
pub(crate) async fn create(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    JsonObject(body): JsonObject<CreateVolume>,
) -> Result<(StatusCode, Json<Volume>), ApiError> {
    let name = VolumeName::parse(&body.name)
        .map_err(|error| Invalid::field("name", format!("is not a name: {error}")))?;
    let size = volume_size(body.size_mb, body.size_gb)?;
    caller.notebook.names_subject(name.as_str());
    let wish = VolumeWish {
        project: caller.project,
        limits: caller.limits,
        name,
        size,
    };
    let created = usage::change_volume(control, wish, VolumeChange::Create).await?;
    Ok(match created {
        Created::New(volume) => (StatusCode::CREATED, Json(volume)),
        Created::Same(volume) => (StatusCode::OK, Json(volume)),
    })
}

/// All volumes of the project, by name.
#[utoipa::path(get, path = "/v1/volumes", operation_id = "list_volumes", tag = "volumes",
    responses((status = 200, body = VolumeList), NodeRefusals))]
pub(crate) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<VolumeList>, ApiError> {
    let items = change::list(control.node.as_ref(), &caller.project).await?;
    Ok(Json(VolumeList { items }))
}

/// One volume.
#[utoipa::path(get, path = "/v1/volumes/{name}", operation_id = "get_volume", tag = "volumes", params(VolumeParameter),
    responses((status = 200, body = Volume), NodeFindRefusals))]
pub(crate) async fn get(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    VolumeParameter { name }: VolumeParameter,
) -> Result<Json<Volume>, ApiError> {
    let volume = change::get(control.node.as_ref(), &caller.project, &name).await?;
    Ok(Json(volume))
}

/// Makes a volume larger.
#[utoipa::path(patch, path = "/v1/volumes/{name}", operation_id = "grow_volume", tag = "volumes", params(VolumeParameter),
    request_body = GrowVolume,
    responses((status = 200, body = Volume), ChangeRefusals))]
pub(crate) async fn grow(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    VolumeParameter { name }: VolumeParameter,
    JsonObject(body): JsonObject<GrowVolume>,
) -> Result<Json<Volume>, ApiError> {
    let size = volume_size(body.size_mb, body.size_gb)?;
    let wish = VolumeWish {
        project: caller.project,
        limits: caller.limits,
        name,
        size,
    };
    let changed = usage::change_volume(control, wish, VolumeChange::Grow).await?;
    let (Created::New(volume) | Created::Same(volume)) = changed;
    Ok(Json(volume))
}

/// Deletes a volume with what is on it. May be repeated.
#[utoipa::path(delete, path = "/v1/volumes/{name}", operation_id = "delete_volume", tag = "volumes", params(VolumeParameter),
    responses((status = 204, description = "It is gone."), RemoveRefusals))]
pub(crate) async fn delete(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    VolumeParameter { name }: VolumeParameter,
) -> Result<StatusCode, ApiError> {
    change::delete(control.node.as_ref(), &caller.project, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
