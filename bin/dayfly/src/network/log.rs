//! `dayfly net log`.

use dayfly_api::{NetworkLog, NetworkRecord};
use dayfly_client::{NetworkItem, NetworkLogOptions};
use serde_json::json;

use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::printer::Printer;
use crate::table::{self, Table};
use crate::{exit_status, signals, text};

/// Records that are asked for at once.
const PAGE_RECORDS: u64 = 1000;

pub(crate) async fn log(
    session: &Session<'_>,
    id: &str,
    is_followed: bool,
    after: u64,
) -> Result<u8, CommandError> {
    if is_followed {
        return signals::until_left(follow(session, id, after)).await;
    }
    let log = read_all(session, id, after).await?;
    if session.printer.is_json() {
        session.printer.json(&log)?;
        return Ok(exit_status::OK);
    }
    let mut table = Table::new(&["TIME", "DECISION", "KIND", "NAME", "WHY", "BYTES"]);
    for record in &log.records {
        table.push(cells(record).into());
    }
    session.printer.table(&table)?;
    if log.lost > 0 {
        warn_of_loss(session, log.lost);
    }
    if log.records.is_empty() {
        session.printer.note("nothing is recorded");
    }
    Ok(exit_status::OK)
}

/// Everything behind `after` that is there now.
async fn read_all(session: &Session<'_>, id: &str, after: u64) -> Result<NetworkLog, CommandError> {
    let mut options = NetworkLogOptions {
        after,
        limit: Some(PAGE_RECORDS),
        wait_seconds: 0,
    };
    let mut whole: Option<NetworkLog> = None;
    loop {
        let page = session.client.network_log(id, options).await;
        let page = page.map_err(failed(id))?;
        let last = page.records.last().map(|record| record.sequence);
        let whole = match &mut whole {
            None => whole.insert(page),
            Some(whole) => {
                whole.records.extend(page.records);
                whole.latest = page.latest;
                whole
            }
        };
        match last {
            Some(last) if last < whole.latest => options.after = last,
            Some(_) | None => return Ok(whole.clone()),
        }
    }
}

async fn follow(session: &Session<'_>, id: &str, after: u64) -> Result<u8, CommandError> {
    let opened = session.client.follow_network(id, after).await;
    let mut follow = opened.map_err(failed(id))?;
    loop {
        match follow.next().await.map_err(failed(id))? {
            Some(item) => print(session, &item)?,
            None => return Ok(exit_status::OK),
        }
    }
}

fn print(session: &Session<'_>, item: &NetworkItem) -> Result<(), CommandError> {
    let printer = session.printer;
    match item {
        NetworkItem::Record(record) if printer.is_json() => {
            // One object in a line, also on a terminal: more may follow for ever.
            printer.line(&serde_json::to_string(record).unwrap_or_default())
        }
        NetworkItem::Lost(count) if printer.is_json() => {
            printer.line(&json!({"lost": count}).to_string())
        }
        NetworkItem::Record(record) => printer.line(&line(printer, record)),
        NetworkItem::Lost(count) => {
            warn_of_loss(session, *count);
            Ok(())
        }
    }
}

fn warn_of_loss(session: &Session<'_>, count: u64) {
    let printer = session.printer;
    printer.warning(&format!("{count} records are no longer there"));
}

fn failed(id: &str) -> impl FnOnce(dayfly_client::ClientError) -> CommandError {
    let what = format!("cannot read what sandbox {id} tried to reach");
    move |source| CommandError::call(what, source)
}

/// One decision in a line, in columns as far as that goes without knowing what comes.
fn line(printer: &Printer, record: &NetworkRecord) -> String {
    let [time, decision, kind, name, why, bytes] = cells(record).map(|cell| text::visible(&cell));
    let decision = printer.status(&decision, 8);
    let (name, why) = (table::padded(&name, 32), table::padded(&why, 16));
    format!("{time:<24}  {decision}  {kind:<4}  {name}  {why}  {bytes}")
        .trim_end()
        .to_owned()
}

fn cells(record: &NetworkRecord) -> [String; 6] {
    let none = || "-".to_owned();
    let name = match (&record.name, record.port) {
        (Some(name), Some(port)) => format!("{name}:{port}"),
        (Some(name), None) => name.clone(),
        (None, _) => record.destination.clone().unwrap_or_else(none),
    };
    let mut why = match (&record.reason, &record.rule) {
        (Some(word), _) | (None, Some(word)) => word.clone(),
        (None, None) if record.would_deny => "would_deny".to_owned(),
        (None, None) => none(),
    };
    if let Some(network) = &record.internal_network {
        why.push_str(&format!(" ({network})"));
    }
    if record.suppressed > 0 {
        why.push_str(&format!("(+{})", record.suppressed));
    }
    let has_bytes = record.bytes_up > 0 || record.bytes_down > 0;
    let bytes = format!("{}/{}", record.bytes_up, record.bytes_down);
    [
        record.at.clone(),
        record.decision.clone(),
        record.kind.clone(),
        name,
        why,
        if has_bytes { bytes } else { none() },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_when_what_and_why() {
        let mut record = NetworkRecord {
            sequence: 1,
            at: "2026-01-01T00:00:00.5Z".to_owned(),
            kind: "tls".to_owned(),
            decision: "denied".to_owned(),
            name: Some("evil.test".to_owned()),
            name_source: "sni".to_owned(),
            port: Some(443),
            destination: Some("93.184.216.34:443".to_owned()),
            dialed: None,
            answers: Vec::new(),
            rule: None,
            reason: Some("no_rule".to_owned()),
            internal_network: None,
            would_deny: false,
            bytes_up: 0,
            bytes_down: 0,
            duration_ms: 0,
            suppressed: 12,
        };
        let printer = Printer::new(&Default::default(), &Default::default());
        let words: Vec<String> = line(&printer, &record)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        assert_eq!(
            words,
            [
                "2026-01-01T00:00:00.5Z",
                "denied",
                "tls",
                "evil.test:443",
                "no_rule(+12)",
                "-"
            ]
        );
        record.name = None;
        (record.reason, record.would_deny, record.suppressed) = (None, true, 0);
        (record.bytes_up, record.bytes_down) = (1, 2);
        let words = cells(&record);
        assert_eq!(words[3..], ["93.184.216.34:443", "would_deny", "1/2"]);
        record.rule = Some("mirror.corp.example".to_owned());
        record.internal_network = Some("corp".to_owned());
        assert_eq!(cells(&record)[4], "mirror.corp.example (corp)");
    }
}
