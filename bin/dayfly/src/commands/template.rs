//! `dayfly template`.

use dayfly_api::{Template, TemplateState};

use crate::args::TemplateCommand;
use crate::commands::Session;
use crate::exit_status;
use crate::failure::CommandError;
use crate::table::Table;

pub(crate) async fn template(
    session: &Session<'_>,
    command: &TemplateCommand,
) -> Result<u8, CommandError> {
    match command {
        TemplateCommand::Ls => list(session).await?,
        TemplateCommand::Info { name } => show(session, name).await?,
    }
    Ok(exit_status::OK)
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
    let template = session
        .client
        .template(name)
        .await
        .map_err(|source| CommandError::call(format!("cannot read template {name}"), source))?;
    if session.printer.is_json() {
        return session.printer.json(&template);
    }
    let mut table = Table::new(&["FIELD", "VALUE"]);
    let mut row = |field: &str, value: String| table.push(vec![field.to_owned(), value]);
    row("name", template.name.clone());
    row("description", template.description.clone());
    row("state", state(&template));
    if let Some(detail) = &template.detail {
        row("detail", detail.clone());
    }
    row("cpu", template.cpu.to_string());
    row("memory", format!("{} MiB", template.memory_mb));
    row("disk", format!("{} MiB", template.disk_mb));
    row("size", format!("{} bytes", template.size_bytes));
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
    session.printer.table(&table)
}

fn state(template: &Template) -> String {
    match template.state {
        TemplateState::Waiting => "waiting".to_owned(),
        TemplateState::Baking => format!("baking {} %", template.percent),
        TemplateState::Ready => "ready".to_owned(),
        TemplateState::Failed => "failed".to_owned(),
    }
}
