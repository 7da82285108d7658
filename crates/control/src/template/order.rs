//! Templates that a project orders of the node.

use std::time::Duration;

use dayfly_node_api::{BakeState, NodeCalls, NodeError, TemplateReport};
use dayfly_types::ordered_template::is_ordered_name;
use dayfly_types::{ErrorCode, OrderedTemplate, ProjectId, TemplateSize, limits};

use crate::admission::turns::TurnTimeout;
use crate::control::Control;
use crate::input::Invalid;
use crate::input::ids::NoRandomness;
use crate::snapshot::read::FindSnapshotError;
use crate::store::{OrderKind, OrderRow, OverQuota, StoreError};
use crate::time::now_ms;

/// Longer than an order that the node takes in, and a template that it gives up.
const TURN_DEADLINE: Duration = limits::CREATE_DEADLINE;

/// How old the last note of a use may be. More would be a write with every create.
const USE_NOTE_AGE: Duration = Duration::from_secs(600);

/// Why there is no such template, or why nothing was changed about one.
#[derive(Debug, thiserror::Error)]
pub enum OrderTemplateError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error("there is no {what}")]
    NotFound { what: String },
    #[error("{name} is a template of this server; choose another name")]
    NameTaken { name: String },
    #[error("the project has {most} {what}, which is as many as it may have; delete some")]
    Full { what: &'static str, most: i64 },
    #[error(
        "{} templates of this project are being made; wait until one of them is ready",
        limits::PROJECT_BAKES_MAX
    )]
    Busy,
    #[error("the template is being deleted; ask again in a moment")]
    Going,
    #[error(transparent)]
    Over(#[from] OverQuota),
    #[error(transparent)]
    Turn(#[from] TurnTimeout),
    #[error("a tag means version {id}; let it mean another one first, or delete the tag")]
    Tagged { id: String },
    #[error("cannot use the snapshot")]
    Snapshot(#[source] FindSnapshotError),
    #[error("cannot keep what templates there are")]
    Store(#[from] StoreError),
    #[error("the node refused")]
    Node(#[from] NodeError),
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

/// Refuses one more while as many of the project's templates as may be are being made: the node makes
/// one at a time, for everybody.
pub(crate) async fn ensure_not_busy(
    control: &Control,
    project: &ProjectId,
) -> Result<(), OrderTemplateError> {
    let mut mine = control.store.orders(project, OrderKind::Image).await?;
    mine.extend(control.store.orders(project, OrderKind::Version).await?);
    let reports = control.node.templates().await?;
    let is_mine = |report: &&TemplateReport| {
        is_ordered_name(&report.name) && mine.iter().any(|row| row.node_template == report.name)
    };
    let is_made = |report: &&TemplateReport| {
        matches!(report.state, BakeState::Waiting | BakeState::Baking { .. })
    };
    let busy = reports.iter().filter(is_mine).filter(is_made).count();
    if busy >= limits::PROJECT_BAKES_MAX {
        return Err(OrderTemplateError::Busy);
    }
    Ok(())
}

/// Refuses a template whose machine the project could not run as a sandbox beside those that it has:
/// its bake takes as much of the host.
pub(crate) async fn ensure_fits(
    control: &Control,
    project: &ProjectId,
    size: TemplateSize,
) -> Result<(), OrderTemplateError> {
    let Some(row) = control.store.project(project).await? else {
        return Ok(());
    };
    let (limits, used) = (row.limits, control.store.used(project).await?);
    let (vcpus, memory) = (u64::from(size.vcpus.get()), u64::from(size.memory.get()));
    OverQuota::check("vCPUs", limits.vcpus, used.vcpus, vcpus)?;
    let what = "MiB of memory";
    Ok(OverQuota::check(
        what,
        limits.memory_mb,
        used.memory_mb,
        memory,
    )?)
}

/// The template of a row, of which there may be no bake yet. A failure is told to whoever waits, and
/// tried again for whoever asks later.
pub(crate) async fn find(
    control: &Control,
    row: &OrderRow,
) -> Result<TemplateReport, OrderTemplateError> {
    let name = &row.node_template;
    let report = control.node.find_template(name).await?;
    match &report.state {
        BakeState::NotBaked => Ok(control.node.ensure_template(name).await?),
        BakeState::Failed { .. } if !report.is_usable && control.failures_told.is_retry(name) => {
            ensure_not_busy(control, &row.project).await?;
            Ok(control.node.ensure_template(name).await?)
        }
        BakeState::Waiting
        | BakeState::Baking { .. }
        | BakeState::Ready
        | BakeState::Failed { .. } => Ok(report),
    }
}

/// Has the node take an order in, unless the row is on its way out: what was given up stays so.
pub(crate) async fn place(
    control: &Control,
    row: &OrderRow,
    wanted: OrderedTemplate,
) -> Result<TemplateReport, OrderTemplateError> {
    let turns = &control.template_turns;
    let _turn = turns.wait(&row.project, TURN_DEADLINE).await?;
    match control.store.order(&row.project, &row.id).await? {
        Some(_) => Ok(control.node.order_template(wanted).await?),
        None => Err(OrderTemplateError::Going),
    }
}

/// Has the node make what a row says, or says how far it is.
pub(crate) async fn ask_node(
    control: &Control,
    row: &OrderRow,
    wanted: impl FnOnce() -> OrderedTemplate,
) -> Result<TemplateReport, OrderTemplateError> {
    match find(control, row).await {
        Err(OrderTemplateError::Node(error)) if error.code == ErrorCode::NotFound => {
            place(control, row, wanted()).await
        }
        found => found,
    }
}

/// Notes that an order is used, so that others go before it.
pub(crate) async fn note_use(control: &Control, row: &OrderRow) {
    let age = now_ms().saturating_sub(row.used_at_ms);
    if age < i64::try_from(USE_NOTE_AGE.as_millis()).unwrap_or(i64::MAX) {
        return;
    }
    let noted = control.store.touch_order(&row.project, &row.id, now_ms());
    if let Err(error) = noted.await {
        tracing::warn!(template = %row.node_template, error = &error as &dyn std::error::Error,
            "cannot note the use of a template");
    }
}

/// Has the node give up what is on its way out, and forgets it then. A row that was read a while ago
/// may have gone, and another of its name have come.
pub(crate) async fn give_up(control: &Control, row: &OrderRow) -> Result<(), OrderTemplateError> {
    let turns = &control.template_turns;
    let _turn = turns.wait(&row.project, TURN_DEADLINE).await?;
    if !control.store.is_order_going(&row.project, &row.id).await? {
        return Ok(());
    }
    match control.node.forget_template(&row.node_template).await {
        Err(error) if error.code != ErrorCode::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    Ok(control.store.delete_order(&row.project, &row.id).await?)
}

/// Goes on with what a crash or an outage left.
pub(crate) async fn give_up_the_rest(control: &Control) {
    let going = match control.store.going_orders().await {
        Ok(going) => going,
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot read which templates go"
            );
            return;
        }
    };
    for row in going {
        if let Err(error) = give_up(control, &row).await {
            tracing::warn!(template = %row.node_template, error = &error as &dyn std::error::Error,
                "a template could not be given up yet");
        }
    }
}
