//! Files in a guest.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use dayfly_api::{DirectoryListing, FileEntry, FileWritten};
use dayfly_node_api::{DirectoryEntry, FileBytes, FileRead, FileWrite, NodeError};
use dayfly_types::ErrorCode;
use dayfly_types::limits::FILE_BYTES_MAX;
use futures::StreamExt;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http_body_util::BodyExt;

use super::answer::{FileRefusals, FileWriteRefusals};
use super::auth::Caller;
use super::error::ApiError;
use super::parameter::{PathParameter, PathParameters, SandboxParameter, SandboxParameters};
use crate::app::sandbox_read::locate;
use crate::control::Control;
use crate::limit::Place;

/// A sender may pause this long between two pieces of a file.
const UPLOAD_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Reads a file.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/fs", operation_id = "read_file", tag = "files",
    params(SandboxParameters, PathParameters),
    responses((status = 200, content_type = "application/octet-stream", body = Vec<u8>),
        FileRefusals))]
pub(super) async fn read(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter(id): SandboxParameter,
    PathParameter(path): PathParameter,
) -> Result<Response, ApiError> {
    locate(&control, &caller.project, &id).await?;
    let place = control.limits.transfer()?;
    let request = FileRead {
        path: path.into_string(),
        user: None,
    };
    let (info, content) = control.node.read_file(&id, request).await?;
    download(info.size, content, place).await
}

/// Writes a file, with its parent directories, in one step: readers see the old content or the
/// new.
#[utoipa::path(put, path = "/v1/sandboxes/{id}/fs", operation_id = "write_file", tag = "files",
    params(SandboxParameters, PathParameters),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = FileWritten), FileWriteRefusals))]
pub(super) async fn write(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter(id): SandboxParameter,
    PathParameter(path): PathParameter,
    request: Request,
) -> Result<Json<FileWritten>, ApiError> {
    if announced_length(&request) > FILE_BYTES_MAX {
        return Err(too_large().into());
    }
    locate(&control, &caller.project, &id).await?;
    let _place = control.limits.transfer()?;
    let wanted = FileWrite {
        path: path.as_str().to_owned(),
        user: None,
        mode: None,
    };
    let bytes = control
        .node
        .write_file(&id, wanted, upload(request.into_body()))
        .await?;
    Ok(Json(FileWritten {
        path: path.into_string(),
        bytes,
    }))
}

/// Lists a directory.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/fs/dir", operation_id = "list_directory", tag = "files",
    params(SandboxParameters, PathParameters),
    responses((status = 200, body = DirectoryListing), FileRefusals))]
pub(super) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter(id): SandboxParameter,
    PathParameter(path): PathParameter,
) -> Result<Json<DirectoryListing>, ApiError> {
    locate(&control, &caller.project, &id).await?;
    let directory = control.node.list_directory(&id, path.as_str()).await?;
    let entries = directory.entries.into_iter().map(present).collect();
    Ok(Json(DirectoryListing {
        entries,
        truncated: directory.truncated,
    }))
}

/// Describes a file, without following a link.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/fs/stat", operation_id = "stat_file", tag = "files",
    params(SandboxParameters, PathParameters),
    responses((status = 200, body = FileEntry), FileRefusals))]
pub(super) async fn stat(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter(id): SandboxParameter,
    PathParameter(path): PathParameter,
) -> Result<Json<FileEntry>, ApiError> {
    locate(&control, &caller.project, &id).await?;
    Ok(Json(present(control.node.stat(&id, path.as_str()).await?)))
}

fn present(entry: DirectoryEntry) -> FileEntry {
    FileEntry {
        name: entry.name,
        path: entry.path,
        is_dir: entry.is_dir,
        is_symlink: entry.is_symlink,
        size: entry.size,
        mode: format!("{:04o}", entry.mode & 0o7777),
        mtime: entry.mtime,
        uid: entry.uid,
        gid: entry.gid,
    }
}

fn announced_length(request: &Request) -> u64 {
    let value = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    value.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn too_large() -> NodeError {
    let message = format!("a file may have at most {FILE_BYTES_MAX} bytes");
    NodeError::new(ErrorCode::TooLarge, message)
}

/// The request's body as the content of a file. Asks for more only when the node does.
fn upload(body: Body) -> FileBytes {
    let state = Some((body, FILE_BYTES_MAX));
    futures::stream::unfold(state, async |state| {
        let (mut body, left) = state?;
        let piece = match tokio::time::timeout(UPLOAD_PAUSE_MAX, body.frame()).await {
            Err(_) => Err(NodeError::new(
                ErrorCode::InvalidRequest,
                "the upload stood still",
            )),
            Ok(None) => return None,
            Ok(Some(Err(_))) => Err(NodeError::new(
                ErrorCode::InvalidRequest,
                "the upload broke off",
            )),
            Ok(Some(Ok(frame))) => Ok(frame.into_data().unwrap_or_default()),
        };
        let piece = piece.and_then(|bytes| {
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            Ok((left.checked_sub(length).ok_or_else(too_large)?, bytes))
        });
        match piece {
            Ok((left, bytes)) => Some((Ok(bytes), Some((body, left)))),
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

/// The answer with a file's content. A file with a size has that length, so that a cut one is
/// noticed; files that the kernel makes up say 0 and are sent to their end.
async fn download(size: u64, mut content: FileBytes, place: Place) -> Result<Response, ApiError> {
    let kind = [
        (CONTENT_TYPE, "application/octet-stream"),
        // A guest's file is nothing that a browser may run here.
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    // The first piece decides between a status and a broken connection for an early failure.
    let first = match content.next().await.transpose()? {
        Some(first) => first,
        None if size == 0 => {
            return Ok((kind, [(CONTENT_LENGTH, "0")], Body::empty()).into_response());
        }
        None => return Err(cut_short().into()),
    };
    let content = futures::stream::once(async { Ok(first) }).chain(content);
    if size == 0 {
        let body = content.map(move |piece| {
            let _held = &place;
            piece
        });
        return Ok((kind, Body::from_stream(body)).into_response());
    }
    let length = [(CONTENT_LENGTH, size.to_string())];
    Ok((
        kind,
        length,
        Body::from_stream(exactly(size, content.boxed(), place)),
    )
        .into_response())
}

/// The first `size` bytes; an error when there are fewer. A file that grows is cut, because its
/// length is already announced.
fn exactly(size: u64, content: FileBytes, place: Place) -> FileBytes {
    futures::stream::unfold(Some((content, size, place)), async |state| {
        let (mut content, left, place) = state?;
        if left == 0 {
            return None;
        }
        match content.next().await.unwrap_or_else(|| Err(cut_short())) {
            Err(error) => Some((Err(error), None)),
            Ok(mut bytes) => {
                bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                let left = left - u64::try_from(bytes.len()).unwrap_or(left);
                Some((Ok(bytes), Some((content, left, place))))
            }
        }
    })
    .boxed()
}

fn cut_short() -> NodeError {
    NodeError::new(
        ErrorCode::GuestUnavailable,
        "the file ended before its length",
    )
}
