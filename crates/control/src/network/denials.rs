//! What a sandbox was denied while a command ran, as a word for whoever ran it: to a program, a
//! name that is not allowed looks like one that does not exist.

use std::collections::BTreeSet;
use std::time::Duration;

use dayfly_api::Hint;
use dayfly_node_api::{NodeCalls, ReadNetworkLog};
use dayfly_types::SandboxId;
use dayfly_types::egress::{Decision, DenyReason, EgressRecord};

use crate::control::Control;

/// How much of the end of the record is looked at.
const RECORDS_MAX: usize = 64;
/// Names that a hint tells.
const NAMES_MAX: usize = 4;

/// What was denied since a moment. Nothing when nobody can say: the command's own result matters
/// more.
pub(crate) async fn denied_since(control: &Control, id: &SandboxId, since_ms: i64) -> Option<Hint> {
    let read = |after, max| {
        let request = ReadNetworkLog {
            after,
            max,
            wait: Duration::ZERO,
        };
        control.node.network_log(id, request)
    };
    let latest = read(u64::MAX, 1).await.ok()?.latest;
    let log = read(latest.saturating_sub(RECORDS_MAX as u64), RECORDS_MAX);
    let records = log.await.ok()?.records;
    let since = u64::try_from(since_ms).unwrap_or_default();
    hint(id, records.iter().filter(|record| record.at_ms >= since))
}

fn hint<'a>(id: &SandboxId, records: impl Iterator<Item = &'a EgressRecord>) -> Option<Hint> {
    let denied = records.filter(|record| record.decision == Decision::Denied);
    let names: BTreeSet<(String, DenyReason)> = denied.filter_map(name).collect();
    let (first, _) = names.first()?;
    let told = names.iter().take(NAMES_MAX);
    let told: Vec<String> = told
        .map(|(name, reason)| format!("{name} ({})", reason.as_str()))
        .collect();
    let more = match names.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Some(Hint::NetworkDenied {
        sandbox_id: id.to_string(),
        denied: format!("{}{more}", told.join(", ")),
        first: first.clone(),
    })
}

/// What was denied, as a rule would name it. Kinds of questions that nobody answers are no denial
/// to the one who asked.
fn name(record: &EgressRecord) -> Option<(String, DenyReason)> {
    let reason = record.reason?;
    if reason == DenyReason::QuestionType {
        return None;
    }
    let name = record.name.as_ref().map(ToString::to_string);
    let address = || record.destination.map(|address| address.to_string());
    Some((name.or_else(address)?, reason))
}

#[cfg(test)]
mod tests {
    use dayfly_types::egress::{EgressRecordKind, HostName, NameSource};

    use super::*;

    fn denied(name: &str, reason: DenyReason) -> EgressRecord {
        EgressRecord {
            sequence: 1,
            at_ms: 1,
            kind: EgressRecordKind::Dns,
            decision: Decision::Denied,
            name: HostName::parse(name).ok(),
            name_source: NameSource::None,
            destination: Some("93.184.216.34:22".parse().unwrap()),
            dialed: None,
            answers: Vec::new(),
            rule: None,
            internal_network: None,
            reason: Some(reason),
            would_deny: false,
            bytes_up: 0,
            bytes_down: 0,
            duration_ms: 0,
            suppressed: 0,
        }
    }

    #[test]
    fn each_name_is_told_once_and_not_too_many() {
        let id = SandboxId::parse("sb-x").unwrap();
        assert_eq!(hint(&id, [].iter()), None);
        let one = [
            denied("pypi.org", DenyReason::NoRule),
            denied("pypi.org", DenyReason::NoRule),
            denied("", DenyReason::NoName),
            denied("a.test", DenyReason::QuestionType),
        ];
        let text = hint(&id, one.iter()).unwrap().text();
        assert!(text.contains("denied 93.184.216.34:22 (no_name), pypi.org (no_rule); "));
        let many: Vec<_> = (0..9)
            .map(|number| denied(&format!("n{number}.test"), DenyReason::ModeDeny))
            .collect();
        let text = hint(&id, many.iter()).unwrap().text();
        assert!(text.contains("and 5 more"), "{text}");
    }
}
