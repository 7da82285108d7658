//! Files in a guest: their content, listings and what they are.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use dayfly_api::{DirectoryListing, FileEntry, FileWritten};
use dayfly_node_api::{FileBytes, FileRead, FileWrite, GuestPath, NodeCalls};
use dayfly_node_api::{ListDirectory, NodeError};
use dayfly_types::file::{FileStat, OpenedFile};
use dayfly_types::{ErrorCode, SandboxId};
use http::header::{ACCEPT_RANGES, CONTENT_RANGE, IF_RANGE, RANGE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::control::Control;
use crate::files::byte_range::{ByteRange, Slice};
use crate::files::query::{ListParameter, RangeParameters, UserParameter, WriteParameter};
use crate::files::transfer::{check_announced_length, download};
use crate::http::answer::{FileReadRefusals, FileRefusals, FileWriteRefusals};
use crate::http::auth::Caller;
use crate::http::error::ApiError;
use crate::http::parameter::{PathParameter, SandboxParameter};
use crate::sandbox::read::locate;

pub(crate) use crate::files::transfer::upload;

const BYTES: &str = "application/octet-stream";
/// A guest can be asked to begin at any byte up to here; beyond it no file system has one.
const FIRST_BYTE_MAX: u64 = 1 << 40;

/// Reads a file, or one range of its bytes.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/fs", operation_id = "read_file", tag = "files",
    params(SandboxParameter, PathParameter, UserParameter, RangeParameters),
    responses((status = 200, content_type = "application/octet-stream", body = Vec<u8>),
        (status = 206, content_type = "application/octet-stream", body = Vec<u8>,
            description = "The range that was asked for."),
        FileReadRefusals))]
pub(crate) async fn read(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    PathParameter { path }: PathParameter,
    UserParameter { user }: UserParameter,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    locate(&control, &caller.project, &id).await?;
    let place = control.limits.transfer(&caller.project)?;
    let source = Source {
        control: &control,
        id: &id,
        path: path.into_string(),
        user,
    };
    let Some(range) = wanted_range(&headers) else {
        let (info, content) = source.open(0, None).await?;
        // Files that the kernel makes up say 0 and have more.
        let length = Some(info.size).filter(|size| *size > 0);
        let mut answer = download(BYTES, length, content, place).await?;
        put(&mut answer, ACCEPT_RANGES, "bytes");
        return Ok(answer);
    };
    let (size, slice, content) = match source.open_range(range).await? {
        Found::Part(size, slice, content) => (size, slice, content),
        Found::Nothing(size) => return Ok(not_satisfiable(size)),
    };
    let mut answer = download(BYTES, Some(slice.length), content, place).await?;
    *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
    let last = slice.offset + slice.length - 1;
    put(
        &mut answer,
        CONTENT_RANGE,
        &format!("bytes {}-{last}/{size}", slice.offset),
    );
    Ok(answer)
}

/// A file to read from.
struct Source<'a> {
    control: &'a Control,
    id: &'a SandboxId,
    path: String,
    user: Option<String>,
}

/// What a range is of a file, with the file's size.
enum Found {
    Part(u64, Slice, FileBytes),
    Nothing(u64),
}

impl Source<'_> {
    async fn open(
        &self,
        offset: u64,
        limit: Option<u64>,
    ) -> Result<(OpenedFile, FileBytes), NodeError> {
        let request = FileRead {
            path: self.path.clone(),
            user: self.user.clone(),
            offset,
            limit,
        };
        self.control.node.read_file(self.id, request).await
    }

    async fn open_range(&self, range: ByteRange) -> Result<Found, NodeError> {
        if let ByteRange::From { first, last } = range
            && first <= FIRST_BYTE_MAX
        {
            let limit = last.map(|last| (last - first).saturating_add(1));
            let (info, content) = self.open(first, limit).await?;
            let slice = range.within(info.size);
            return Ok(slice.map_or(Found::Nothing(info.size), |slice| {
                Found::Part(info.size, slice, content)
            }));
        }
        // Where it begins depends on the size.
        let (info, _) = self.open(0, Some(0)).await?;
        let Some(slice) = range.within(info.size) else {
            return Ok(Found::Nothing(info.size));
        };
        let (_, content) = self.open(slice.offset, Some(slice.length)).await?;
        Ok(Found::Part(info.size, slice, content))
    }
}

