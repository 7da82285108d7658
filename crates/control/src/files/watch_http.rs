//! Changes of a directory as server-sent events.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use dayfly_api::FileChange;
use dayfly_node_api::{FileChanges, NodeError, WatchFiles};
use dayfly_types::file::{WatchEvent, WatchKind};
use futures::StreamExt;
use serde::Serialize;

use crate::admission::limit::Permit;
use crate::control::Control;
use crate::files::query::RecursiveParameter;
use crate::http::answer::FileRefusals;
use crate::http::auth::Caller;
use crate::http::error::ApiError;
use crate::http::parameter::{PathParameter, SandboxParameter};
use crate::http::sse;
use crate::sandbox::read::locate;

/// After this much silence a comment shows that the connection lives.
const COMMENT_INTERVAL: Duration = Duration::from_secs(10);

/// Data of an event that says nothing but its name.
#[derive(Debug, Serialize)]
struct Nothing {}

/// Data of the `error` event.
#[derive(Debug, Serialize)]
struct ErrorEvent {
    error: String,
    code: &'static str,
}

/// Reports changes of a directory until the caller leaves: `ready`, then `change` events, and
/// `overflow` where some were lost. `end` when the directory is gone, `error` when the guest is.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/fs/watch", operation_id = "watch_files", tag = "files",
    params(SandboxParameter, PathParameter, RecursiveParameter),
    responses((status = 200, content_type = "text/event-stream", body = FileChange,
        description = "The data of `change` events."), FileRefusals))]
pub(crate) async fn watch(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    PathParameter { path }: PathParameter,
    options: RecursiveParameter,
) -> Result<Response, ApiError> {
    locate(&control, &caller.project, &id).await?;
    let place = control.limits.watch(&caller.project)?;
    let request = WatchFiles {
        path: path.into_string(),
        user: options.user,
        recursive: options.recursive,
    };
    let changes = control.node.watch_files(&id, request).await?;
    Ok(response(changes, place))
}

/// Where one stream is. It asks the node for more only when all that it has was taken.
struct Stream {
    changes: Option<FileChanges>,
    pending: VecDeque<Bytes>,
    _place: Permit,
}

fn response(changes: FileChanges, place: Permit) -> Response {
    let stream = Stream {
        changes: Some(changes),
        pending: VecDeque::from([sse::event("ready", &Nothing {})]),
        _place: place,
    };
    sse::response(futures::stream::unfold(stream, async |mut stream| {
        let chunk = stream.next().await?;
        Some((chunk, stream))
    }))
}

impl Stream {
    /// The next event, whole; `None` after the last.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(event) = self.pending.pop_front() {
            return Some(event);
        }
        let changes = self.changes.as_mut()?;
        let Ok(change) = tokio::time::timeout(COMMENT_INTERVAL, changes.next()).await else {
            return Some(Bytes::from_static(sse::COMMENT));
        };
        Some(match change {
            Some(Ok(change)) => event(change),
            Some(Err(error)) => self.end(error),
            None => {
                self.changes = None;
                sse::event("end", &Nothing {})
            }
        })
    }

    fn end(&mut self, error: NodeError) -> Bytes {
        self.changes = None;
        let error = ApiError::from(error);
        let data = ErrorEvent {
            error: error.message,
            code: error.code.as_str(),
        };
        sse::event("error", &data)
    }
}

fn event(change: WatchEvent) -> Bytes {
    let kind = match change.kind {
        WatchKind::Created => "created",
        WatchKind::Modified => "modified",
        WatchKind::Removed => "removed",
        WatchKind::Moved => "moved",
        // The node passes on only what it knows; what it does not know is a change that is lost.
        WatchKind::Overflow | WatchKind::Ready | WatchKind::Unknown => {
            return sse::event("overflow", &Nothing {});
        }
    };
    let data = FileChange {
        kind: kind.to_owned(),
        path: change.path,
        is_dir: change.is_dir,
        from: change.from,
    };
    sse::event("change", &data)
}
