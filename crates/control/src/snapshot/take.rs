//! Taking a snapshot of a sandbox that goes on.

use std::sync::Arc;

use dayfly_api::{CreateSnapshot, Snapshot};
use dayfly_node_api::{NodeCalls, NodeError, SnapshotRequest};
use dayfly_types::{ErrorCode, ProjectId, SandboxId, SnapshotId, limits};
use serde::Serialize;

use crate::control::Control;
use crate::input::Invalid;
use crate::input::ids::{self, NoRandomness};
use crate::input::quantity::between;
use crate::metrics::CaptureKind;
use crate::sandbox::create::bad_subject;
use crate::sandbox::read::{self, FindError};
use crate::snapshot::name::reference;
use crate::snapshot::read::{self as snapshot_read, FindSnapshotError, present};
use crate::store::{Idempotency, Inserted, LimitsRow, StoreError, Subject};
use crate::tenancy::usage::{self, UsageError};
use crate::time::now_ms;
use crate::trace;

const NAME_CHARACTERS_MAX: usize = 128;

/// What a caller wants of a snapshot. Every value is within its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewSnapshot {
    pub name: Option<String>,
    pub retain_seconds: Option<u64>,
}

impl TryFrom<CreateSnapshot> for NewSnapshot {
    type Error = Invalid;

    fn try_from(body: CreateSnapshot) -> Result<Self, Invalid> {
        let fits = |name: &str| name.chars().count() <= NAME_CHARACTERS_MAX;
        if body.name.as_deref().is_some_and(|name| !fits(name)) {
            let rule = format!("must have at most {NAME_CHARACTERS_MAX} characters");
            return Err(Invalid::field("name", rule));
        }
        let allowed = 1..=limits::TTL_SECONDS_MAX;
        if body
            .retain_seconds
            .is_some_and(|seconds| !allowed.contains(&seconds))
        {
            return Err(between("retain_seconds", allowed.start(), allowed.end()));
        }
        Ok(Self {
            name: body.name,
            retain_seconds: body.retain_seconds,
        })
    }
}

/// Whose snapshot it is to be, and what they may keep.
#[derive(Debug, Clone)]
pub(crate) struct Taker {
    pub(crate) project: ProjectId,
    pub(crate) limits: LimitsRow,
}

