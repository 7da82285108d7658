//! Volumes.
//!
//! As snapshots, they have no table here: the node that has a volume's bytes is the only truth
//! about its size and its users. The project is part of every name on the node.

use dayfly_api::Volume;
use dayfly_node_api::{EnsureVolume, NodeApi, NodeCalls, NodeError, VolumeReport};
use dayfly_types::{DiskMib, ErrorCode, ProjectId, VolumeName};

use crate::time::rfc3339;

/// Why a volume is not as it should be. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum VolumeRefusal {
    #[error("there is no volume {name}")]
    NotFound { name: VolumeName },
    #[error("volume {name} exists with {size_mb} MiB")]
    OtherSize { name: VolumeName, size_mb: u32 },
    #[error("volume {name} has {size_mb} MiB already and cannot shrink")]
    Shrinks { name: VolumeName, size_mb: u32 },
    #[error("the node refused")]
    Node(#[from] NodeError),
}

/// Whether a create made something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    New(Volume),
    /// It was there, with the size that was asked for.
    Same(Volume),
}

/// Makes a volume, unless it is there with the same size.
///
/// # Errors
/// [`VolumeRefusal`].
pub async fn create(
    node: &dyn NodeApi,
    project: ProjectId,
    name: VolumeName,
    size: DiskMib,
) -> Result<Created, VolumeRefusal> {
    // The node would grow a smaller one, which nobody asked for here.
    let known = find(node, &project, &name).await;
    let known = match known {
        Ok(report) => Some(report),
        Err(VolumeRefusal::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    let other_size = |report: &VolumeReport| VolumeRefusal::OtherSize {
        name: report.name.clone(),
        size_mb: report.size.get(),
    };
    if let Some(report) = known {
        if report.size != size {
            return Err(other_size(&report));
        }
        return Ok(Created::Same(present(report)));
    }
    let wanted = EnsureVolume {
        project,
        name,
        size,
    };
    let report = node.ensure_volume(wanted).await?;
    if report.size != size {
        // Somebody else made it in between.
        return Err(other_size(&report));
    }
    Ok(Created::New(present(report)))
}

/// Gives a volume more room.
///
/// # Errors
/// [`VolumeRefusal`].
pub async fn grow(
    node: &dyn NodeApi,
    project: ProjectId,
    name: VolumeName,
    size: DiskMib,
) -> Result<Volume, VolumeRefusal> {
    let report = find(node, &project, &name).await?;
    if report.size > size {
        return Err(VolumeRefusal::Shrinks {
            name,
            size_mb: report.size.get(),
        });
    }
    let wanted = EnsureVolume {
        project,
        name,
        size,
    };
    Ok(present(node.ensure_volume(wanted).await?))
}

/// One volume of a project.
///
/// # Errors
/// [`VolumeRefusal`].
pub async fn get(
    node: &dyn NodeApi,
    project: &ProjectId,
    name: &VolumeName,
) -> Result<Volume, VolumeRefusal> {
    find(node, project, name).await.map(present)
}

/// All volumes of a project, by name.
///
/// # Errors
/// [`NodeError`].
pub async fn list(node: &dyn NodeApi, project: &ProjectId) -> Result<Vec<Volume>, NodeError> {
    let reports = node.volumes_of(project).await?;
    let mine = reports
        .into_iter()
        .filter(|report| report.project == *project);
    let mut volumes: Vec<Volume> = mine.map(present).collect();
    volumes.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(volumes)
}

/// Makes sure that the project has no such volume.
///
/// # Errors
/// [`NodeError`], with `volume_busy` while a sandbox has it.
pub async fn delete(
    node: &dyn NodeApi,
    project: &ProjectId,
    name: &VolumeName,
) -> Result<(), NodeError> {
    match node.delete_volume(project, name).await {
        Err(error) if error.code == ErrorCode::NotFound => Ok(()),
        outcome => outcome,
    }
}

async fn find(
    node: &dyn NodeApi,
    project: &ProjectId,
    name: &VolumeName,
) -> Result<VolumeReport, VolumeRefusal> {
    match node.find_volume(project, name).await {
        Ok(report) if report.project == *project => Ok(report),
        Err(error) if error.code != ErrorCode::NotFound => Err(VolumeRefusal::Node(error)),
        Ok(_) | Err(_) => Err(VolumeRefusal::NotFound { name: name.clone() }),
    }
}

fn present(report: VolumeReport) -> Volume {
    Volume {
        name: report.name.to_string(),
        size_mb: u64::from(report.size.get()),
        created_at: rfc3339(report.created_at.saturating_mul(1000)),
        used_bytes: report.used_bytes,
        writer: report.writer.map(|id| id.to_string()),
        readers: report.readers.iter().map(ToString::to_string).collect(),
    }
}
