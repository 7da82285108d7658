//! What a new sandbox is made from: a template, or a snapshot of the same project, or its disk.

use dayfly_node_api::{NodeApi, TemplateReport, VariantReport};
use dayfly_types::capture::MachineOrigin;
use dayfly_types::{MemoryMib, ProjectId, SnapshotId, TemplateName, Vcpus};

use crate::control::Control;
use crate::input::{Invalid, quantity};
use crate::sandbox::size;
use crate::sandbox::spec::{NewSandbox, SandboxSource};
use crate::snapshot::read::{self, FindSnapshotError};
use crate::store::OrderRow;
use crate::template::order::{self, OrderTemplateError};
use crate::template::read::{self as template, TemplateError};
use crate::template::reference::VersionReference;
use crate::template::{images, variant, versions};

/// Where a sandbox begins, and the sizes that follow from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) template: TemplateName,
    /// What the template is called by those who made it, where that is another name.
    pub(crate) called: Option<String>,
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
    #[error("cannot start from that template of the project")]
    Order(#[source] OrderTemplateError),
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
    control: &Control,
    project: &ProjectId,
    new: &NewSandbox,
) -> Result<Origin, OriginError> {
    let node = control.node.as_ref();
    match &new.source {
        SandboxSource::Template(name) => of_template(control, project, name, new).await,
        SandboxSource::Version(reference) => of_version(control, project, reference, new).await,
        SandboxSource::Image(wish) => {
            let report = images::ensure(control, project, wish, None).await;
            let report = report.map_err(OriginError::Order)?;
            let called = Some(wish.address.clone());
            of_report(control, project, report, called, new).await
        }
        SandboxSource::Snapshot(id) => {
            let (id, sizes) = find_snapshot(node, project, id, new).await?;
            Ok(origin(MachineOrigin::Capture(id), sizes))
        }
        SandboxSource::DiskOf(id) => {
            let (id, sizes) = find_snapshot(node, project, id, new).await?;
            Ok(origin(MachineOrigin::DiskOf(id), sizes))
        }
    }
}

/// The server's templates come first: nobody can make one of their name.
async fn of_template(
    control: &Control,
    project: &ProjectId,
    name: &TemplateName,
    new: &NewSandbox,
) -> Result<Origin, OriginError> {
    match template::find(control.node.as_ref(), name).await {
        Ok(template) => of_report(control, project, template, None, new).await,
        Err(unknown @ TemplateError::Unknown { .. }) => {
            let latest = VersionReference::latest(name.as_str());
            match versions::resolve(control, project, &latest).await {
                Ok(row) => of_row(control, &row, name.to_string(), new).await,
                Err(OrderTemplateError::NotFound { .. }) => Err(OriginError::Template(unknown)),
                Err(error) => Err(OriginError::Order(error)),
            }
        }
        Err(error) => Err(OriginError::Template(error)),
    }
}

async fn of_version(
    control: &Control,
    project: &ProjectId,
    reference: &VersionReference,
    new: &NewSandbox,
) -> Result<Origin, OriginError> {
    let row = versions::resolve(control, project, reference).await;
    let row = row.map_err(OriginError::Order)?;
    of_row(control, &row, reference.to_string(), new).await
}

async fn of_row(
    control: &Control,
    row: &OrderRow,
    called: String,
    new: &NewSandbox,
) -> Result<Origin, OriginError> {
    let report = order::find(control, row).await;
    let report = report.map_err(OriginError::Order)?;
    order::note_use(control, row).await;
    of_report(control, &row.project, report, Some(called), new).await
}

/// A template that may still be in the making.
async fn of_report(
    control: &Control,
    project: &ProjectId,
    report: TemplateReport,
    called: Option<String>,
    new: &NewSandbox,
) -> Result<Origin, OriginError> {
    let shown = called.clone().unwrap_or_else(|| report.name.to_string());
    let (template, variant) = in_size(control, project, report, &shown, new).await?;
    check_disk(new, &template, &shown)?;
    Ok(Origin {
        called,
        variant,
        ..origin(MachineOrigin::Template, Sizes::of(&template))
    })
}

