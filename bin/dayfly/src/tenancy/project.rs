//! `dayfly project`.

use dayfly_api::{ChangeLimits, CreateProject, Project, ProjectUsage, SuspendProject};
use dayfly_client::{ClientError, ProjectChoice};

use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::table::Table;
use crate::tenancy::args::{Limit, LimitArgs, ProjectCommand};
use crate::tenancy::{hours, project_state};
use crate::{exit_status, text};

pub(crate) async fn project(
    session: &Session<'_>,
    command: &ProjectCommand,
) -> Result<u8, CommandError> {
    let client = &session.client;
    match command {
        ProjectCommand::Create { id, limits } => {
            let request = CreateProject {
                id: id.clone(),
                limits: Some(change(limits)),
            };
            let made = client.create_project(&request).await;
            let what = format!("cannot make project {}", text::visible(id));
            tell(
                session,
                &made.map_err(|source| CommandError::call(what, source))?,
            )
        }
        ProjectCommand::Set { id, limits } => {
            let changed = client.change_project(id, &change(limits)).await;
            let what = format!("cannot change project {}", text::visible(id));
            tell(
                session,
                &changed
                    .map_err(|source| CommandError::call(what, source).about(Subject::Project))?,
            )
        }
        ProjectCommand::Ls => list(session).await,
        ProjectCommand::Suspend { id, reason, stop } => {
            let request = SuspendProject {
                reason: reason.clone(),
                stop_sandboxes: Some(*stop),
            };
            project_state::suspend(session, id, &request).await
        }
        ProjectCommand::Resume { id } => {
            let resumed = client.resume_project(id).await;
            tell(session, &resumed.map_err(failed("resume", id))?)
        }
        ProjectCommand::Rm { id, force, yes } => {
            project_state::remove(session, id, *force, *yes).await
        }
        ProjectCommand::Usage {
            by_hour: true,
            since,
            until,
            whose,
        } => hours::show(session, whose, *since, *until).await,
        ProjectCommand::Usage { whose, .. } => match whose.choice() {
            ProjectChoice::Own => usage(session, client.usage().await),
            ProjectChoice::One(project) => usage(session, client.usage_of(&project).await),
            ProjectChoice::All => usage_of_all(session).await,
        },
    }
}

/// What is said when something cannot be done with a project.
pub(super) fn failed(verb: &str, id: &str) -> impl FnOnce(ClientError) -> CommandError {
    let what = format!("cannot {verb} project {}", text::visible(id));
    move |source| CommandError::call(what, source).about(Subject::Project)
}

fn change(limits: &LimitArgs) -> ChangeLimits {
    let wish = |limit: Option<Limit>| limit.map(|limit| limit.0);
    ChangeLimits {
        sandboxes: wish(limits.sandboxes),
        vcpus: wish(limits.vcpus),
        memory_mb: wish(limits.memory_mb),
        snapshot_mb: wish(limits.snapshot_mb),
        volume_mb: wish(limits.volume_mb),
        requests_per_second: wish(limits.requests_per_second),
        disk_mb: wish(limits.disk_mb),
        keeps_output: limits.keeps_output,
    }
}

fn tell(session: &Session<'_>, project: &Project) -> Result<u8, CommandError> {
    if session.printer.is_json() {
        session.printer.json(project)?;
    } else {
        session.printer.line(&text::visible(&project.id))?;
    }
    Ok(exit_status::OK)
}

fn number(limit: Option<u64>) -> String {
    limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string())
}

async fn list(session: &Session<'_>) -> Result<u8, CommandError> {
    let projects = session.client.projects().await;
    let projects = projects.map_err(|source| CommandError::call("cannot list projects", source))?;
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&projects)?;
        return Ok(exit_status::OK);
    }
    let mut table = Table::new(&[
        "PROJECT",
        "STATE",
        "SANDBOXES",
        "VCPUS",
        "MEMORY MB",
        "SNAPSHOT MB",
        "VOLUME MB",
        "REQUESTS/S",
    ]);
    for project in &projects {
        let limits = &project.limits;
        table.push(vec![
            project.id.clone(),
            project.state.clone(),
            number(limits.sandboxes),
            number(limits.vcpus),
            number(limits.memory_mb),
            number(limits.snapshot_mb),
            number(limits.volume_mb),
            number(limits.requests_per_second),
        ]);
    }
    printer.table(&table)?;
    Ok(exit_status::OK)
}

fn unread(source: ClientError) -> CommandError {
    CommandError::call("cannot read the usage", source)
}

async fn usage_of_all(session: &Session<'_>) -> Result<u8, CommandError> {
    let usages = session.client.usage_of_all().await.map_err(unread)?;
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&usages)?;
        return Ok(exit_status::OK);
    }
    let mut table = Table::new(&[
        "PROJECT",
        "SANDBOXES",
        "VCPUS",
        "MEMORY MB",
        "SNAPSHOT MB",
        "VOLUME MB",
        "DISK MB",
    ]);
    for usage in &usages {
        let limits = &usage.limits;
        let of = |used: u64, limit: Option<u64>| format!("{used}/{}", number(limit));
        table.push(vec![
            usage.project.clone().unwrap_or_default(),
            of(usage.sandboxes, limits.sandboxes),
            of(usage.vcpus, limits.vcpus),
            of(usage.memory_mb, limits.memory_mb),
            of(usage.snapshot_mb, limits.snapshot_mb),
            of(usage.volume_mb, limits.volume_mb),
            of(usage.disk_mb, limits.disk_mb),
        ]);
    }
    printer.table(&table)?;
    Ok(exit_status::OK)
}

fn usage(
    session: &Session<'_>,
    read: Result<ProjectUsage, ClientError>,
) -> Result<u8, CommandError> {
    let usage = read.map_err(unread)?;
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&usage)?;
        return Ok(exit_status::OK);
    }
    let mut table = Table::new(&["WHAT", "USED", "LIMIT"]);
    for (what, used, limit) in [
        ("sandboxes", usage.sandboxes, usage.limits.sandboxes),
        ("vCPUs", usage.vcpus, usage.limits.vcpus),
        ("memory MB", usage.memory_mb, usage.limits.memory_mb),
        ("snapshot MB", usage.snapshot_mb, usage.limits.snapshot_mb),
        ("volume MB", usage.volume_mb, usage.limits.volume_mb),
        ("disk MB", usage.disk_mb, usage.limits.disk_mb),
    ] {
        table.push(vec![what.to_owned(), used.to_string(), number(limit)]);
    }
    printer.table(&table)?;
    Ok(exit_status::OK)
}
