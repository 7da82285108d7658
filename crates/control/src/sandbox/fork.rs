//! Forking a sandbox.
//!
//! As with a create, the rows of the children come first and the node second: a row without a
//! sandbox is found by the reconciler, and a sandbox without a row cannot come to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use dayfly_api::{Capture, Forked, Sandbox};
use dayfly_node_api::{
    EnsureSandbox, ForkOutcome, ForkReport, ForkRequest, NodeCalls, NodeError, SandboxReport,
};
use dayfly_types::egress::InternalNetwork;
use dayfly_types::{ErrorCode, Generation, ProjectId, SandboxId, SandboxState};
use serde::{Deserialize, Serialize};

use crate::admission::rates::CreatePermit;
use crate::control::Control;
use crate::input::Invalid;
use crate::input::ids::{self, NoRandomness};
use crate::metrics::CaptureKind;
use crate::network::spec::is_no_wider;
use crate::sandbox::create::{bad_subject, is_wanted, undo, wanted};
use crate::sandbox::delete;
use crate::sandbox::fork_spec::{ForkPlan, PARENT_KEY, TREE_KEY, Tree};
use crate::sandbox::read::{FindError, present, row_alive};
use crate::snapshot::read::present_capture;
use crate::store::{
    EgressRow, Idempotency, InsertRefusal, Inserted, SandboxRow, SandboxSpec, SandboxStatus,
    StoreError, Subject,
};
use crate::time::now_ms;
use crate::trace;

