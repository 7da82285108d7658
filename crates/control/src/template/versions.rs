//! Versions of a project's own templates, made from snapshots, and the tags that mean them.

use std::collections::BTreeMap;

use dayfly_api::{
    Command, CreateTemplate, Template, TemplateHealthCheck, TemplateState, TemplateVersion,
};
use dayfly_node_api::{NodeCalls, SnapshotReport, TemplateReport};
use dayfly_types::container_image::{ImageHealthCheck, ImageHealthCommand, MadeImage};
use dayfly_types::ordered_template::BUILT_PREFIX;
use dayfly_types::{
    DiskMib, ErrorCode, GuestDefaults, MemoryMib, OrderedSource, OrderedTemplate, ProjectId,
    SnapshotId, TemplateName, TemplateSize, Vcpus, limits,
};

use crate::control::Control;
use crate::exec::spec::check_cwd;
use crate::input::invalid::without_nul;
use crate::input::{Invalid, ids};
use crate::sandbox::environment::Environment;
use crate::snapshot::read as snapshot_read;
use crate::store::{Marked, OrderDocument, OrderKind, OrderRow, TagRow};
use crate::template::order::{self, OrderTemplateError};
use crate::template::read::present;
use crate::template::reference::{self, VERSION_PREFIX, VersionReference, Which};
use crate::time::{now_ms, rfc3339};

const DESCRIPTION_CHARACTERS_MAX: usize = 1000;
const USER_CHARACTERS_MAX: usize = 128;
const WORDS_MAX: usize = 1000;
const INTERVAL_SECONDS: f64 = 1.0;
const LOOK_SECONDS: f64 = 30.0;
const START_PERIOD_SECONDS: f64 = 60.0;
const RETRIES: u64 = 3;
const SECONDS_MAX: f64 = 3600.0;
const RETRIES_MAX: u64 = 1000;

/// A version to make. Every value is within its limits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewVersion {
    name: String,
    snapshot: SnapshotId,
    memory: Option<MemoryMib>,
    vcpus: Option<Vcpus>,
    about: MadeImage,
    document: OrderDocument,
}

impl NewVersion {
    /// # Errors
    /// [`Invalid`].
    pub(crate) fn parse(body: CreateTemplate) -> Result<Self, Invalid> {
        reference::check_name("name", &body.name)?;
        let snapshot = SnapshotId::parse(&body.from_snapshot)
            .map_err(|error| Invalid::field("from_snapshot", format!("is not an id: {error}")))?;
        let description = body.description.unwrap_or_default();
        if description.chars().count() > DESCRIPTION_CHARACTERS_MAX {
            let rule = format!("must have at most {DESCRIPTION_CHARACTERS_MAX} characters");
            return Err(Invalid::field("description", rule));
        }
        let provenance = body.provenance.unwrap_or_default();
        let length = serde_json::to_string(&provenance).map_or(usize::MAX, |text| text.len());
        if length > limits::PROVENANCE_BYTES_MAX {
            return Err(Invalid::TooLarge {
                what: "provenance",
                limit: limits::PROVENANCE_BYTES_MAX,
            });
        }
        let size = |field, error| Invalid::field(field, format!("does not fit: {error}"));
        let memory = body.memory_mb.map(MemoryMib::new).transpose();
        let vcpus = body.cpu.map(Vcpus::new).transpose();
        let about = MadeImage {
            digest: String::new(),
            layers: Vec::new(),
            defaults: defaults(body.user, body.directory, body.env)?,
            entry_point: words("entry_point", body.entry_point.unwrap_or_default())?,
            command: Vec::new(),
            shell: Vec::new(),
            on_build: None,
            health: body.health_check.map(health_check).transpose()?,
        };
        if !about.is_short() {
            return Err(Invalid::TooLarge {
                what: "what is said of the use of the template",
                limit: limits::IMAGE_USE_BYTES_MAX,
            });
        }
        Ok(Self {
            name: body.name,
            snapshot,
            memory: memory.map_err(|error| size("memory_mb", error))?,
            vcpus: vcpus.map_err(|error| size("cpu", error))?,
            about,
            document: OrderDocument {
                description,
                provenance,
                ..OrderDocument::default()
            },
        })
    }
}

fn defaults(
    user: Option<String>,
    directory: Option<String>,
    env: Option<BTreeMap<String, String>>,
) -> Result<GuestDefaults, Invalid> {
    if let Some(user) = &user {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-:".contains(&byte);
        let fits = (1..=USER_CHARACTERS_MAX).contains(&user.len()) && user.bytes().all(is_plain);
        if !fits {
            let rule = "must be a user, and behind a colon a group, by name or by number";
            return Err(Invalid::field("user", rule));
        }
    }
    if let Some(directory) = &directory {
        check_cwd(directory)?;
    }
    let environment = Environment::parse(env.unwrap_or_default())?;
    Ok(GuestDefaults {
        user,
        directory,
        environment: environment.variables().clone(),
    })
}

