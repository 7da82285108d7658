//! Trees of files as tar archives.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use axum::{Extension, Json};
use dayfly_api::FileWritten;
use dayfly_node_api::GuestPath;

use crate::control::Control;
use crate::files::query::UserParameter;
use crate::files::transfer::{check_announced_length, download, upload};
use crate::http::answer::{FileRefusals, FileWriteRefusals};
use crate::http::auth::Caller;
use crate::http::error::ApiError;
use crate::http::parameter::{PathParameter, SandboxParameter};
use crate::sandbox::read::locate;

/// Gives a directory, or one file, as a tar archive with relative names. Pipes, sockets and
/// devices are left out. A body that breaks off means that something could not be read.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/fs/tar", operation_id = "download_tree", tag = "files",
    params(SandboxParameter, PathParameter, UserParameter),
    responses((status = 200, content_type = "application/x-tar", body = Vec<u8>), FileRefusals))]
pub(crate) async fn download_tree(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    PathParameter { path }: PathParameter,
    UserParameter { user }: UserParameter,
) -> Result<Response, ApiError> {
    locate(&control, &caller.project, &id).await?;
    let place = control.limits.transfer(&caller.project)?;
    let request = GuestPath {
        path: path.into_string(),
        user,
    };
    let content = control.node.pack_tree(&id, request).await?;
    download("application/x-tar", None, content, place).await
}

/// Unpacks a tar archive below a directory, which is made if it is not there. Nothing is written
/// outside of it: an archive that wants to is refused at that member, and what came before stays.
#[utoipa::path(put, path = "/v1/sandboxes/{id}/fs/tar", operation_id = "upload_tree", tag = "files",
    params(SandboxParameter, PathParameter, UserParameter),
    request_body(content = Vec<u8>, content_type = "application/x-tar"),
    responses((status = 200, body = FileWritten), FileWriteRefusals))]
pub(crate) async fn upload_tree(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    PathParameter { path }: PathParameter,
    UserParameter { user }: UserParameter,
    request: Request,
) -> Result<Json<FileWritten>, ApiError> {
    check_announced_length(&request)?;
    locate(&control, &caller.project, &id).await?;
    let _place = control.limits.transfer(&caller.project)?;
    let target = GuestPath {
        path: path.as_str().to_owned(),
        user,
    };
    let content = upload(request.into_body());
    let bytes = control.node.unpack_tree(&id, target, content).await?;
    Ok(Json(FileWritten {
        path: path.into_string(),
        bytes,
    }))
}