/// A fork that failed. Nothing of it stays, and its source goes on.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("this idempotency key was used before with another request")]
    IdempotencyConflict,
    #[error(transparent)]
    NotInserted(InsertRefusal),
    #[error("a child may not reach more than its source")]
    Wider,
    #[error(transparent)]
    Labels(#[from] Invalid),
    #[error("the node refused the fork")]
    Refused(#[source] NodeError),
    #[error("the node was lost while it forked the sandbox; the children are being removed")]
    NodeLost(#[source] NodeError),
    #[error("the children of this request were deleted")]
    Deleted,
    #[error("cannot record the children")]
    Store(#[source] StoreError),
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    #[error("the work on the fork stopped")]
    Stopped,
}

/// What a repeat needs beside the children themselves.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Remembered {
    failures: BTreeMap<String, String>,
    renewed: Vec<String>,
    not_renewed: Vec<String>,
    capture: Capture,
}

/// Makes children of a sandbox from one capture, and waits until they run. At least one was made
/// when this succeeds.
///
/// # Errors
/// [`ForkError`].
///
/// # Cancel safety
/// Dropping the future does not stop the work. Calling again with the same idempotency key
/// answers with the same children.
pub async fn fork(
    control: Arc<Control>,
    project: ProjectId,
    source: SandboxId,
    plan: ForkPlan,
    idempotency_key: Option<String>,
    under_way: CreatePermit,
) -> Result<Forked, ForkError> {
    let tasks = control.tasks.clone();
    let work = async move {
        // For as long as the work goes on, whoever waits for it.
        let _under_way = under_way;
        fork_to_the_end(control, project, source, plan, idempotency_key).await
    };
    let done = tasks.spawn(trace::continued(work)).await;
    done.unwrap_or(Err(ForkError::Stopped))
}

async fn fork_to_the_end(
    control: Arc<Control>,
    project: ProjectId,
    source: SandboxId,
    plan: ForkPlan,
    idempotency_key: Option<String>,
) -> Result<Forked, ForkError> {
    let parent = row_alive(&control, &project, &source).await?;
    check_network(&parent, &plan, &control.internal_networks.of(&project))?;
    let tree = Tree::draw(&control.cell)?;
    let idempotency = idempotency_key.map(|key| Idempotency {
        key,
        request_hash: control.store.hash_of(&("fork", &source, &plan)),
    });
    let labels = plan.labels(&parent.spec.metadata)?;
    let rows = children(&control, &parent, &plan, &labels, &tree)?;
    let inserted = control
        .store
        .insert_sandboxes(&rows, tree.as_str(), idempotency.as_ref())
        .await;
    let inserted = inserted.map_err(ForkError::Store)?;
    match inserted.map_err(ForkError::NotInserted)? {
        Inserted::New => start(&control, &parent, &plan, &tree, rows).await,
        Inserted::Conflict => Err(ForkError::IdempotencyConflict),
        Inserted::Repeated(subject) => repeat(&control, &parent, &plan, &subject).await,
    }
}

/// A child never reaches more than its source, whose code it goes on with.
fn check_network(
    parent: &SandboxRow,
    plan: &ForkPlan,
    internal: &[InternalNetwork],
) -> Result<(), ForkError> {
    match &plan.network {
        Some(policy) if !is_no_wider(policy, &parent.egress.policy, internal) => {
            Err(ForkError::Wider)
        }
        Some(_) | None => Ok(()),
    }
}

/// The rows of the children, in the order of their ids, which is the order of every answer.
fn children(
    control: &Control,
    parent: &SandboxRow,
    plan: &ForkPlan,
    labels: &BTreeMap<String, String>,
    tree: &Tree,
) -> Result<Vec<SandboxRow>, NoRandomness> {
    let mut ids = Vec::with_capacity(plan.count);
    for _ in 0..plan.count {
        ids.push(SandboxId::from_random(&control.cell, ids::draw()?));
    }
    ids.sort();
    let created_at_ms = now_ms();
    let child = |id| child(id, parent, plan, labels, tree, created_at_ms);
    Ok(ids.into_iter().map(child).collect())
}

fn child(
    id: SandboxId,
    parent: &SandboxRow,
    plan: &ForkPlan,
    labels: &BTreeMap<String, String>,
    tree: &Tree,
    created_at_ms: i64,
) -> SandboxRow {
    let mut metadata = labels.clone();
    metadata.insert(PARENT_KEY.to_owned(), parent.id.to_string());
    metadata.insert(TREE_KEY.to_owned(), tree.as_str().to_owned());
    // A volume has one writer, which the source stays.
    let volumes = parent.spec.volumes.iter().filter(|mount| mount.read_only);
    let policy = plan.network.as_ref().unwrap_or(&parent.egress.policy);
    let environment = plan.environment.as_ref().unwrap_or(&parent.environment);
    SandboxRow {
        id,
        state: SandboxState::Creating,
        generation: Generation::default(),
        // It is the source's.
        name: None,
        spec: SandboxSpec {
            metadata,
            // The disk is the capture's.
            disk_wanted: None,
            from_snapshot: None,
            disk_only: false,
            volumes: volumes.cloned().collect(),
            fork_parent: Some(parent.id.clone()),
            ..parent.spec.clone()
        },
        environment: environment.clone(),
        status: SandboxStatus::default(),
        lifetime: plan.lifecycle.of_child(parent.lifetime),
        expires_at_ms: None,
        fork_tree: Some(tree.as_str().to_owned()),
        egress: EgressRow::first(policy.clone(), created_at_ms),
        created_at_ms,
        deleted_at_ms: None,
        ended: None,
        ..parent.clone()
    }
}

/// Asks the node for what the rows say.
async fn start(
    control: &Arc<Control>,
    parent: &SandboxRow,
    plan: &ForkPlan,
    tree: &Tree,
    rows: Vec<SandboxRow>,
) -> Result<Forked, ForkError> {
    let Some(snapshot) = tree.snapshot() else {
        return Err(ForkError::Store(bad_subject()));
    };
    let child = |row: &SandboxRow| EnsureSandbox {
        reseed_user_space: plan.reseed_user_space,
        ..wanted(row)
    };
    let request = ForkRequest {
        snapshot,
        children: rows.iter().map(child).collect(),
        all_or_nothing: plan.all_or_nothing,
    };
    match control.node.fork(&parent.id, request).await {
        Ok(report) => {
            let pause_us = report.capture.pause_us;
            control.metrics.captured(CaptureKind::Fork, pause_us);
            finish(control, tree, rows, report).await
        }
        Err(error) if error.code == ErrorCode::NodeUnavailable => {
            for row in &rows {
                undo(control, row).await;
            }
            free_key(control, &parent.project, tree).await;
            Err(ForkError::NodeLost(error))
        }
        Err(error) => {
            // Of a repeated call, those that the first one made stay.
            let unmade = |row: &&SandboxRow| row.state == SandboxState::Creating;
            for row in rows.iter().filter(unmade) {
                forget(control, row).await;
            }
            free_key(control, &parent.project, tree).await;
            Err(ForkError::Refused(error))
        }
    }
}

/// Records what the node made, and takes back what it did not.
async fn finish(
    control: &Arc<Control>,
    tree: &Tree,
    rows: Vec<SandboxRow>,
    report: ForkReport,
) -> Result<Forked, ForkError> {
    let mut outcomes: BTreeMap<SandboxId, ForkOutcome> = report
        .children
        .into_iter()
        .map(|child| (child.id, child.outcome))
        .collect();
    let (mut children, mut failures) = (Vec::new(), BTreeMap::new());
    let mut first_error = None;
    for row in &rows {
        let made = match outcomes.remove(&row.id) {
            Some(ForkOutcome::Made(report)) => settle(control, row, *report).await,
            Some(ForkOutcome::Refused(error)) => {
                forget(control, row).await;
                Err(error)
            }
            None => {
                undo(control, row).await;
                Err(NodeError::internal(
                    "the node did not say what became of it",
                ))
            }
        };
        match made {
            Ok(sandbox) => children.push(sandbox),
            Err(error) => {
                failures.insert(row.id.to_string(), error.message.clone());
                first_error.get_or_insert(error);
            }
        }
    }
    let project = rows.first().map(|row| &row.project);
    if let (true, Some(error), Some(project)) = (children.is_empty(), first_error, project) {
        free_key(control, project, tree).await;
        return Err(ForkError::Refused(error));
    }
    let remembered = Remembered {
        failures,
        renewed: report.renewed,
        not_renewed: report.not_renewed,
        capture: present_capture(report.capture),
    };
    if let Some(project) = project {
        remember(control, project, tree, &remembered).await;
    }
    Ok(answer(children, remembered))
}

/// Records one child, unless a delete came in between.
async fn settle(
    control: &Arc<Control>,
    row: &SandboxRow,
    report: SandboxReport,
) -> Result<Sandbox, NodeError> {
    if let Err(error) = control.store.apply_report_in_turn(&report, now_ms()).await {
        // The child runs and its row exists; the watch writes the state again.
        tracing::error!(sandbox_id = %row.id, error = &error as &dyn std::error::Error,
            "cannot record that a child runs");
    }
    let current = match control.store.sandbox(&row.project, &row.id).await {
        Ok(current) => current,
        Err(_) => Some(row.clone()),
    };
    let Some(current) = current.filter(|current| is_wanted(current.state)) else {
        control.tasks.spawn(delete::delete_on_node(
            Arc::clone(control),
            row.project.clone(),
            row.id.clone(),
        ));
        let message = "it was deleted while it was made";
        return Err(NodeError::new(ErrorCode::WrongState, message));
    };
    control.view.apply(report);
    Ok(present(&current, control.view.get(&row.id).as_ref()))
}

/// Answers a fork that was asked for before.
async fn repeat(
    control: &Arc<Control>,
    parent: &SandboxRow,
    plan: &ForkPlan,
    subject: &Subject,
) -> Result<Forked, ForkError> {
    let tree = Tree::parse(&subject.id).ok_or_else(|| ForkError::Store(bad_subject()))?;
    let rows = control
        .store
        .fork_tree(&parent.project, tree.as_str())
        .await
        .map_err(ForkError::Store)?;
    if rows.is_empty() {
        return Err(ForkError::Deleted);
    }
    let Some(answered) = &subject.answer else {
        // The first call is still under way, or was lost; the node answers both when it is done.
        return start(control, parent, plan, &tree, rows).await;
    };
    let remembered = serde_json::from_str(answered).unwrap_or_default();
    let shown = |row: &SandboxRow| present(row, control.view.get(&row.id).as_ref());
    Ok(answer(rows.iter().map(shown).collect(), remembered))
}

fn answer(children: Vec<Sandbox>, remembered: Remembered) -> Forked {
    Forked {
        sandbox: children.first().cloned(),
        children,
        failures: remembered.failures,
        renewed: remembered.renewed,
        not_renewed: remembered.not_renewed,
        capture: remembered.capture,
    }
}

async fn forget(control: &Control, row: &SandboxRow) {
    if let Err(error) = control.store.forget(&row.project, &row.id, now_ms()).await {
        tracing::error!(sandbox_id = %row.id, error = &error as &dyn std::error::Error,
            "cannot take back the row of a refused child");
    }
}

async fn free_key(control: &Control, project: &ProjectId, tree: &Tree) {
    if let Err(error) = control.store.forget_key(project, tree.as_str()).await {
        tracing::error!(
            tree = tree.as_str(),
            error = &error as &dyn std::error::Error,
            "cannot free the idempotency key of a fork"
        );
    }
}

async fn remember(control: &Control, project: &ProjectId, tree: &Tree, answer: &Remembered) {
    // Plain data with string keys always serialises.
    let text = serde_json::to_string(answer).unwrap_or_else(|_| "{}".to_owned());
    let written = control
        .store
        .set_answer(project, tree.as_str(), &text)
        .await;
    if let Err(error) = written {
        tracing::error!(
            tree = tree.as_str(),
            error = &error as &dyn std::error::Error,
            "cannot record how a fork ended"
        );
    }
}
