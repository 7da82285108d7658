//! What the network denied to a command that failed. To the command, a name that is not allowed
//! looks like one that does not exist.

use std::collections::BTreeSet;

use dayfly_client::NetworkLogOptions;

use crate::dispatch::Session;

/// How much of the end of the record is looked at.
const RECORDS_MAX: u64 = 64;
/// Behind every record: the answer has none, and the number of the latest.
const POSITION_MAX: u64 = i64::MAX as u64;
/// Names that are told.
const NAMES_MAX: usize = 4;
/// Of a time in RFC 3339, what is above the second.
const SECONDS_CHARACTERS: usize = 19;

/// Names and addresses that were denied to a command, in order.
#[derive(Debug)]
pub(crate) struct Denials(BTreeSet<String>);

/// What was denied since a command began. Nothing when nobody can say: how the command ended
/// matters more.
pub(crate) async fn of_command(session: &Session<'_>, id: &str, exec: &str) -> Option<Denials> {
    let process = session.client.get_process(id, exec).await.ok()?;
    let started = process.started_at.get(..SECONDS_CHARACTERS)?;
    let mut options = NetworkLogOptions {
        after: POSITION_MAX,
        limit: Some(RECORDS_MAX),
        wait_seconds: 0,
    };
    let end = session.client.network_log(id, options).await.ok()?;
    options.after = end.latest.saturating_sub(RECORDS_MAX);
    let log = session.client.network_log(id, options).await.ok()?;
    let denied = log.records.into_iter().filter(|record| {
        let at = record.at.get(..SECONDS_CHARACTERS);
        record.decision == "denied" && at.is_some_and(|at| at >= started)
    });
    let names: BTreeSet<String> = denied
        .filter(|record| record.reason.as_deref() != Some("question_type"))
        .filter_map(|record| record.name.or(record.destination))
        .collect();
    (!names.is_empty()).then_some(Denials(names))
}

impl Denials {
    /// What was denied, and what to do about it in a sandbox that is still there, or in the next.
    pub(crate) fn text(&self, id: &str, is_gone: bool) -> String {
        let told: Vec<&str> = self.0.iter().take(NAMES_MAX).map(String::as_str).collect();
        let first = told.first().copied().unwrap_or_default();
        let told = told.join(", ");
        if is_gone {
            format!("the network denied {told}; allow it with `--allow {first}`")
        } else {
            format!(
                "the network denied {told}; see `dayfly net log {id}`, allow with `dayfly net allow {id} {first}`"
            )
        }
    }
}
