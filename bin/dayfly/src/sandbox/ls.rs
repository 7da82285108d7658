//! `dayfly ls`.

use dayfly_client::{ProjectChoice, SandboxFilter};
use time::OffsetDateTime;

use crate::args::LsArgs;
use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::table::Table;
use crate::{ages, exit_status, text};

pub(crate) async fn list(session: &Session<'_>, arguments: LsArgs) -> Result<u8, CommandError> {
    let is_choosy = arguments != LsArgs::default();
    let filter = SandboxFilter {
        status: arguments.status,
        template: arguments.template,
        metadata: arguments.metadata.into_iter().collect(),
        projects: arguments.whose.choice(),
    };
    let mut sandboxes = session
        .client
        .find_sandboxes(&filter)
        .await
        .map_err(|source| CommandError::call("cannot list sandboxes", source))?;
    // Oldest first; RFC 3339 in UTC sorts as text.
    sandboxes.sort_by(|a, b| (&a.created_at, &a.id).cmp(&(&b.created_at, &b.id)));
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&sandboxes)?;
        return Ok(exit_status::OK);
    }
    if printer.is_quiet() {
        let ids = sandboxes
            .iter()
            .map(|sandbox| text::visible(&sandbox.id) + "\n");
        printer.data(&ids.collect::<String>())?;
        return Ok(exit_status::OK);
    }
    let now = OffsetDateTime::now_utc();
    let mut table = Table::new(&[
        "ID", "TEMPLATE", "STATUS", "AGE", "EXPIRES", "CPU", "MEMORY", "NAME",
    ]);
    for sandbox in &sandboxes {
        table.push(vec![
            sandbox.id.clone(),
            sandbox.template.clone(),
            sandbox.status.clone(),
            ages::since(&sandbox.created_at, now),
            ages::until(sandbox.expires_at.as_deref(), now),
            sandbox.cpu.to_string(),
            format!("{} MiB", sandbox.memory_mb),
            sandbox.name.clone().unwrap_or_default(),
        ]);
    }
    if filter.projects == ProjectChoice::All {
        table.lead_with_projects(sandboxes.iter().map(|sandbox| &sandbox.project));
    }
    printer.table(&table)?;
    if sandboxes.is_empty() {
        printer.note(if is_choosy {
            "no sandboxes that have all of this"
        } else {
            "no sandboxes; `dayfly create` makes one"
        });
    }
    Ok(exit_status::OK)
}