/// The name of a template on the node, and the sizes of its machines.
struct Sizes {
    template: TemplateName,
    memory: MemoryMib,
    vcpus: Vcpus,
    disk_mib: u64,
}

impl Sizes {
    fn of(template: &TemplateReport) -> Self {
        Self {
            template: template.name.clone(),
            memory: template.memory,
            vcpus: template.vcpus,
            disk_mib: template.disk_mib,
        }
    }
}

/// A template in the size that is asked for: its own, or a variant, which has to be baked first.
async fn in_size(
    control: &Control,
    project: &ProjectId,
    mut template: TemplateReport,
    shown: &str,
    new: &NewSandbox,
) -> Result<(TemplateReport, Option<VariantReport>), OriginError> {
    let vcpus = new.cpu.map(size::vcpus_of).transpose();
    let vcpus = vcpus.map_err(OriginError::Size)?;
    // Fewer than it has are only a limit.
    let vcpus = vcpus.filter(|vcpus| *vcpus > template.vcpus);
    let wanted = size::variant(&template, new.memory, vcpus).map_err(OriginError::Size)?;
    let node = control.node.as_ref();
    let Some(size) = wanted else {
        let ready = template::when_ready(node, template, shown).await;
        return Ok((ready.map_err(OriginError::Template)?, None));
    };
    let variant = variant::find_ready(node, project, &template, size)
        .await
        .map_err(OriginError::Template)?;
    (template.memory, template.vcpus) = (size.memory, size.vcpus);
    Ok((template, Some(variant)))
}

/// A snapshot of the project, by its id, and its sizes. It holds all that it needs, so its template
/// may be baking, or gone. Whether it fits an engine of today the node knows.
async fn find_snapshot(
    node: &dyn NodeApi,
    project: &ProjectId,
    id: &SnapshotId,
    new: &NewSandbox,
) -> Result<(SnapshotId, Sizes), OriginError> {
    let snapshot = read::find(node, project, id)
        .await
        .map_err(OriginError::Snapshot)?;
    let sizes = match snapshot.size {
        Some(size) => Sizes {
            template: snapshot.template.clone(),
            memory: size.memory,
            vcpus: size.vcpus,
            disk_mib: snapshot.disk_mib,
        },
        // A node of an older release does not say.
        None => {
            let found = template::find_any(node, &snapshot.template).await;
            Sizes::of(&found.map_err(OriginError::Template)?)
        }
    };
    check_cpu(new, sizes.vcpus)?;
    check_memory(new, sizes.memory)?;
    Ok((snapshot.id, sizes))
}

fn origin(from: MachineOrigin, sizes: Sizes) -> Origin {
    Origin {
        template: sizes.template,
        called: None,
        from,
        cpu: u32::from(sizes.vcpus.get()),
        memory_mb: u64::from(sizes.memory.get()),
        disk_mib: sizes.disk_mib,
        variant: None,
    }
}

fn check_cpu(new: &NewSandbox, vcpus: Vcpus) -> Result<(), OriginError> {
    let processors = u32::from(vcpus.get());
    match new.cpu {
        Some(limit) if limit.get() > processors * 1000 => {
            let rule = format!("must be at most {processors}, as the snapshot has no more");
            Err(OriginError::Size(Invalid::field("cpu", rule)))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_memory(new: &NewSandbox, has: MemoryMib) -> Result<(), OriginError> {
    match new.memory {
        Some(memory) if memory != has => {
            let rule = format!("must be {has} or absent, as that is what the snapshot has");
            Err(OriginError::Size(Invalid::field("memory_mb", rule)))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_disk(new: &NewSandbox, template: &TemplateReport, name: &str) -> Result<(), OriginError> {
    match new.disk {
        Some(disk) if u64::from(disk.get()) < template.disk_mib => {
            let least = quantity::gigabytes(template.disk_mib);
            let rule = format!("must be at least {least}, which template {name} has");
            Err(OriginError::Size(Invalid::field("disk_gb", rule)))
        }
        Some(_) | None => Ok(()),
    }
}
