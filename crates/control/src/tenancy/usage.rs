//! What a project uses, and whether there is room for more.

use std::sync::Arc;
use std::time::Duration;

use dayfly_api::{ProjectUsage, SandboxLoad, SandboxLoadList};
use dayfly_node_api::{NodeCalls, NodeError, SnapshotReport, VolumeReport};
use dayfly_types::limits::CAPTURE_DEADLINE;
use dayfly_types::{DiskMib, ProjectId, VolumeName};

use crate::admission::turns::{Turn, TurnTimeout};
use crate::control::Control;
use crate::store::{LimitsRow, OverQuota, ProjectState, StoreError};
use crate::tenancy::projects;
use crate::tenancy::whose::Whose;
use crate::time::now_ms;
use crate::volume::change::{self, Created, VolumeRefusal};

const MIB: u64 = 1 << 20;
/// For captures and volumes of the same project that come first: longer than one may take.
pub(super) const TURN_DEADLINE: Duration = CAPTURE_DEADLINE.saturating_add(Duration::from_secs(30));

/// Why it is not known what a project uses, or why it may not use more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UsageError {
    #[error(transparent)]
    Over(#[from] OverQuota),
    #[error("cannot add up what the project uses")]
    Store(#[from] StoreError),
    #[error("the node does not say what it keeps")]
    Node(#[from] NodeError),
    #[error(transparent)]
    Volume(#[from] VolumeRefusal),
    #[error(transparent)]
    Busy(#[from] TurnTimeout),
    #[error("the project was suspended meanwhile")]
    ProjectClosed,
    #[error("the work on the volume stopped")]
    Stopped,
}

/// What a project uses, beside what it may.
///
/// # Errors
/// [`UsageError`].
pub(crate) async fn of_project(
    control: &Control,
    project: &ProjectId,
    limits: &LimitsRow,
) -> Result<ProjectUsage, UsageError> {
    let snapshots = control.node.snapshots_of(project).await?;
    let volumes = control.node.volumes_of(project).await?;
    add_up(control, project, limits, &snapshots, &volumes).await
}

/// The same of each project, oldest first.
///
/// # Errors
/// [`UsageError`].
pub(crate) async fn of_all(control: &Control) -> Result<Vec<ProjectUsage>, UsageError> {
    let projects = control.store.projects().await?;
    let snapshots = control.node.snapshots().await?;
    let volumes = control.node.volumes().await?;
    let mut all = Vec::with_capacity(projects.len());
    for row in &projects {
        let used = add_up(control, &row.id, &row.limits, &snapshots, &volumes).await?;
        all.push(ProjectUsage {
            project: Some(row.id.to_string()),
            ..used
        });
    }
    Ok(all)
}

/// What one project uses, of reports that may have those of others.
async fn add_up(
    control: &Control,
    project: &ProjectId,
    limits: &LimitsRow,
    snapshots: &[SnapshotReport],
    volumes: &[VolumeReport],
) -> Result<ProjectUsage, UsageError> {
    let used = control.store.used(project).await?;
    Ok(ProjectUsage {
        sandboxes: used.sandboxes,
        vcpus: used.vcpus,
        memory_mb: used.memory_mb,
        disk_mb: used.disk_mb,
        snapshot_mb: snapshot_mb(project, snapshots),
        volume_mb: volume_mb(project, volumes),
        limits: projects::to_wire(limits),
        project: None,
    })
}

/// What each sandbox of a project, or of all, that runs costs the host.
///
/// # Errors
/// [`UsageError::Node`].
pub(crate) async fn loads(control: &Control, whose: &Whose) -> Result<SandboxLoadList, UsageError> {
    let projects = match whose {
        Whose::One(project) => vec![project.clone()],
        Whose::Everybody => control.store.projects_with_sandboxes().await?,
    };
    let mut items = Vec::new();
    for project in &projects {
        let loads = control.node.loads(project).await?;
        items.extend(loads.into_iter().map(|load| SandboxLoad {
            id: load.id.to_string(),
            cpu_us: load.cpu_micros,
            memory_bytes: load.memory_bytes,
            project: whose.named(project.as_str()),
        }));
    }
    let at_ms = now_ms().unsigned_abs();
    Ok(SandboxLoadList { at_ms, items })
}

/// Waits for a project's turn to take a snapshot. How large it will be, nobody knows before, so a
/// project with a limit takes one after the other: it goes over by one of them, and by those whose
/// end the node did not tell. Those with a name go one after the other too, so that of two with the
/// same one the second is refused.
///
/// # Errors
/// [`UsageError::Busy`].
pub(crate) async fn turn_for_snapshot(
    control: &Control,
    project: &ProjectId,
    limits: &LimitsRow,
    is_named: bool,
) -> Result<Option<Turn>, UsageError> {
    if limits.snapshot_mb.is_none() && !is_named {
        return Ok(None);
    }
    let turn = control.snapshot_turns.wait(project, TURN_DEADLINE).await?;
    Ok(Some(turn))
}

/// Whether a project may keep one more snapshot.
///
/// # Errors
/// [`UsageError`].
pub(crate) async fn room_for_snapshot(
    control: &Control,
    project: &ProjectId,
    limits: &LimitsRow,
) -> Result<(), UsageError> {
    let Some(limit) = limits.snapshot_mb else {
        return Ok(());
    };
    let used = snapshot_mb(project, &control.node.snapshots_of(project).await?);
    Ok(OverQuota::check("MiB of snapshots", Some(limit), used, 1)?)
}

/// A volume as somebody wants it.
#[derive(Debug)]
pub(crate) struct VolumeWish {
    pub(crate) project: ProjectId,
    pub(crate) limits: LimitsRow,
    pub(crate) name: VolumeName,
    pub(crate) size: DiskMib,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VolumeChange {
    Create,
    Grow,
}

/// Makes or grows a volume, if the project may have so much.
///
/// # Errors
/// [`UsageError`].
///
/// # Cancel safety
/// Dropping the future does not stop the work.
pub(crate) async fn change_volume(
    control: Arc<Control>,
    wish: VolumeWish,
    change: VolumeChange,
) -> Result<Created, UsageError> {
    let tasks = control.tasks.clone();
    let work = async move {
        // From the look to the making, whoever waits for it.
        let turns = &control.volume_turns;
        let _one_at_a_time = turns.wait(&wish.project, TURN_DEADLINE).await?;
        // A project that is being deleted gets nothing more, or it would be left behind.
        let row = control.store.project(&wish.project).await?;
        if row.is_none_or(|row| row.state != ProjectState::Active) {
            return Err(UsageError::ProjectClosed);
        }
        room_for_volume(&control, &wish).await?;
        let node = control.node.as_ref();
        let VolumeWish {
            project,
            name,
            size,
            ..
        } = wish;
        Ok(match change {
            VolumeChange::Create => change::create(node, project, name, size).await?,
            VolumeChange::Grow => Created::Same(change::grow(node, project, name, size).await?),
        })
    };
    tasks.spawn(work).await.unwrap_or(Err(UsageError::Stopped))
}

/// Whether there is room. A volume that the project has already does not count twice.
async fn room_for_volume(control: &Control, wish: &VolumeWish) -> Result<(), UsageError> {
    let Some(limit) = wish.limits.volume_mb else {
        return Ok(());
    };
    let reports = control.node.volumes_of(&wish.project).await?;
    let others = reports
        .iter()
        .filter(|report| report.project == wish.project && report.name != wish.name);
    let used = others.map(|report| u64::from(report.size.get())).sum();
    let wanted = u64::from(wish.size.get());
    Ok(OverQuota::check(
        "MiB of volumes",
        Some(limit),
        used,
        wanted,
    )?)
}

fn snapshot_mb(project: &ProjectId, reports: &[SnapshotReport]) -> u64 {
    let own = reports.iter().filter(|report| report.project == *project);
    let bytes: u64 = own.map(|report| report.size_bytes).sum();
    bytes.div_ceil(MIB)
}

fn volume_mb(project: &ProjectId, reports: &[VolumeReport]) -> u64 {
    let own = reports.iter().filter(|report| report.project == *project);
    own.map(|report| u64::from(report.size.get())).sum()
}
