//! What a sandbox's state can become. Every change may be repeated, and goes on when its caller
//! hangs up: the node does the work, and its watch tells the rest.

use std::sync::Arc;

use dayfly_api::{Lifecycle, Sandbox};
use dayfly_node_api::{LifecycleChange, LifecycleReport, NodeCalls, NodeError, SandboxReport};
use dayfly_types::{ProjectId, SandboxId, SnapshotId};

use crate::control::Control;
use crate::sandbox::environment::Environment;
use crate::sandbox::lifetime;
use crate::sandbox::read::{self, FindError, locate};
use crate::snapshot::read::{self as snapshot_read, FindSnapshotError};
use crate::store::StoreError;
use crate::time::{deadline_ms, now_ms, rfc3339};
use crate::trace;

/// A state to go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateChange {
    Pause,
    Resume,
    Hibernate,
}

/// Why a sandbox is not what it should become.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Snapshot(#[from] FindSnapshotError),
    #[error("the node refused")]
    Node(#[from] NodeError),
    #[error("the sandbox is there, but its environment variables could not be recorded")]
    Environment(#[source] StoreError),
    #[error("the work on the sandbox stopped")]
    Stopped,
}

/// Brings a sandbox into another state, and waits until it is there.
///
/// # Errors
/// [`StateError`].
pub async fn change(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
    change: StateChange,
) -> Result<(), StateError> {
    locate(control, project, id).await?;
    let report = match change {
        StateChange::Pause => control.node.pause(id).await?,
        StateChange::Resume => control.node.resume(id).await?,
        StateChange::Hibernate => control.node.hibernate(id).await?,
    };
    record(control, report).await;
    Ok(())
}

/// Brings a hibernated sandbox back, with other environment variables when they are given: once it
/// is back, so that a wake that is refused has changed nothing.
///
/// # Errors
/// [`StateError`].
///
/// # Cancel safety
/// Dropping the future does not stop the work.
pub async fn wake(
    control: Arc<Control>,
    project: ProjectId,
    id: SandboxId,
    environment: Option<Environment>,
) -> Result<(), StateError> {
    let tasks = control.tasks.clone();
    let work = async move {
        locate(&control, &project, &id).await?;
        let report = control.node.wake(&id).await?;
        record(&control, report).await;
        replace(&control, &project, &id, environment).await
    };
    let done = tasks.spawn(trace::continued(work)).await;
    done.unwrap_or(Err(StateError::Stopped))
}

async fn replace(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
    environment: Option<Environment>,
) -> Result<(), StateError> {
    let Some(environment) = environment else {
        return Ok(());
    };
    let _changing = control.environments.change(id);
    let written = control.store.set_environment(project, id, &environment);
    written.await.map_err(StateError::Environment)
}

/// Takes a sandbox back to a snapshot of its own, with other environment variables when they are
/// given.
///
/// # Errors
/// [`StateError`].
///
/// # Cancel safety
/// Dropping the future does not stop the work.
pub async fn rollback(
    control: Arc<Control>,
    project: ProjectId,
    id: SandboxId,
    snapshot: SnapshotId,
    environment: Option<Environment>,
) -> Result<Sandbox, StateError> {
    let tasks = control.tasks.clone();
    let work = async move {
        locate(&control, &project, &id).await?;
        // The node would also restore another project's.
        let found = snapshot_read::find(control.node.as_ref(), &project, &snapshot).await?;
        let report = control.node.rollback(&id, &found.id).await?;
        record(&control, report).await;
        replace(&control, &project, &id, environment).await?;
        let rolled = read::get(&control, &project, &id).await;
        rolled.map_err(StateError::from)
    };
    let done = tasks.spawn(trace::continued(work)).await;
    done.unwrap_or(Err(StateError::Stopped))
}

/// How long a sandbox lives, as its node says.
///
/// # Errors
/// [`StateError`].
pub async fn lifecycle(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
) -> Result<Lifecycle, StateError> {
    locate(control, project, id).await?;
    Ok(present_lifecycle(&control.node.lifecycle(id).await?))
}

/// Changes how long a sandbox lives.
///
/// # Errors
/// [`StateError`].
pub async fn set_lifecycle(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
    change: LifecycleChange,
) -> Result<Lifecycle, StateError> {
    locate(control, project, id).await?;
    let report = control.node.set_lifecycle(id, change).await?;
    let written = control
        .store
        .set_lifecycle(project, id, &report, now_ms())
        .await;
    if let Err(error) = written {
        // The node has it, and its next report writes it again.
        tracing::error!(sandbox_id = %id, error = &error as &dyn std::error::Error,
            "cannot record a lifecycle");
    }
    control.view.apply_lifecycle(id, &report);
    Ok(present_lifecycle(&report))
}

fn present_lifecycle(report: &LifecycleReport) -> Lifecycle {
    let lifecycle = report.lifecycle;
    Lifecycle {
        ttl_seconds: lifecycle.ttl_seconds,
        persistent: lifecycle.persistent,
        idle_seconds: lifecycle.idle_seconds,
        on_timeout: lifetime::to_wire(lifecycle.on_timeout),
        expires_at: deadline_ms(report.expires_in_seconds, now_ms()).map(rfc3339),
        idle_for_seconds: report.idle_for_seconds,
    }
}

/// Takes the node's word at once, so that the caller's next read shows it.
async fn record(control: &Control, report: SandboxReport) {
    if let Err(error) = control.store.apply_report_in_turn(&report, now_ms()).await {
        tracing::error!(sandbox_id = %report.id, error = &error as &dyn std::error::Error,
            "cannot record what the node said");
    }
    control.view.apply(report);
}
