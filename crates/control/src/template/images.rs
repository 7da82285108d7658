//! Images of containers that a project makes sandboxes from.

use std::time::Duration;

use dayfly_api::{Command, EnsureImage, ImageTemplate, TemplateHealthCheck};
use dayfly_node_api::TemplateReport;
use dayfly_types::container_image::{ImageHealthCheck, ImageHealthCommand};
use dayfly_types::ordered_template::IMAGE_PREFIX;
use dayfly_types::{
    DiskMib, MemoryMib, OrderedSource, OrderedTemplate, ProjectId, TemplateName, TemplateSize,
    Vcpus, limits,
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::control::Control;
use crate::input::{Invalid, quantity};
use crate::store::{OrderDocument, OrderKind, OrderRow};
use crate::template::order::{self, OrderTemplateError};
use crate::template::read::present;
use crate::template::reference::whole_address;
use crate::time::now_ms;

const MEMORY_MIB_DEFAULT: u64 = 512;
const VCPUS_DEFAULT: u64 = 1;
const DISK_GB_DEFAULT: f64 = 4.0;
const ADDRESS_BYTES_MAX: usize = 1024;
/// Of the hash that names it.
const NAME_BYTES: usize = 20;

/// An image in a size. Every value is within its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageWish {
    pub address: String,
    pub memory: MemoryMib,
    pub vcpus: Vcpus,
    pub disk: DiskMib,
}

impl ImageWish {
    /// # Errors
    /// [`Invalid`].
    pub(crate) fn parse(body: EnsureImage) -> Result<Self, Invalid> {
        let is_plain = |letter: char| !letter.is_whitespace() && !letter.is_control();
        let image = &body.image;
        if image.is_empty() || image.len() > ADDRESS_BYTES_MAX || !image.chars().all(is_plain) {
            let rule = "must be HOST/NAME:TAG or HOST/NAME@sha256:DIGEST";
            return Err(Invalid::field("image", rule));
        }
        let size = |field, error| Invalid::field(field, format!("does not fit: {error}"));
        let memory = MemoryMib::new(body.memory_mb.unwrap_or(MEMORY_MIB_DEFAULT));
        let vcpus = Vcpus::new(body.cpu.unwrap_or(VCPUS_DEFAULT));
        Ok(Self {
            address: whole_address(image),
            memory: memory.map_err(|error| size("memory_mb", error))?,
            vcpus: vcpus.map_err(|error| size("cpu", error))?,
            disk: quantity::disk_gb(body.disk_gb.unwrap_or(DISK_GB_DEFAULT))?,
        })
    }

