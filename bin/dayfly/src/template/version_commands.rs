//! `dayfly template versions`, `tag` and `rm`.

use dayfly_api::{TemplateState, TemplateVersion};
use dayfly_client::ClientError;

use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::table::Table;

pub(crate) async fn versions(session: &Session<'_>, name: &str) -> Result<(), CommandError> {
    let found = session.client.list_template_versions(name).await;
    let versions = found.map_err(failed(name))?;
    if session.printer.is_json() {
        return session.printer.json(&versions);
    }
    let mut table = Table::new(&[
        "VERSION", "TAGS", "STATE", "CPU", "MEMORY", "SIZE", "MADE BY", "CREATED",
    ]);
    for version in &versions {
        table.push(vec![
            version.id.clone(),
            version.tags.join(", "),
            state(version),
            version.cpu.to_string(),
            format!("{} MiB", version.memory_mb),
            format!("{} MiB", version.size_bytes >> 20),
            version.made_by.clone().unwrap_or_default(),
            version.created_at.clone(),
        ]);
    }
    session.printer.table(&table)
}

fn state(version: &TemplateVersion) -> String {
    match version.state {
        TemplateState::NotBaked => "not baked".to_owned(),
        TemplateState::Waiting => "waiting".to_owned(),
        TemplateState::Baking => format!("baking {} %", version.percent),
        TemplateState::Ready => "ready".to_owned(),
        TemplateState::Failed => "failed".to_owned(),
    }
}

pub(crate) async fn tag(
    session: &Session<'_>,
    name: &str,
    version: &str,
    tag: &str,
) -> Result<(), CommandError> {
    let client = &session.client;
    // A tag may stand for the version too.
    let found = client.get_template_version(name, version).await;
    let id = found.map_err(failed(name))?.id;
    let set = client.set_template_tag(name, tag, &id).await;
    let set = set.map_err(failed(name))?;
    if session.printer.is_json() {
        return session.printer.json(&set);
    }
    session
        .printer
        .note(&format!("{name}:{tag} means version {id}"));
    Ok(())
}

pub(crate) async fn remove(session: &Session<'_>, name: &str) -> Result<(), CommandError> {
    let client = &session.client;
    let removed = match name.split_once('@') {
        Some((name, version)) => client.delete_template_version(name, version).await,
        None => client.delete_template(name).await,
    };
    removed.map_err(failed(name))?;
    if !session.printer.is_json() {
        session.printer.note(&format!("deleted template {name}"));
    }
    Ok(())
}

fn failed(name: &str) -> impl FnOnce(ClientError) -> CommandError {
    let what = format!("cannot use template {name}");
    move |source| CommandError::call(what, source).about(Subject::Template)
}
