//! What cannot be read and is kept, and what the running daemon says is wrong.

use std::time::Duration;

use anyhow::{Context, Result};
use dayfly_installation::{DataDirectory, admin_client};
use dayfly_node::journal::{Entry, Journal};
use dayfly_node_api::{NodeCalls, NodeClient};

use super::{Check, Verdict};

/// How long the daemon may take to say how it is.
const HEALTH_LIMIT: Duration = Duration::from_secs(5);

/// Whether every sandbox can be read and used.
pub(super) async fn of_sandboxes(directory: &DataDirectory) -> Result<Check> {
    let mut kept = unreadable_records(directory)?;
    if directory.running()?.is_some() {
        let node = NodeClient::new(directory.node_socket());
        // A node that is being started again is asked the next time.
        if let Ok(status) = node.status().await {
            kept = status
                .kept
                .into_iter()
                .map(|kept| format!("{}: {}", kept.id, kept.reason))
                .collect();
        }
        let reports = node.sandboxes().await.unwrap_or_default();
        kept.extend(reports.into_iter().filter_map(|report| {
            let reason = report.unavailable?;
            Some(format!("{}: {reason}", report.id))
        }));
    }
    let hint = "start a program that can read it, put the file back, or give a record up with \
                `dayflyd forget --unreadable ID`; until then it is kept, and nothing is collected";
    Ok(check("unreadable", kept, "every sandbox can be read", hint))
}

/// Whether the running daemon is well.
pub(super) async fn of_health(directory: &DataDirectory) -> Result<Option<Check>> {
    if directory.running()?.is_none() {
        return Ok(None);
    }
    let health = admin_client(directory)?.health(HEALTH_LIMIT).await;
    let wrong = match health {
        Ok(health) => {
            let conditions = health.conditions.into_iter();
            conditions
                .map(|condition| format!("{}: {}", condition.name, condition.detail))
                .collect()
        }
        Err(error) => vec![error.to_string()],
    };
    let hint = "`GET /health` has what can be done about each; docs/operate.md says more";
    Ok(Some(check("health", wrong, "the daemon is well", hint)))
}

fn unreadable_records(directory: &DataDirectory) -> Result<Vec<String>> {
    let path = directory.node().join("sandboxes");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let entries = Journal::open(&path)?.entries();
    let entries = entries.context("cannot read the journal")?;
    let unreadable = entries.into_iter().filter_map(|entry| match entry {
        Entry::Unreadable { id, error, .. } => {
            Some(format!("{id}: {}", dayfly_types::error_chain(&error)))
        }
        Entry::Record(_) | Entry::Empty { .. } => None,
    });
    Ok(unreadable.collect())
}

fn check(name: &'static str, wrong: Vec<String>, fine: &str, hint: &str) -> Check {
    let is_fine = wrong.is_empty();
    Check {
        name,
        verdict: if is_fine {
            Verdict::Ok
        } else {
            Verdict::Warning
        },
        detail: if is_fine {
            fine.to_owned()
        } else {
            wrong.join("; ")
        },
        hint: (!is_fine).then(|| hint.to_owned()),
    }
}
