//! What a new sandbox is made from: a template, or a snapshot of the same project, or its disk.

use dayfly_node_api::{NodeApi, TemplateReport, VariantReport};
use dayfly_types::capture::MachineOrigin;
use dayfly_types::{ProjectId, SnapshotId, TemplateName};

use crate::input::{Invalid, quantity};
use crate::sandbox::size;
use crate::sandbox::spec::{NewSandbox, SandboxSource};
use crate::snapshot::read::{self, FindSnapshotError};
use crate::template::read::{self as template, TemplateError};
use crate::template::variant;

/// Where a sandbox begins, and the sizes that follow from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) template: TemplateName,
    pub(crate) from: MachineOrigin,
    pub(crate) cpu: u32,
    pub(crate) memory_mb: u64,
    pub(crate) disk_mib: u64,
    /// The size of the template is another than its own.
    pub(crate) variant: Option<VariantReport>,
}

/// Why a sandbox cannot begin there.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    #[error("cannot start from that template")]
    Template(#[source] TemplateError),
    #[error("cannot start from that snapshot")]
    Snapshot(#[source] FindSnapshotError),
    #[error("the sizes do not fit the template")]
    Size(#[source] Invalid),
}

/// Finds what `new` begins with, and checks that its sizes fit.
///
/// # Errors
/// [`OriginError`].
pub(crate) async fn find(
    node: &dyn NodeApi,
    project: &ProjectId,
    new: &NewSandbox,
) -> Result<Origin, OriginError> {
    match &new.source {
        SandboxSource::Template(name) => {
            let found = find_template(node, project, name, new).await?;
            let (template, variant) = found;
            check_disk(new, &template)?;
            let origin = origin(MachineOrigin::Template, &template);
            Ok(Origin { variant, ..origin })
        }
        SandboxSource::Snapshot(id) => {
            let (id, template) = find_snapshot(node, project, id, new).await?;
            Ok(origin(MachineOrigin::Capture(id), &template))
        }
        SandboxSource::DiskOf(id) => {
            let (id, template) = find_snapshot(node, project, id, new).await?;
            Ok(origin(MachineOrigin::DiskOf(id), &template))
        }
    }
}

/// A template that is ready, in the size that is asked for.
async fn find_template(
    node: &dyn NodeApi,
    project: &ProjectId,
    name: &TemplateName,
    new: &NewSandbox,
) -> Result<(TemplateReport, Option<VariantReport>), OriginError> {
    let mut template = template::find(node, name)
        .await
        .map_err(OriginError::Template)?;
    let vcpus = new.cpu.map(size::vcpus_of).transpose();
    let vcpus = vcpus.map_err(OriginError::Size)?;
    // Fewer than it has are only a limit.
    let vcpus = vcpus.filter(|vcpus| *vcpus > template.vcpus);
    let wanted = size::variant(&template, new.memory, vcpus).map_err(OriginError::Size)?;
    let Some(size) = wanted else {
        let ready = template::when_ready(node, template).await;
        return Ok((ready.map_err(OriginError::Template)?, None));
    };
    let variant = variant::find_ready(node, project, &template, size)
        .await
        .map_err(OriginError::Template)?;
    (template.memory, template.vcpus) = (size.memory, size.vcpus);
    Ok((template, Some(variant)))
}

/// A snapshot of the project, by its id, and its template.
async fn find_snapshot(
    node: &dyn NodeApi,
    project: &ProjectId,
    id: &SnapshotId,
    new: &NewSandbox,
) -> Result<(SnapshotId, TemplateReport), OriginError> {
    let snapshot = read::find(node, project, id)
        .await
        .map_err(OriginError::Snapshot)?;
    let template = template::find(node, &snapshot.template).await;
    // A snapshot holds all that it needs, so its template may be baking. Whether it fits an engine
    // of today, and how large its disk is, the node knows.
    let mut template = template.map_err(OriginError::Template)?;
    if let Some(size) = snapshot.size {
        (template.memory, template.vcpus) = (size.memory, size.vcpus);
    }
    check_cpu(new, &template)?;
    check_memory(new, &template)?;
    Ok((snapshot.id, template))
}

fn origin(from: MachineOrigin, template: &TemplateReport) -> Origin {
    Origin {
        template: template.name.clone(),
        from,
        cpu: u32::from(template.vcpus.get()),
        memory_mb: u64::from(template.memory.get()),
        disk_mib: template.disk_mib,
        variant: None,
    }
}

fn check_cpu(new: &NewSandbox, template: &TemplateReport) -> Result<(), OriginError> {
    let processors = u32::from(template.vcpus.get());
    match new.cpu {
        Some(limit) if limit.get() > processors * 1000 => {
            let rule = format!("must be at most {processors}, as the snapshot has no more");
            Err(OriginError::Size(Invalid::field("cpu", rule)))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_memory(new: &NewSandbox, template: &TemplateReport) -> Result<(), OriginError> {
    match new.memory {
        Some(memory) if memory != template.memory => {
            let has = template.memory;
            let rule = format!("must be {has} or absent, as that is what the snapshot has");
            Err(OriginError::Size(Invalid::field("memory_mb", rule)))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_disk(new: &NewSandbox, template: &TemplateReport) -> Result<(), OriginError> {
    match new.disk {
        Some(disk) if u64::from(disk.get()) < template.disk_mib => {
            let name = &template.name;
            let least = quantity::gigabytes(template.disk_mib);
            let rule = format!("must be at least {least}, which template {name} has");
            Err(OriginError::Size(Invalid::field("disk_gb", rule)))
        }
        Some(_) | None => Ok(()),
    }
}
