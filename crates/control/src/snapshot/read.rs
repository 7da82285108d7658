//! Finding and deleting snapshots.
//!
//! Snapshots have no table here. The node that holds one is the only truth about it: whether it
//! is whole, what it still shares, when it goes. A row could only repeat that and be wrong, so
//! every question goes to the node, and the project is held against each answer.

use dayfly_api::{Capture, Snapshot};
use dayfly_node_api::{NodeApi, NodeCalls, NodeError, SnapshotReport};
use dayfly_types::capture::CaptureCost;
use dayfly_types::{ErrorCode, ProjectId, SandboxId, SnapshotId};

use super::name::{of_name, reference};
use crate::time::rfc3339;

/// Why a snapshot was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindSnapshotError {
    /// Never taken, taken by another project, or deleted: the three look the same from outside.
    #[error("there is no snapshot {id}")]
    NotFound { id: SnapshotId },
    #[error("the node does not say what snapshots it has")]
    Node(#[source] NodeError),
}

/// One snapshot of a project, by its id or by its name.
///
/// # Errors
/// [`FindSnapshotError`].
pub async fn find(
    node: &dyn NodeApi,
    project: &ProjectId,
    id: &SnapshotId,
) -> Result<SnapshotReport, FindSnapshotError> {
    match node.find_snapshot(id).await {
        Ok(report) if report.project == *project => return Ok(report),
        Err(error) if error.code != ErrorCode::NotFound => {
            return Err(FindSnapshotError::Node(error));
        }
        Ok(_) | Err(_) => {}
    }
    let named = find_named(node, project, id).await;
    named
        .map_err(FindSnapshotError::Node)?
        .ok_or_else(|| FindSnapshotError::NotFound { id: id.clone() })
}

/// The snapshot of a project that a name stands for.
///
/// # Errors
/// [`NodeError`].
pub(crate) async fn find_named(
    node: &dyn NodeApi,
    project: &ProjectId,
    name: &SnapshotId,
) -> Result<Option<SnapshotReport>, NodeError> {
    if reference(name.as_str()).is_none() {
        return Ok(None);
    }
    let mut snapshots = node.snapshots_of(project).await?;
    snapshots.retain(|one| one.project == *project);
    Ok(of_name(name, &snapshots).cloned())
}

/// All snapshots of a project, newest first; of one sandbox when it is given.
///
/// # Errors
/// [`NodeError`].
pub async fn list(
    node: &dyn NodeApi,
    project: &ProjectId,
    sandbox: Option<&SandboxId>,
) -> Result<Vec<Snapshot>, NodeError> {
    let reports = node.snapshots_of(project).await?;
    let is_asked_for = |report: &SnapshotReport| {
        report.project == *project && sandbox.is_none_or(|sandbox| report.sandbox == *sandbox)
    };
    let mine = reports.into_iter().filter(is_asked_for);
    Ok(mine.map(present).collect())
}

/// Makes sure that the project has no such snapshot.
///
/// # Errors
/// [`NodeError`].
pub async fn delete(
    node: &dyn NodeApi,
    project: &ProjectId,
    id: &SnapshotId,
) -> Result<(), NodeError> {
    let found = match find(node, project, id).await {
        // Another project's is as absent as none.
        Err(FindSnapshotError::NotFound { .. }) => return Ok(()),
        Err(FindSnapshotError::Node(error)) => return Err(error),
        Ok(found) => found,
    };
    match node.delete_snapshot(&found.id).await {
        Err(error) if error.code == ErrorCode::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// A snapshot as the public API shows it.
#[must_use]
pub fn present(report: SnapshotReport) -> Snapshot {
    let moment = |seconds: i64| rfc3339(seconds.saturating_mul(1000));
    Snapshot {
        id: report.id.to_string(),
        sandbox_id: report.sandbox.to_string(),
        template: report.template.to_string(),
        name: report.name,
        size_bytes: report.size_bytes,
        created_at: moment(report.created_at),
        expires_at: report.expires_at.map(moment),
        capture: present_capture(report.capture),
    }
}

/// The cost of a capture as the public API shows it.
#[must_use]
pub fn present_capture(report: CaptureCost) -> Capture {
    Capture {
        pause_ms: milliseconds(report.pause_us),
        frozen_ms: milliseconds(report.frozen_us),
        device_ms: milliseconds(report.device_us),
        memory_ms: milliseconds(report.memory_us),
        disk_ms: milliseconds(report.disk_us),
        total_ms: milliseconds(report.total_us),
        memory_bytes: report.memory_bytes,
        disk_bytes: report.disk_bytes,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no capture takes 2^53 microseconds"
)]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}
