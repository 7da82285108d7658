//! Deleting a sandbox. Wins from every state and may be repeated.

use std::sync::Arc;

use dayfly_node_api::{NodeCalls, NodeError};
use dayfly_types::{EndReason, ErrorCode, ProjectId, SandboxId};

use crate::control::Control;
use crate::store::{Ending, KeyFate, StoreError};
use crate::time::now_ms;
use crate::trace;

/// Why a sandbox may still exist.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    #[error("there is no sandbox {id}")]
    NotFound { id: SandboxId },
    #[error("cannot record that sandbox {id} is to be deleted")]
    Store {
        id: SandboxId,
        #[source]
        source: StoreError,
    },
    /// The wish is recorded, so the reconciler finishes the work.
    #[error("the node did not delete sandbox {id} yet; it will be tried again")]
    Node {
        id: SandboxId,
        #[source]
        source: NodeError,
    },
    #[error("the work on the sandbox stopped")]
    Stopped,
}

/// Deletes a sandbox of a project by the wish of a key, and waits until it is gone.
///
/// # Errors
/// [`DeleteError`].
///
/// # Cancel safety
/// Dropping the future does not stop the work.
pub async fn delete(
    control: Arc<Control>,
    project: ProjectId,
    id: SandboxId,
    key_prefix: &str,
) -> Result<(), DeleteError> {
    let found = control.store.sandbox(&project, &id).await;
    let row = found.map_err(|source| DeleteError::Store {
        id: id.clone(),
        source,
    })?;
    let row = row.ok_or_else(|| DeleteError::NotFound { id: id.clone() })?;
    if row.deleted_at_ms.is_some() {
        return Ok(());
    }
    let ended = Ending {
        reason: EndReason::Deleted,
        by: Some(key_prefix.to_owned()),
    };
    let tasks = control.tasks.clone();
    let work = async move {
        let marked = control
            .store
            .mark_deleting(&project, &id, &ended, KeyFate::Kept)
            .await;
        marked.map_err(|source| DeleteError::Store {
            id: id.clone(),
            source,
        })?;
        delete_on_node(control, project, id).await
    };
    let done = tasks.spawn(trace::continued(work)).await;
    done.unwrap_or(Err(DeleteError::Stopped))
}

/// Deletes on the node what the row already says is to go, and records that it is gone.
pub(crate) async fn delete_on_node(
    control: Arc<Control>,
    project: ProjectId,
    id: SandboxId,
) -> Result<(), DeleteError> {
    match control.node.delete_sandbox(&id).await {
        Ok(()) => {}
        // A node that does not know it has nothing to delete.
        Err(error) if error.code == ErrorCode::NotFound => {}
        Err(source) => {
            tracing::warn!(sandbox_id = %id, error = %source, "the node did not delete a sandbox");
            return Err(DeleteError::Node { id, source });
        }
    }
    control.view.remove(&id);
    let ended = EndReason::Deleted.into();
    let marked = control.store.mark_deleted(&project, &id, &ended, now_ms());
    let marked = marked.await;
    marked.map_err(|source| DeleteError::Store { id, source })
}