fn words(field: &'static str, words: Vec<String>) -> Result<Vec<String>, Invalid> {
    let length: usize = words.iter().map(|word| word.len() + 1).sum();
    if words.len() > WORDS_MAX || length > limits::EXEC_SPEC_BYTES_MAX {
        return Err(Invalid::TooLarge {
            what: field,
            limit: limits::EXEC_SPEC_BYTES_MAX,
        });
    }
    for word in &words {
        without_nul(field, word)?;
    }
    Ok(words)
}

fn health_check(asked: TemplateHealthCheck) -> Result<ImageHealthCheck, Invalid> {
    let field = "health_check";
    let command = match asked.command {
        Command::Shell(text) if !text.is_empty() => {
            ImageHealthCommand::Shell(words(field, vec![text])?.concat())
        }
        Command::Argv(list) if !list.is_empty() => {
            ImageHealthCommand::Arguments(words(field, list)?)
        }
        Command::Shell(_) | Command::Argv(_) => {
            return Err(Invalid::field(field, "must have a command"));
        }
    };
    let retries = asked.retries.unwrap_or(RETRIES);
    let retries = u32::try_from(retries)
        .ok()
        .filter(|_| (1..=RETRIES_MAX).contains(&retries));
    Ok(ImageHealthCheck {
        command,
        interval_ms: milliseconds(asked.interval_seconds, INTERVAL_SECONDS)?,
        timeout_ms: milliseconds(asked.timeout_seconds, LOOK_SECONDS)?,
        start_period_ms: milliseconds(asked.start_period_seconds, START_PERIOD_SECONDS)?,
        retries: retries.ok_or_else(|| {
            Invalid::field(field, format!("must have 1 to {RETRIES_MAX} retries"))
        })?,
    })
}

