//! `dayfly audit`.

use dayfly_api::{AuditEntry, AuditList};
use dayfly_client::AuditOptions;

use crate::dispatch::Session;
use crate::exit_status;
use crate::failure::{CommandError, Subject};
use crate::table::Table;
use crate::tenancy::args::AuditArgs;

/// Entries that are asked for at once.
const PAGE: u64 = 1000;
const DETAIL_CHARACTERS_MAX: usize = 60;

pub(crate) async fn audit(session: &Session<'_>, args: &AuditArgs) -> Result<u8, CommandError> {
    let entries = read(session, args).await?;
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&entries)?;
        return Ok(exit_status::OK);
    }
    let mut table = Table::new(&["TIME", "KEY", "STATUS", "OPERATION", "DETAIL"]);
    for entry in &entries {
        table.push(vec![
            entry.at.clone(),
            entry.key_prefix.clone(),
            entry.status.to_string(),
            entry.operation.clone(),
            detail(entry),
        ]);
    }
    printer.table(&table)?;
    if entries.is_empty() {
        printer.note("nothing is recorded");
    }
    Ok(exit_status::OK)
}

async fn read(session: &Session<'_>, args: &AuditArgs) -> Result<Vec<AuditEntry>, CommandError> {
    let mut options = AuditOptions {
        subject: args.subject.clone(),
        cursor: None,
        limit: None,
    };
    let mut entries = Vec::new();
    loop {
        let left = args.limit.saturating_sub(entries.len() as u64);
        if left == 0 {
            return Ok(entries);
        }
        options.limit = Some(left.min(PAGE));
        let page = session.client.audit(&options).await;
        let failed = |source| {
            CommandError::call("cannot read the audit log", source).about(Subject::Project)
        };
        let AuditList { items, next_cursor } = page.map_err(failed)?;
        entries.extend(items);
        if next_cursor.is_none() {
            return Ok(entries);
        }
        options.cursor = next_cursor;
    }
}

/// Of a command or of code its beginning, and how it ended; of a file its path.
fn detail(entry: &AuditEntry) -> String {
    let field = |name: &str| entry.detail.get(name).and_then(|value| value.as_str());
    let input = field("cmd").or_else(|| field("code"));
    let Some(input) = input.or_else(|| field("path")) else {
        return String::new();
    };
    let mut shown: String = input.chars().take(DETAIL_CHARACTERS_MAX).collect();
    if shown.len() < input.len() {
        shown.push('…');
    }
    match entry.detail.pointer("/end/exit_code") {
        Some(code) => format!("{shown} -> {code}"),
        None => shown,
    }
}
