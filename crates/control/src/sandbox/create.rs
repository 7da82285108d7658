//! Creating a sandbox.
//!
//! The order is what makes a crash harmless: first the row, then the node. A row without a
//! sandbox is found by the reconciler; a sandbox without a row cannot come to be.

use std::sync::Arc;
use std::time::Duration;

use dayfly_api::{Sandbox, SandboxVariant};
use dayfly_node_api::{EnsureSandbox, NodeCalls, NodeError, SandboxReport};
use dayfly_types::capture::MachineOrigin;
use dayfly_types::{EndReason, ErrorCode, Generation, ProjectId, SandboxId, SandboxState, limits};

use crate::admission::rates::CreatePermit;
use crate::control::Control;
use crate::input::Invalid;
use crate::input::ids::{self, NoRandomness};
use crate::metrics::{Metrics, WHOLE_STAGE};
use crate::network::read;
use crate::sandbox::origin::{self, OriginError};
use crate::sandbox::read::present;
use crate::sandbox::size;
use crate::sandbox::spec::NewSandbox;
use crate::sandbox::{class, delete};
use crate::store::{
    EgressRow, Idempotency, InsertRefusal, Inserted, KeyFate, SandboxRow, SandboxSpec,
    SandboxStatus, StoreError,
};
use crate::time::now_ms;
use crate::trace;

/// The published clients give up after 30 seconds; this leaves time for the answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(27);

