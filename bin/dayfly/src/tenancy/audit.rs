//! `dayfly audit`.

use std::time::Duration;

use dayfly_api::{AuditEntry, AuditList};
use dayfly_client::AuditOptions;

use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::printer::Printer;
use crate::table::{self, Table};
use crate::tenancy::args::AuditArgs;
use crate::{exit_status, moments, signals, text};

/// Entries that are asked for at once.
const PAGE: u64 = 1000;
/// Entries that are shown unless something else says where to begin.
const ENTRIES_DEFAULT: u64 = 50;
const DETAIL_CHARACTERS_MAX: usize = 60;
/// How often new entries are looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

pub(crate) async fn audit(session: &Session<'_>, args: &AuditArgs) -> Result<u8, CommandError> {
    if args.follow {
        return signals::until_left(follow(session, args)).await;
    }
    let entries = read(session, args, limit(args), 0).await?;
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&entries)?;
        return Ok(exit_status::OK);
    }
    let mut table = Table::new(&["TIME", "KEY", "STATUS", "OPERATION", "DETAIL"]);
    for entry in &entries {
        table.push(cells(entry).into());
    }
    printer.table(&table)?;
    if entries.is_empty() {
        printer.note("nothing is recorded");
    }
    Ok(exit_status::OK)
}

/// Without a number, a moment says how far back it goes.
fn limit(args: &AuditArgs) -> u64 {
    let has_moment = args.since.is_some() || args.until.is_some();
    let usual = if has_moment {
        u64::MAX
    } else {
        ENTRIES_DEFAULT
    };
    args.limit.unwrap_or(usual)
}

/// Prints what there is, oldest first, and then what comes.
async fn follow(session: &Session<'_>, args: &AuditArgs) -> Result<u8, CommandError> {
    let mut entries = read(session, args, limit(args), 0).await?;
    let mut last = 0;
    loop {
        for entry in entries.iter().rev() {
            print(session.printer, entry)?;
            last = last.max(entry.seq);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
        entries = read(session, args, u64::MAX, last).await?;
    }
}

fn print(printer: &Printer, entry: &AuditEntry) -> Result<(), CommandError> {
    if printer.is_json() {
        // One object in a line: more may follow for ever.
        return printer.line(&serde_json::to_string(entry).unwrap_or_default());
    }
    let [at, key, status, operation, detail] = cells(entry).map(|cell| text::visible(&cell));
    let (at, key) = (table::padded(&at, 24), table::padded(&key, 12));
    let line = format!(
        "{at}  {key}  {}  {operation}  {detail}",
        printer.status(&status, 3)
    );
    printer.line(line.trim_end())
}

/// What was asked for, newest first: at most `limit` entries, and none up to the entry `after`.
async fn read(
    session: &Session<'_>,
    args: &AuditArgs,
    limit: u64,
    after: u64,
) -> Result<Vec<AuditEntry>, CommandError> {
    let mut options = AuditOptions {
        subject: args.subject.clone(),
        since: args.since.as_ref().map(moments::rfc3339),
        until: args.until.as_ref().map(moments::rfc3339),
        cursor: None,
        limit: None,
    };
    let mut entries = Vec::new();
    loop {
        let left = limit.saturating_sub(entries.len() as u64);
        if left == 0 {
            return Ok(entries);
        }
        options.limit = Some(left.min(PAGE));
        let page = session.client.audit(&options).await;
        let failed = |source| {
            CommandError::call("cannot read the audit log", source).about(Subject::Project)
        };
        let AuditList { items, next_cursor } = page.map_err(failed)?;
        for entry in items {
            if entry.seq <= after {
                return Ok(entries);
            }
            entries.push(entry);
        }
        if next_cursor.is_none() {
            return Ok(entries);
        }
        options.cursor = next_cursor;
    }
}

fn cells(entry: &AuditEntry) -> [String; 5] {
    [
        entry.at.clone(),
        entry.key_prefix.clone(),
        entry.status.to_string(),
        entry.operation.clone(),
        detail(entry),
    ]
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
