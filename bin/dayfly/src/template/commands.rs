//! `dayfly template`.

use std::time::{Duration, Instant};

use dayfly_api::{Template, TemplateRun, TemplateState};
use dayfly_client::{WaitProgress, WaitReason};

use crate::args::ShellArgs;
use crate::dispatch::Session;
use crate::exec;
use crate::exit_status;
use crate::failure::{CommandError, Subject};
use crate::sandbox::progress::Progress;
use crate::table::Table;
use crate::template::args::TemplateCommand;
use crate::template::{build, variants, version_commands};

/// How often a caller who waits is told.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(crate) async fn template(
    session: &Session<'_>,
    command: &TemplateCommand,
) -> Result<u8, CommandError> {
    match command {
        TemplateCommand::Ls => list(session).await?,
        TemplateCommand::Info { name } => show(session, name).await?,
        TemplateCommand::Bake {
            name,
            memory,
            cpu,
            wait,
        } if !memory.is_empty() || cpu.is_some() => {
            variants::bake(session, name, &variants::sizes(memory, *cpu), *wait).await?;
        }
        TemplateCommand::Bake { name, wait, .. } => bake(session, name, *wait).await?,
        TemplateCommand::Build(args) => build::build(session, args).await?,
        TemplateCommand::Versions { name } => version_commands::versions(session, name).await?,
        TemplateCommand::Tag { name, version, tag } => {
            version_commands::tag(session, name, version, tag).await?;
        }
        TemplateCommand::Rm { name } => version_commands::remove(session, name).await?,
        TemplateCommand::Debug { id } => {
            return exec::start::shell(session, &debugged(id)).await;
        }
    }
    Ok(exit_status::OK)
}

/// The builder's own shell, as root: what failed may need to be looked at from above.
fn debugged(id: &str) -> ShellArgs {
    ShellArgs {
        id: id.to_owned(),
        user: Some("root".to_owned()),
        cwd: Some("/".to_owned()),
    }
}

async fn list(session: &Session<'_>) -> Result<(), CommandError> {
    let templates = session
        .client
        .templates()
        .await
        .map_err(|source| CommandError::call("cannot list templates", source))?;
    if session.printer.is_json() {
        return session.printer.json(&templates);
    }
    let mut table = Table::new(&[
        "NAME",
        "STATE",
        "CPU",
        "MEMORY",
        "DISK",
        "SIZE",
        "DESCRIPTION",
    ]);
    for template in &templates {
        table.push(vec![
            template.name.clone(),
            state(template),
            template.cpu.to_string(),
            format!("{} MiB", template.memory_mb),
            format!("{} MiB", template.disk_mb),
            format!("{} MiB", template.size_bytes >> 20),
            template.description.clone(),
        ]);
    }
    session.printer.table(&table)
}

async fn show(session: &Session<'_>, name: &str) -> Result<(), CommandError> {
    let template = session.client.template(name).await.map_err(|source| {
        CommandError::call(format!("cannot read template {name}"), source).about(Subject::Template)
    })?;
    if session.printer.is_json() {
        return session.printer.json(&template);
    }
    let mut table = Table::new(&["FIELD", "VALUE"]);
    let mut row = |field: &str, value: String| table.push(vec![field.to_owned(), value]);
    row("name", template.name.clone());
    row("description", template.description.clone());
    if let Some(other) = &template.alias_of {
        row("another name of", other.clone());
    }
    row("state", state(&template));
    if let Some(detail) = &template.detail {
        row("detail", detail.clone());
    }
    row("cpu", template.cpu.to_string());
    row("memory", format!("{} MiB", template.memory_mb));
    row("disk", format!("{} MiB", template.disk_mb));
    row("size", format!("{} bytes", template.size_bytes));
    row("run means", run(template.run).to_owned());
    row("contexts", template.contexts.join(", "));
    row(
        "global",
        if template.is_global { "yes" } else { "no" }.to_owned(),
    );
    row(
        "baked",
        template
            .baked_at
            .clone()
            .unwrap_or_else(|| "not yet".to_owned()),
    );
    for variant in &template.variants {
        row(
            &format!("variant {}", variants::size(variant)),
            variants::state(variant),
        );
    }
    session.printer.table(&table)
}

/// Has a template baked and shows how far it is, if its caller waits.
async fn bake(session: &Session<'_>, name: &str, wait: bool) -> Result<(), CommandError> {
    let failed = |source| {
        CommandError::call(format!("cannot bake template {name}"), source).about(Subject::Template)
    };
    let mut template = session.client.bake_template(name).await.map_err(failed)?;
    let started = Instant::now();
    let mut progress = Progress::new(session.printer, Some(name));
    while wait && !is_settled(&template) {
        progress.update(&WaitProgress {
            reason: WaitReason::TemplateBaking,
            percent: Some(template.percent),
            message: template.detail.clone().unwrap_or_default(),
            waited: started.elapsed(),
        });
        tokio::time::sleep(LOOK_AGAIN).await;
        template = session.client.template(name).await.map_err(failed)?;
    }
    drop(progress);
    if wait && template.state == TemplateState::Failed {
        let reason = template.detail.unwrap_or_default();
        let hint = if template.usable {
            "sandboxes are made from the bake before it; `dayfly template bake` tries again"
        } else {
            "the daemon's log says more; `dayfly template bake` tries again"
        };
        return Err(CommandError::Refused {
            what: format!("template {name} could not be baked: {reason}"),
            hint,
        });
    }
    if session.printer.is_json() {
        return session.printer.json(&template);
    }
    session
        .printer
        .note(&format!("template {name}: {}", state(&template)));
    Ok(())
}

fn is_settled(template: &Template) -> bool {
    matches!(template.state, TemplateState::Ready | TemplateState::Failed)
}

fn run(run: TemplateRun) -> &'static str {
    match run {
        TemplateRun::Shell => "a shell command",
        TemplateRun::Python => "a Python program",
        TemplateRun::PythonContext => "Python that keeps its state",
    }
}

fn state(template: &Template) -> String {
    let state = last_bake(template);
    if template.usable && template.state != TemplateState::Ready {
        return format!("{state}, usable as it was");
    }
    state
}

fn last_bake(template: &Template) -> String {
    match template.state {
        TemplateState::NotBaked => "not baked".to_owned(),
        TemplateState::Waiting => "waiting".to_owned(),
        TemplateState::Baking => format!("baking {} %", template.percent),
        TemplateState::Ready => "ready".to_owned(),
        TemplateState::Failed => "failed".to_owned(),
    }
}