/// Why there is no new sandbox. Nothing of it stays in any case.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("cannot start from that")]
    Origin(#[source] OriginError),
    #[error("the host has no sandboxes of that class")]
    Class(#[source] Invalid),
    #[error("this idempotency key was used before with another request")]
    IdempotencyConflict,
    #[error(transparent)]
    NotInserted(InsertRefusal),
    #[error("the node refused the sandbox")]
    Refused(#[source] NodeError),
    #[error("the node was lost while it made the sandbox, which is being removed")]
    NodeLost(#[source] NodeError),
    #[error("timeout: the sandbox was not ready within {} seconds and is being removed", limit.as_secs())]
    TooSlow { limit: Duration },
    #[error("the sandbox of this request was deleted")]
    Deleted,
    #[error("cannot record the sandbox")]
    Store(#[source] StoreError),
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    #[error("the work on the sandbox stopped")]
    Stopped,
}

/// Makes a sandbox and waits until it runs.
///
/// # Errors
/// [`CreateError`].
///
/// # Cancel safety
/// Dropping the future does not stop the work. Calling again with the same idempotency key
/// answers with the same sandbox.
pub async fn create(
    control: Arc<Control>,
    project: ProjectId,
    new: NewSandbox,
    idempotency_key: Option<String>,
    under_way: CreatePermit,
) -> Result<Sandbox, CreateError> {
    let tasks = control.tasks.clone();
    let work = async move {
        // For as long as the work goes on, whoever waits for it.
        let _under_way = under_way;
        create_to_the_end(control, project, new, idempotency_key).await
    };
    let done = tasks.spawn(trace::continued(work)).await;
    done.unwrap_or(Err(CreateError::Stopped))
}

async fn create_to_the_end(
    control: Arc<Control>,
    project: ProjectId,
    new: NewSandbox,
    idempotency_key: Option<String>,
) -> Result<Sandbox, CreateError> {
    let idempotency = idempotency_key.map(|key| Idempotency {
        key,
        request_hash: control.store.hash_of(&new),
    });
    let planned = trace::stage("control.plan", plan(&control, project, new)).await;
    let (row, variant) = planned?;
    let inserting = control.store.insert_sandbox(&row, idempotency.as_ref());
    let inserted = trace::stage("control.record", inserting).await;
    let inserted = inserted.map_err(CreateError::Store)?;
    let made = match inserted.map_err(CreateError::NotInserted)? {
        Inserted::New => start(&control, row).await,
        Inserted::Conflict => Err(CreateError::IdempotencyConflict),
        Inserted::Repeated(subject) => repeat(&control, row.project, &subject.id).await,
    };
    made.map(|sandbox| Sandbox { variant, ..sandbox })
}

/// Decides everything about the sandbox that can be decided before it exists.
async fn plan(
    control: &Control,
    project: ProjectId,
    new: NewSandbox,
) -> Result<(SandboxRow, Option<SandboxVariant>), CreateError> {
    let node = control.node.as_ref();
    let origin = origin::find(control, &project, &new)
        .await
        .map_err(CreateError::Origin)?;
    let status = match control.view.status() {
        Some(status) => status,
        None => node.status().await.map_err(CreateError::Refused)?,
    };
    let class = class::decide(new.class, &status.sharing).map_err(CreateError::Class)?;
    let policy = match new.network {
        Some(policy) => policy,
        None => read::default(control, &project)
            .await
            .map_err(CreateError::Store)?,
    };
    let created_at_ms = now_ms();
    let variant = origin.variant.as_ref().map(size::present);
    let row = SandboxRow {
        id: SandboxId::from_random(&control.cell, ids::draw()?),
        project,
        node: control.node_id.clone(),
        state: SandboxState::Creating,
        generation: Generation::default(),
        name: new.name,
        spec: SandboxSpec {
            template: origin.template,
            called: origin.called,
            size: origin.variant.map(|variant| variant.size),
            metadata: new.metadata,
            cpu_limit: new.cpu,
            disk_wanted: new.disk,
            disk_only: matches!(origin.from, MachineOrigin::DiskOf(_)),
            from_snapshot: origin.from.capture().cloned(),
            volumes: new.volumes,
            class,
            fork_parent: None,
            isolation: status.isolation.as_str().to_owned(),
        },
        environment: new.environment,
        status: SandboxStatus::default(),
        lifetime: new.lifecycle,
        expires_at_ms: None,
        cpu: origin.cpu,
        memory_mb: origin.memory_mb,
        disk_mib: new
            .disk
            .map_or(origin.disk_mib, |disk| u64::from(disk.get())),
        fork_tree: None,
        egress: EgressRow::first(policy, created_at_ms),
        created_at_ms,
        deleted_at_ms: None,
        ended: None,
    };
    Ok((row, variant))
}

/// What the row asks of a node. Of a repeated call it must not change, so all of it is in the row.
pub(crate) fn wanted(row: &SandboxRow) -> EnsureSandbox {
    let spec = row.spec.clone();
    EnsureSandbox {
        id: row.id.clone(),
        project: row.project.clone(),
        template: spec.template,
        size: spec.size,
        from_snapshot: spec.from_snapshot,
        lifecycle: row.lifetime,
        cpu: spec.cpu_limit,
        disk: spec.disk_wanted,
        volumes: spec.volumes,
        class: spec.class,
        reseed_user_space: false,
        egress: row.egress.policy.clone(),
        egress_epoch: row.egress.epoch,
        metadata: spec.metadata,
        created_at_ms: Some(row.created_at_ms),
    }
}

async fn ensure(control: &Control, row: &SandboxRow) -> Result<SandboxReport, NodeError> {
    match row.spec.disk_of() {
        Some(disk_of) => control.node.boot_sandbox(disk_of, wanted(row)).await,
        None => control.node.ensure_sandbox(wanted(row)).await,
    }
}

/// Asks the node for what the row says.
async fn start(control: &Arc<Control>, row: SandboxRow) -> Result<Sandbox, CreateError> {
    let limit = match row.spec.disk_of() {
        // Which the published clients do not ask for.
        Some(_) => limits::DISK_BOOT_ANSWER_DEADLINE,
        None => ANSWER_DEADLINE,
    };
    let ensured = tokio::time::timeout(limit, ensure(control, &row));
    let ensured = trace::stage("control.start", ensured).await;
    match ensured {
        Ok(Ok(report)) => trace::stage("control.finish", finish(control, row, report)).await,
        Ok(Err(error)) if error.code == ErrorCode::NodeUnavailable => {
            undo(control, &row).await;
            Err(CreateError::NodeLost(error))
        }
        Ok(Err(error)) => {
            if let Err(store) = control.store.forget(&row.project, &row.id, now_ms()).await {
                tracing::error!(sandbox_id = %row.id, error = &store as &dyn std::error::Error,
                    "cannot take back the row of a refused sandbox");
            }
            Err(CreateError::Refused(error))
        }
        Err(_) => {
            undo(control, &row).await;
            Err(CreateError::TooSlow { limit })
        }
    }
}

/// Records what the node made, unless a delete came in between.
async fn finish(
    control: &Arc<Control>,
    row: SandboxRow,
    report: SandboxReport,
) -> Result<Sandbox, CreateError> {
    measure(&control.metrics, &report);
    if let Err(error) = control.store.apply_report_in_turn(&report, now_ms()).await {
        // The sandbox runs and its row exists; the watch writes the state again.
        tracing::error!(sandbox_id = %row.id, error = &error as &dyn std::error::Error,
            "cannot record that a sandbox runs");
    }
    let current = control.store.sandbox(&row.project, &row.id).await;
    let current = match current {
        Ok(current) => current,
        Err(_) => Some(row.clone()),
    };
    let Some(current) = current.filter(|current| is_wanted(current.state)) else {
        control.tasks.spawn(delete::delete_on_node(
            Arc::clone(control),
            row.project.clone(),
            row.id.clone(),
        ));
        return Err(CreateError::Deleted);
    };
    control.view.apply(report);
    Ok(present(&current, control.view.get(&row.id).as_ref()))
}

fn measure(metrics: &Metrics, report: &SandboxReport) {
    let template = report.template.as_str();
    for stage in &report.stages {
        metrics.created(template, &stage.name, Duration::from_micros(stage.micros));
    }
    if let Some(ready) = report.ready_ms {
        metrics.created(template, WHOLE_STAGE, Duration::from_millis(ready));
    }
}

pub(crate) fn is_wanted(state: SandboxState) -> bool {
    !matches!(state, SandboxState::Deleting | SandboxState::Deleted)
}

/// Removes a sandbox of which nobody knows whether it exists.
pub(crate) async fn undo(control: &Arc<Control>, row: &SandboxRow) {
    let marked = control
        .store
        .mark_deleting(
            &row.project,
            &row.id,
            &EndReason::Deleted.into(),
            KeyFate::Freed,
        )
        .await;
    if let Err(error) = marked {
        tracing::error!(sandbox_id = %row.id, error = &error as &dyn std::error::Error,
            "cannot mark an unfinished sandbox as deleting");
    }
    control.tasks.spawn(delete::delete_on_node(
        Arc::clone(control),
        row.project.clone(),
        row.id.clone(),
    ));
}

/// A key whose subject is not of the kind that its request makes.
pub(crate) fn bad_subject() -> StoreError {
    StoreError::Corrupt {
        table: "idempotency_keys",
        column: "subject_id",
    }
}

/// Answers a create that was asked for before.
async fn repeat(
    control: &Arc<Control>,
    project: ProjectId,
    subject: &str,
) -> Result<Sandbox, CreateError> {
    let id = SandboxId::parse(subject).map_err(|_| CreateError::Store(bad_subject()))?;
    let row = control
        .store
        .sandbox(&project, &id)
        .await
        .map_err(CreateError::Store)?;
    match row {
        // The first call is still under way; the node answers both when it is done.
        Some(row) if row.state == SandboxState::Creating => start(control, row).await,
        Some(row) if is_wanted(row.state) => Ok(present(&row, control.view.get(&id).as_ref())),
        _ => Err(CreateError::Deleted),
    }
}
