//! What a failed file operation is called at the node's door.

use std::error::Error;
use std::io;

use dayfly_node_api::NodeError;
use dayfly_snapshots::capture::CaptureError;
use dayfly_types::ErrorCode;

/// A failure with its causes in the log and, when the disk is full, with a code that says so.
pub(crate) fn node_error(what: &str, error: &(dyn Error + 'static)) -> NodeError {
    let chain = crate::error_chain(error);
    if is_storage_full(error) {
        tracing::warn!(error = chain, "the disk is full");
        let text = format!("{what}: the node's disk is full; delete snapshots or sandboxes");
        return NodeError::new(ErrorCode::StorageFull, text);
    }
    tracing::error!(error = chain, what, "failed");
    NodeError::internal(format!("{what}: {error}"))
}

/// What a capture store's refusal is called.
pub(crate) fn capture_error(what: &str, error: &CaptureError) -> NodeError {
    match error {
        CaptureError::Absent(id) => NodeError::not_found(format!("no snapshot {id}")),
        CaptureError::Damaged { id, .. } => {
            tracing::error!(error = crate::error_chain(error), "a capture is damaged");
            let text = format!(
                "snapshot {id} is damaged: its files are not those that were published; it was not \
                 restored. Delete it"
            );
            NodeError::new(ErrorCode::SnapshotCorrupt, text)
        }
        CaptureError::Incomplete { .. } => {
            NodeError::new(ErrorCode::SnapshotCorrupt, error.to_string())
        }
        CaptureError::File { .. } | CaptureError::Seal(_) => node_error(what, error),
    }
}

/// Whether a full disk is among the causes.
fn is_storage_full(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let is_full = error.downcast_ref::<io::Error>().is_some_and(|error| {
            matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            )
        });
        if is_full {
            return true;
        }
        next = error.source();
    }
    false
}
