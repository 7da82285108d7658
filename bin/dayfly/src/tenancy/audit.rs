//! `dayfly audit`.

use std::collections::HashMap;
use std::time::Duration;

use dayfly_api::{AuditEntry, AuditList};
use dayfly_client::AuditOptions;
use time::OffsetDateTime;

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
/// How much later than its time an entry may be written.
const LATE_MAX: Duration = Duration::from_secs(60);

pub(crate) async fn audit(session: &Session<'_>, args: &AuditArgs) -> Result<u8, CommandError> {
    if args.follow {
        return signals::until_left(follow(session, args)).await;
    }
    let entries = read(session, args, limit(args), &Seen::default()).await?;
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&entries)?;
        return Ok(exit_status::OK);
    }
    let mut table = Table::new(&["TIME", "KEY", "STATUS", "OPERATION", "DETAIL"]);
    for entry in &entries {
        table.push(cells(entry).into());
    }
    if args.whose.all_projects {
        table.lead_with_projects(entries.iter().map(|entry| &entry.project));
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
    let mut seen = Seen::default();
    let mut entries = read(session, args, limit(args), &seen).await?;
    let moment = |entry: &AuditEntry| moments::parse(&entry.at).ok();
    // What is older than the first was not asked for.
    let first = entries.last().and_then(moment);
    let first = first.unwrap_or_else(OffsetDateTime::now_utc);
    let mut newest = first;
    loop {
        for entry in entries.iter().rev() {
            print(session.printer, entry)?;
            seen.note(entry);
            newest = moment(entry).unwrap_or(first).max(newest);
        }
        // Entries of all projects are in the order of time, in which one of another project may
        // come late. So those of a while are read again.
        let since = first.max(newest - LATE_MAX);
        seen.since = args.whose.all_projects.then_some(since);
        tokio::time::sleep(LOOK_AGAIN).await;
        entries = read(session, args, u64::MAX, &seen).await?;
    }
}

/// What was printed already.
#[derive(Debug, Default)]
struct Seen {
    /// The last number of each project; of the own one without a name.
    last: HashMap<Option<String>, u64>,
    /// Where a view over all projects is read from.
    since: Option<OffsetDateTime>,
}

impl Seen {
    fn note(&mut self, entry: &AuditEntry) {
        let last = self.last.entry(entry.project.clone()).or_default();
        *last = entry.seq.max(*last);
    }

    fn has(&self, entry: &AuditEntry) -> bool {
        let last = self.last.get(&entry.project);
        last.is_some_and(|last| entry.seq <= *last)
    }
}

fn print(printer: &Printer, entry: &AuditEntry) -> Result<(), CommandError> {
    if printer.is_json() {
        // One object in a line: more may follow for ever.
        return printer.line(&serde_json::to_string(entry).unwrap_or_default());
    }
    let [at, key, status, operation, detail] = cells(entry).map(|cell| text::visible(&cell));
    let (at, key) = (table::padded(&at, 24), table::padded(&key, 12));
    let whose = table::padded_project(entry.project.as_deref());
    let line = format!(
        "{at}  {whose}{key}  {}  {operation}  {detail}",
        printer.status(&status, 3)
    );
    printer.line(line.trim_end())
}

/// What was asked for, newest first: at most `limit` entries, and none that was seen.
async fn read(
    session: &Session<'_>,
    args: &AuditArgs,
    limit: u64,
    seen: &Seen,
) -> Result<Vec<AuditEntry>, CommandError> {
    let mut options = AuditOptions {
        subject: args.subject.clone(),
        since: args.since.max(seen.since).as_ref().map(moments::rfc3339),
        until: args.until.as_ref().map(moments::rfc3339),
        cursor: None,
        limit: None,
        projects: args.whose.choice(),
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
            match seen.has(&entry) {
                false => entries.push(entry),
                // The numbers of one project go back one by one.
                true if !args.whose.all_projects => return Ok(entries),
                true => {}
            }
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