fn milliseconds(given: Option<f64>, otherwise: f64) -> Result<u64, Invalid> {
    let seconds = given.unwrap_or(otherwise);
    if !(0.0..=SECONDS_MAX).contains(&seconds) {
        let rule = format!("must have times of at most {SECONDS_MAX} seconds");
        return Err(Invalid::field("health_check", rule));
    }
    let duration = std::time::Duration::from_secs_f64(seconds);
    Ok(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Whose version it is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Maker<'a> {
    pub(crate) project: &'a ProjectId,
    /// The prefix of a key.
    pub(crate) key: &'a str,
}

/// Orders a new version, and says how far it is. No tag means it yet.
///
/// # Errors
/// [`OrderTemplateError`].
pub(crate) async fn create(
    control: &Control,
    maker: Maker<'_>,
    new: NewVersion,
) -> Result<TemplateVersion, OrderTemplateError> {
    ensure_name_is_free(control, &new.name).await?;
    order::ensure_not_busy(control, maker.project).await?;
    let found = snapshot_read::find(control.node.as_ref(), maker.project, &new.snapshot).await;
    let snapshot = found.map_err(OrderTemplateError::Snapshot)?;
    let (size, disk_mib) = sizes(control, &snapshot).await?;
    let (row, wanted) = plan(maker, new, &snapshot, size, disk_mib)?;
    let (memory, vcpus) = (wanted.memory, wanted.vcpus);
    order::ensure_fits(control, maker.project, TemplateSize { memory, vcpus }).await?;
    let most = limits::PROJECT_TEMPLATE_VERSIONS_MAX;
    if !control.store.insert_order(&row, most).await? {
        return Err(OrderTemplateError::Full {
            what: "versions of templates",
            most,
        });
    }
    let report = match order::place(control, &row, wanted).await {
        Ok(report) => report,
        Err(error) => {
            // A row without a template would only be in the way.
            control
                .store
                .mark_order_with_tags(maker.project, &row.id)
                .await?;
            order::give_up(control, &row).await?;
            return Err(error);
        }
    };
    Ok(show(&row, Vec::new(), Some(report)))
}

/// What sandboxes of a snapshot have, and how large their disk is. Its template may have been deleted.
async fn sizes(
    control: &Control,
    snapshot: &SnapshotReport,
) -> Result<(TemplateSize, u64), OrderTemplateError> {
    if let Some(size) = snapshot.size.filter(|_| snapshot.disk_mib > 0) {
        return Ok((size, snapshot.disk_mib));
    }
    let below = control.node.find_template(&snapshot.template).await?;
    let size = TemplateSize {
        memory: below.memory,
        vcpus: below.vcpus,
    };
    Ok((
        snapshot.size.unwrap_or(size),
        snapshot.disk_mib.max(below.disk_mib),
    ))
}

/// The row of a new version, and what the node is asked for.
fn plan(
    maker: Maker<'_>,
    new: NewVersion,
    snapshot: &SnapshotReport,
    size: TemplateSize,
    disk_mib: u64,
) -> Result<(OrderRow, OrderedTemplate), OrderTemplateError> {
    let random = hex::encode(ids::draw()?);
    let unfit = |what: &str| Invalid::field("from_snapshot", format!("has no {what}"));
    let node_template = TemplateName::parse(&format!("{BUILT_PREFIX}{random}"));
    let node_template = node_template.map_err(|_| unfit("name"))?;
    let disk = DiskMib::new(disk_mib).map_err(|_| unfit("size"))?;
    let (memory, vcpus) = (
        new.memory.unwrap_or(size.memory),
        new.vcpus.unwrap_or(size.vcpus),
    );
    let row = OrderRow {
        id: format!("{VERSION_PREFIX}{random}"),
        project: maker.project.clone(),
        kind: OrderKind::Version,
        name: new.name,
        node_template: node_template.clone(),
        document: OrderDocument {
            from_snapshot: Some(snapshot.id.to_string()),
            memory_mb: u64::from(memory.get()),
            cpu: u32::from(vcpus.get()),
            disk_mib,
            ..new.document
        },
        made_by: Some(maker.key.to_owned()),
        created_at_ms: now_ms(),
        used_at_ms: now_ms(),
    };
    let starts_entry_point = !new.about.entry_point.is_empty();
    let wanted = OrderedTemplate {
        name: node_template,
        description: row.document.description.clone(),
        source: OrderedSource::Snapshot {
            project: maker.project.clone(),
            snapshot: snapshot.id.clone(),
            about: Box::new(MadeImage {
                digest: row.id.clone(),
                ..new.about
            }),
        },
        memory,
        vcpus,
        disk,
        starts_entry_point,
    };
    Ok((row, wanted))
}

/// A name that every project sees cannot be one project's.
///
/// # Errors
/// [`OrderTemplateError::NameTaken`].
pub(crate) async fn ensure_name_is_free(
    control: &Control,
    name: &str,
) -> Result<(), OrderTemplateError> {
    let Ok(parsed) = TemplateName::parse(name) else {
        return Ok(());
    };
    match control.node.find_template(&parsed).await {
        Ok(_) => Err(OrderTemplateError::NameTaken {
            name: name.to_owned(),
        }),
        Err(error) if error.code == ErrorCode::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The version that somebody means.
///
/// # Errors
/// [`OrderTemplateError`].
pub(crate) async fn resolve(
    control: &Control,
    project: &ProjectId,
    wanted: &VersionReference,
) -> Result<OrderRow, OrderTemplateError> {
    let found = match &wanted.which {
        Which::Tag(tag) => control.store.tagged(project, &wanted.name, tag).await?,
        Which::Version(id) => control.store.order(project, id).await?,
    };
    let is_it = |row: &OrderRow| row.kind == OrderKind::Version && row.name == wanted.name;
    found
        .filter(is_it)
        .ok_or_else(|| OrderTemplateError::NotFound {
            what: format!("template {wanted}"),
        })
}

/// All versions of a template, newest first, with their tags.
///
/// # Errors
/// [`OrderTemplateError::NotFound`] when there is none.
pub(crate) async fn list(
    control: &Control,
    project: &ProjectId,
    name: &str,
) -> Result<Vec<TemplateVersion>, OrderTemplateError> {
    let rows = control
        .store
        .orders_named(project, OrderKind::Version, name)
        .await?;
    if rows.is_empty() {
        let what = format!("template {name} of this project");
        return Err(OrderTemplateError::NotFound { what });
    }
    show_all(control, project, rows).await
}

async fn show_all(
    control: &Control,
    project: &ProjectId,
    rows: Vec<OrderRow>,
) -> Result<Vec<TemplateVersion>, OrderTemplateError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let tags = control.store.tags(project).await?;
    let reports = control.node.templates().await?;
    let shown = rows.iter().map(|row| {
        let report = reports
            .iter()
            .find(|report| report.name == row.node_template);
        show(row, tags_of(&tags, row), report.cloned())
    });
    Ok(shown.collect())
}

/// Templates of a project, each as its newest version that the node knows. Rows are newest first.
pub(crate) fn newest(rows: &[OrderRow], reports: &[TemplateReport]) -> Vec<Template> {
    let mut shown: Vec<Template> = Vec::new();
    for row in rows {
        let report = reports
            .iter()
            .find(|report| report.name == row.node_template);
        let is_shown = shown.iter().any(|template| template.name == row.name);
        if let Some(report) = report.filter(|_| !is_shown) {
            shown.push(Template {
                name: row.name.clone(),
                is_global: false,
                ..present(report.clone())
            });
        }
    }
    shown.sort_by(|one, other| one.name.cmp(&other.name));
    shown
}

fn tags_of(tags: &[TagRow], row: &OrderRow) -> Vec<String> {
    let mine = tags.iter().filter(|tag| tag.version_id == row.id);
    mine.map(|tag| tag.tag.clone()).collect()
}

/// One version.
///
/// # Errors
/// [`OrderTemplateError`].
pub(crate) async fn get(
    control: &Control,
    project: &ProjectId,
    wanted: &VersionReference,
) -> Result<TemplateVersion, OrderTemplateError> {
    let row = resolve(control, project, wanted).await?;
    let tags = control.store.tags(project).await?;
    let report = match control.node.find_template(&row.node_template).await {
        Ok(report) => Some(report),
        Err(error) if error.code == ErrorCode::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    Ok(show(&row, tags_of(&tags, &row), report))
}

/// Lets a tag mean a version of the same template.
///
/// # Errors
/// [`OrderTemplateError`].
pub(crate) async fn set_tag(
    control: &Control,
    project: &ProjectId,
    tag: TagRow,
) -> Result<TemplateVersion, OrderTemplateError> {
    if !control.store.set_tag(project, &tag, now_ms()).await? {
        let what = format!("version {} of template {}", tag.version_id, tag.name);
        return Err(OrderTemplateError::NotFound { what });
    }
    let which = Which::Version(tag.version_id);
    let name = tag.name;
    get(control, project, &VersionReference { name, which }).await
}

/// Deletes a version that no tag means. What was made from it stays.
///
/// # Errors
/// [`OrderTemplateError`].
pub(crate) async fn delete_version(
    control: &Control,
    project: &ProjectId,
    wanted: &VersionReference,
) -> Result<(), OrderTemplateError> {
    let row = match resolve(control, project, wanted).await {
        Ok(row) => row,
        Err(OrderTemplateError::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    match control.store.mark_order(project, &row.id).await? {
        Marked::Yes => order::give_up(control, &row).await,
        Marked::No => Err(OrderTemplateError::Tagged { id: row.id }),
    }
}

/// Deletes all versions and tags of a template. What was made from it stays.
///
/// # Errors
/// [`OrderTemplateError`].
pub(crate) async fn delete_template(
    control: &Control,
    project: &ProjectId,
    name: &str,
) -> Result<(), OrderTemplateError> {
    let rows = control
        .store
        .orders_named(project, OrderKind::Version, name)
        .await?;
    if rows.is_empty() && ensure_name_is_free(control, name).await.is_err() {
        // One of the server's stays, and nobody is to think that it went.
        let what = format!("template {name} of this project, and that of the server stays");
        return Err(OrderTemplateError::NotFound { what });
    }
    for row in rows {
        control.store.mark_order_with_tags(project, &row.id).await?;
        order::give_up(control, &row).await?;
    }
    Ok(())
}

/// A version as the public API shows it. One that the node does not know yet, or not any more, is told
/// as failed: it cannot be used.
fn show(row: &OrderRow, tags: Vec<String>, report: Option<TemplateReport>) -> TemplateVersion {
    let document = &row.document;
    let shown = report.map(present);
    let gone = "the node has no such template; make it anew";
    TemplateVersion {
        id: row.id.clone(),
        name: row.name.clone(),
        tags,
        state: shown
            .as_ref()
            .map_or(TemplateState::Failed, |shown| shown.state),
        usable: shown.as_ref().is_some_and(|shown| shown.usable),
        percent: shown.as_ref().map_or(0, |shown| shown.percent),
        detail: match &shown {
            Some(shown) => shown.detail.clone(),
            None => Some(gone.to_owned()),
        },
        description: document.description.clone(),
        cpu: document.cpu,
        memory_mb: document.memory_mb,
        disk_mb: document.disk_mib,
        size_bytes: shown.as_ref().map_or(0, |shown| shown.size_bytes),
        from_snapshot: document.from_snapshot.clone().unwrap_or_default(),
        made_by: row.made_by.clone(),
        created_at: rfc3339(row.created_at_ms),
        provenance: document.provenance.clone(),
    }
}