/// The range that counts. With a condition none does: there is nothing to hold it against.
fn wanted_range(headers: &HeaderMap) -> Option<ByteRange> {
    let mut ranges = headers.get_all(RANGE).iter();
    let range = ranges.next()?.to_str().ok()?;
    if ranges.next().is_some() || headers.contains_key(IF_RANGE) {
        return None;
    }
    ByteRange::parse(range)
}

fn not_satisfiable(size: u64) -> Response {
    let message = format!("the file has {size} bytes, and none of those");
    let mut answer = ApiError::new(ErrorCode::RangeNotSatisfiable, message).into_response();
    put(&mut answer, CONTENT_RANGE, &format!("bytes */{size}"));
    answer
}

fn put(answer: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}

/// Writes a file, with its parent directories, in one step: readers see the old content or the
/// new. With `append` or `offset` it is written in place instead.
#[utoipa::path(put, path = "/v1/sandboxes/{id}/fs", operation_id = "write_file", tag = "files",
    params(SandboxParameter, PathParameter, WriteParameter),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = FileWritten), FileWriteRefusals))]
pub(crate) async fn write(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    PathParameter { path }: PathParameter,
    options: WriteParameter,
    request: Request,
) -> Result<Json<FileWritten>, ApiError> {
    let place = options.place()?;
    check_announced_length(&request)?;
    locate(&control, &caller.project, &id).await?;
    let _place = control.limits.transfer(&caller.project)?;
    let wanted = FileWrite {
        path: path.as_str().to_owned(),
        place,
        user: options.user,
        mode: options.mode,
    };
    let content = upload(request.into_body());
    let bytes = control.node.write_file(&id, wanted, content).await?;
    Ok(Json(FileWritten {
        path: path.into_string(),
        bytes,
    }))
}

/// Lists a directory: all of it up to a limit, or page by page.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/fs/dir", operation_id = "list_directory", tag = "files",
    params(SandboxParameter, PathParameter, ListParameter),
    responses((status = 200, body = DirectoryListing), FileRefusals))]
pub(crate) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    PathParameter { path }: PathParameter,
    options: ListParameter,
) -> Result<Json<DirectoryListing>, ApiError> {
    locate(&control, &caller.project, &id).await?;
    let request = ListDirectory {
        path: path.into_string(),
        limit: options.limit(),
        depth: options.depth(),
        user: options.user,
        after: options.after,
    };
    let directory = control.node.list_directory(&id, request).await?;
    let entries: Vec<FileEntry> = directory.entries.into_iter().map(present).collect();
    let last = entries.last().map(|entry| entry.name.clone());
    Ok(Json(DirectoryListing {
        entries,
        truncated: directory.has_more,
        has_more: directory.has_more,
        next_after: last.filter(|_| directory.has_more),
    }))
}

/// Describes a file, without following a link.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/fs/stat", operation_id = "stat_file", tag = "files",
    params(SandboxParameter, PathParameter, UserParameter),
    responses((status = 200, body = FileEntry), FileRefusals))]
pub(crate) async fn stat(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    PathParameter { path }: PathParameter,
    UserParameter { user }: UserParameter,
) -> Result<Json<FileEntry>, ApiError> {
    locate(&control, &caller.project, &id).await?;
    let request = GuestPath {
        path: path.into_string(),
        user,
    };
    Ok(Json(present(control.node.stat(&id, request).await?)))
}

fn present(entry: FileStat) -> FileEntry {
    FileEntry {
        name: entry.name,
        path: entry.path,
        is_dir: entry.is_dir,
        is_symlink: entry.is_symlink,
        size: entry.size,
        mode: entry.mode.to_string(),
        mtime: entry.mtime,
        uid: entry.uid,
        gid: entry.gid,
    }
}
