//! What can be done to files beside writing them, and what was done to them.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{ChangeList, ChangeMode, ChangedFile, MakeDirectory, MoveFile};
use dayfly_node_api::{ChangesSince, ListChanges, NodeCalls, RemoveFile};
use dayfly_types::ProjectId;
use dayfly_types::file::{ChangeKind, ChangedPath};
use dayfly_types::limits::DIRECTORY_ENTRIES_MAX;
use http::StatusCode;

use crate::control::Control;
use crate::files::query::{RecursiveParameter, SinceParameter};
use crate::files::spec;
use crate::http::answer::{FileChangeRefusals, FileRefusals};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::{PathParameter, SandboxParameter};
use crate::sandbox::read::locate;
use crate::snapshot::name as snapshot_name;
use crate::snapshot::read::{self as snapshot_read, FindSnapshotError};

/// Makes a directory.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/fs/mkdir", operation_id = "make_directory", tag = "files",
    params(SandboxParameter),
    request_body = MakeDirectory,
    responses((status = 204, description = "It is there."), FileChangeRefusals))]
pub(crate) async fn make_directory(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<MakeDirectory>,
) -> Result<StatusCode, ApiError> {
    let request = spec::make_directory(body)?;
    caller.notebook.names_file(&request.path);
    locate(&control, &caller.project, &id).await?;
    control.node.make_directory(&id, request).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a file or a directory another path, in one step.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/fs/move", operation_id = "move_file", tag = "files",
    params(SandboxParameter),
    request_body = MoveFile,
    responses((status = 204, description = "It is at its new place."), FileChangeRefusals))]
pub(crate) async fn move_file(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<MoveFile>,
) -> Result<StatusCode, ApiError> {
    let request = spec::move_file(body)?;
    caller
        .notebook
        .names_file(&format!("{} to {}", request.from, request.to));
    locate(&control, &caller.project, &id).await?;
    control.node.move_file(&id, request).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Changes permission bits. A link has none, and what it leads to is not changed through it.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/fs/chmod", operation_id = "change_mode", tag = "files",
    params(SandboxParameter),
    request_body = ChangeMode,
    responses((status = 204, description = "It has them."), FileChangeRefusals))]
pub(crate) async fn change_mode(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<ChangeMode>,
) -> Result<StatusCode, ApiError> {
    let request = spec::change_mode(body)?;
    caller.notebook.names_file(&request.path);
    locate(&control, &caller.project, &id).await?;
    control.node.change_mode(&id, request).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a file or an empty directory, or a directory with everything in it.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/fs", operation_id = "remove_file", tag = "files",
    params(SandboxParameter, PathParameter, RecursiveParameter),
    responses((status = 204, description = "It is gone."), FileRefusals))]
pub(crate) async fn remove(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    PathParameter { path }: PathParameter,
    options: RecursiveParameter,
) -> Result<StatusCode, ApiError> {
    locate(&control, &caller.project, &id).await?;
    let request = RemoveFile {
        path: path.into_string(),
        user: options.user,
        recursive: options.recursive,
    };
    control.node.remove_file(&id, request).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The node knows snapshots by their ids alone.
async fn by_id(
    control: &Control,
    project: &ProjectId,
    since: ChangesSince,
) -> Result<ChangesSince, FindSnapshotError> {
    match since {
        ChangesSince::Snapshot(name) if snapshot_name::reference(name.as_str()).is_some() => {
            let found = snapshot_read::find(control.node.as_ref(), project, &name).await?;
            Ok(ChangesSince::Snapshot(found.id))
        }
        ChangesSince::Create | ChangesSince::Snapshot(_) | ChangesSince::UnixNanos(_) => Ok(since),
    }
}

/// Lists what differs on the sandbox's disk since it began or since one of its snapshots.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/fs/changes", operation_id = "list_changes", tag = "files",
    params(SandboxParameter, PathParameter, SinceParameter),
    responses((status = 200, body = ChangeList), FileRefusals))]
pub(crate) async fn list_changes(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    PathParameter { path }: PathParameter,
    SinceParameter { since }: SinceParameter,
) -> Result<Json<ChangeList>, ApiError> {
    locate(&control, &caller.project, &id).await?;
    let request = ListChanges {
        path: path.into_string(),
        since: by_id(&control, &caller.project, since).await?,
        limit: DIRECTORY_ENTRIES_MAX,
    };
    let changes = control.node.list_changes(&id, request).await?;
    let mut entries: Vec<ChangedFile> = changes.entries.into_iter().map(present).collect();
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(Json(ChangeList {
        entries,
        truncated: changes.truncated,
    }))
}

fn present(changed: ChangedPath) -> ChangedFile {
    let kind = match changed.kind {
        ChangeKind::Added => "added",
        // The node passes on only what it knows.
        ChangeKind::Modified | ChangeKind::Unknown => "modified",
        ChangeKind::Removed => "removed",
    };
    ChangedFile {
        path: changed.path,
        kind: kind.to_owned(),
        is_dir: changed.is_dir,
        size: changed.size,
        mtime: changed.mtime,
    }
}