/// Why there is no new snapshot. The sandbox goes on in every case.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("this idempotency key was used before with another request")]
    IdempotencyConflict,
    #[error("the snapshot of this request was deleted")]
    Deleted,
    #[error("snapshot {id} of this project is named {name}")]
    NameTaken { name: SnapshotId, id: SnapshotId },
    #[error(transparent)]
    Quota(#[from] UsageError),
    #[error("the node did not take the snapshot")]
    Node(#[source] NodeError),
    #[error("cannot record the request")]
    Store(#[source] StoreError),
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    #[error("the work on the snapshot stopped")]
    Stopped,
}

/// Takes a snapshot and waits until it is safe on disk.
///
/// # Errors
/// [`SnapshotError`].
///
/// # Cancel safety
/// Dropping the future does not stop the work. Calling again with the same idempotency key
/// answers with the same snapshot.
pub(crate) async fn take(
    control: Arc<Control>,
    taker: Taker,
    sandbox: SandboxId,
    new: NewSnapshot,
    idempotency_key: Option<String>,
) -> Result<Snapshot, SnapshotError> {
    read::locate(&control, &taker.project, &sandbox).await?;
    let tasks = control.tasks.clone();
    let work = take_to_the_end(control, taker, sandbox, new, idempotency_key);
    tasks
        .spawn(trace::continued(work))
        .await
        .unwrap_or(Err(SnapshotError::Stopped))
}

async fn take_to_the_end(
    control: Arc<Control>,
    taker: Taker,
    sandbox: SandboxId,
    new: NewSnapshot,
    idempotency_key: Option<String>,
) -> Result<Snapshot, SnapshotError> {
    let project = &taker.project;
    // Held until the key is closed: a repeat that waits behind finds what came of the first.
    let name = new.name.as_deref().and_then(reference);
    let _turn = usage::turn_for_snapshot(&control, project, &taker.limits, name.is_some()).await?;
    let id = SnapshotId::from_random(&control.cell, ids::draw()?);
    let Some(key) = idempotency_key else {
        return ask_node(&control, &taker, &sandbox, id, new).await;
    };
    let idempotency = Idempotency {
        key,
        request_hash: control.store.hash_of(&("snapshot", &sandbox, &new)),
    };
    let inserted = control
        .store
        .insert_key(project, id.as_str(), &idempotency, now_ms())
        .await;
    let (id, is_first) = match inserted.map_err(SnapshotError::Store)? {
        Inserted::New => (id, true),
        Inserted::Conflict => return Err(SnapshotError::IdempotencyConflict),
        Inserted::Repeated(subject) => match again(&control, project, &subject).await? {
            Again::Done(snapshot) => return Ok(*snapshot),
            Again::Ask(id) => (id, false),
        },
    };
    let taken = ask_node(&control, &taker, &sandbox, id.clone(), new).await;
    // What an earlier try left at the node may still come to be; the lack of room does not end it.
    let is_open = !is_first && matches!(taken, Err(SnapshotError::Quota(_)));
    if !is_open {
        close_key(&control, project, &id, &taken).await;
    }
    taken
}

/// What a repeated request has to do.
enum Again {
    Done(Box<Snapshot>),
    /// Its first call did not end here; the node answers both with one snapshot.
    Ask(SnapshotId),
}

async fn again(
    control: &Control,
    project: &ProjectId,
    subject: &Subject,
) -> Result<Again, SnapshotError> {
    let id = SnapshotId::parse(&subject.id).map_err(|_| SnapshotError::Store(bad_subject()))?;
    match snapshot_read::find(control.node.as_ref(), project, &id).await {
        Ok(report) => Ok(Again::Done(Box::new(present(report)))),
        Err(FindSnapshotError::Node(error)) => Err(SnapshotError::Node(error)),
        // Asking the node again would take a new snapshot under the old id.
        Err(FindSnapshotError::NotFound { .. }) if subject.answer.is_some() => {
            Err(SnapshotError::Deleted)
        }
        Err(FindSnapshotError::NotFound { .. }) => Ok(Again::Ask(id)),
    }
}

async fn ask_node(
    control: &Control,
    taker: &Taker,
    sandbox: &SandboxId,
    id: SnapshotId,
    new: NewSnapshot,
) -> Result<Snapshot, SnapshotError> {
    usage::room_for_snapshot(control, &taker.project, &taker.limits).await?;
    if let Some(name) = new.name.as_deref().and_then(reference) {
        check_name(control, &taker.project, name, &id).await?;
    }
    let request = SnapshotRequest {
        id,
        name: new.name,
        retain_seconds: new.retain_seconds,
    };
    let report = control.node.snapshot(sandbox, request).await;
    let report = report.map_err(SnapshotError::Node)?;
    let pause_us = report.capture.pause_us;
    control.metrics.captured(CaptureKind::Snapshot, pause_us);
    Ok(present(report))
}

/// Whether a name is free, but for the snapshot itself, which an earlier try may have left.
async fn check_name(
    control: &Control,
    project: &ProjectId,
    name: SnapshotId,
    id: &SnapshotId,
) -> Result<(), SnapshotError> {
    let found = snapshot_read::find_named(control.node.as_ref(), project, &name).await;
    match found.map_err(SnapshotError::Node)? {
        Some(other) if other.id != *id => {
            let id = other.id;
            Err(SnapshotError::NameTaken { name, id })
        }
        Some(_) | None => Ok(()),
    }
}

/// Writes down how the request of a key ended.
async fn close_key(
    control: &Control,
    project: &ProjectId,
    id: &SnapshotId,
    taken: &Result<Snapshot, SnapshotError>,
) {
    let closed = match taken {
        Ok(_) => control.store.set_answer(project, id.as_str(), "{}").await,
        // The snapshot may come to be; a repeat must find it.
        Err(SnapshotError::Node(error)) if error.code == ErrorCode::NodeUnavailable => Ok(()),
        Err(_) => control.store.forget_key(project, id.as_str()).await,
    };
    if let Err(error) = closed {
        tracing::error!(snapshot_id = %id, error = &error as &dyn std::error::Error,
            "cannot close the idempotency key of a snapshot");
    }
}