    /// What names it, among those of all projects.
    fn digest(&self, project: &ProjectId) -> String {
        let mut hash = Sha256::new();
        let sizes = format!(
            "{}/{}/{}",
            self.memory.get(),
            self.vcpus.get(),
            self.disk.get()
        );
        for part in [project.as_str(), &self.address, &sizes] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        let bytes = hash.finalize();
        bytes
            .iter()
            .take(NAME_BYTES)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    fn row(
        &self,
        project: &ProjectId,
        made_by: Option<&str>,
    ) -> Result<OrderRow, OrderTemplateError> {
        let digest = self.digest(project);
        let node_template = TemplateName::parse(&format!("{IMAGE_PREFIX}{digest}"));
        let node_template = node_template
            .map_err(|error| Invalid::field("image", format!("has no name: {error}")))?;
        Ok(OrderRow {
            id: format!("im-{digest}"),
            project: project.clone(),
            kind: OrderKind::Image,
            name: self.address.clone(),
            node_template,
            document: OrderDocument {
                memory_mb: u64::from(self.memory.get()),
                cpu: u32::from(self.vcpus.get()),
                disk_mib: u64::from(self.disk.get()),
                ..OrderDocument::default()
            },
            made_by: made_by.map(str::to_owned),
            created_at_ms: now_ms(),
            used_at_ms: now_ms(),
        })
    }

    fn order(&self, row: &OrderRow) -> OrderedTemplate {
        OrderedTemplate {
            name: row.node_template.clone(),
            description: self.address.clone(),
            source: OrderedSource::Image {
                project: row.project.clone(),
                address: self.address.clone(),
            },
            memory: self.memory,
            vcpus: self.vcpus,
            disk: self.disk,
            // A sandbox of an image is a computer with its files; what runs in it its user says.
            starts_entry_point: false,
        }
    }
}

/// Makes sure that the image is a template of the project, or will be, and says how far it is.
///
/// # Errors
/// [`OrderTemplateError`].
pub(crate) async fn ensure(
    control: &Control,
    project: &ProjectId,
    wish: &ImageWish,
    made_by: Option<&str>,
) -> Result<TemplateReport, OrderTemplateError> {
    let row = wish.row(project, made_by)?;
    match control.store.order(project, &row.id).await? {
        Some(known) => order::note_use(control, &known).await,
        None => {
            let (memory, vcpus) = (wish.memory, wish.vcpus);
            order::ensure_fits(control, project, TemplateSize { memory, vcpus }).await?;
            order::ensure_not_busy(control, project).await?;
            make_room(control, project).await?;
            insert(control, &row).await?;
        }
    }
    order::ask_node(control, &row, || wish.order(&row)).await
}

async fn insert(control: &Control, row: &OrderRow) -> Result<(), OrderTemplateError> {
    let most = limits::PROJECT_IMAGES_MAX;
    if control.store.insert_order(row, most).await? {
        return Ok(());
    }
    // Somebody else may have been first.
    match control.store.order(&row.project, &row.id).await? {
        Some(_) => Ok(()),
        None if control.store.is_order_going(&row.project, &row.id).await? => {
            Err(OrderTemplateError::Going)
        }
        None => Err(OrderTemplateError::Full {
            what: "images",
            most,
        }),
    }
}

/// Lets the image go that was not used for longest, when there are as many as there may be. It can be
/// fetched again; what was made from it stays.
async fn make_room(control: &Control, project: &ProjectId) -> Result<(), OrderTemplateError> {
    let mut rows = control.store.orders(project, OrderKind::Image).await?;
    let most = usize::try_from(limits::PROJECT_IMAGES_MAX).unwrap_or(usize::MAX);
    if rows.len() < most {
        return Ok(());
    }
    rows.sort_by_key(|row| row.used_at_ms);
    if let Some(oldest) = rows.first() {
        control
            .store
            .mark_order_with_tags(project, &oldest.id)
            .await?;
        order::give_up(control, oldest).await?;
    }
    Ok(())
}

/// An image as the public API shows it.
pub(crate) fn present_image(address: &str, report: TemplateReport) -> ImageTemplate {
    let image = report.image.clone();
    let shown = present(report);
    let digest = image.as_ref().map(|image| image.digest.clone());
    let health_check = image.as_ref().and_then(|image| image.health.as_ref());
    let health_check = health_check.map(present_health_check);
    let shell = image.as_ref().map(|image| image.shell.clone());
    let on_build = image.as_ref().and_then(|image| image.on_build.clone());
    let (defaults, entry_point, command) = image.map_or_else(Default::default, |image| {
        (image.defaults, image.entry_point, image.command)
    });
    ImageTemplate {
        image: address.to_owned(),
        state: shown.state,
        usable: shown.usable,
        percent: shown.percent,
        detail: shown.detail,
        cpu: shown.cpu,
        memory_mb: shown.memory_mb,
        disk_mb: shown.disk_mb,
        digest,
        user: defaults.user,
        directory: defaults.directory,
        env: defaults.environment,
        entry_point,
        command,
        shell: shell.unwrap_or_default(),
        on_build,
        health_check,
    }
}

fn present_health_check(check: &ImageHealthCheck) -> TemplateHealthCheck {
    let seconds = |milliseconds| Some(Duration::from_millis(milliseconds).as_secs_f64());
    TemplateHealthCheck {
        command: match &check.command {
            ImageHealthCommand::Arguments(words) => Command::Argv(words.clone()),
            ImageHealthCommand::Shell(text) => Command::Shell(text.clone()),
        },
        interval_seconds: seconds(check.interval_ms),
        timeout_seconds: seconds(check.timeout_ms),
        start_period_seconds: seconds(check.start_period_ms),
        retries: Some(check.retries.into()),
    }
}
