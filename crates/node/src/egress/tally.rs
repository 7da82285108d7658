//! What the egress process decided, and how often it had to be started again: counted, for whoever
//! watches the host.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dayfly_egress::client::EgressEvent;
use dayfly_node_api::{EgressCount, EgressStatus};
use dayfly_types::egress::{Decision, DenyReason, EgressRecord, EgressRecordKind};

/// Counts since this process began.
#[derive(Debug, Default)]
pub(super) struct EgressTally(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// The process was there once. Whoever starts the first one starts nothing again.
    was_connected: bool,
    restarts: u64,
    decisions: HashMap<(EgressRecordKind, Decision, Option<DenyReason>), u64>,
}

impl EgressTally {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        // Every change leaves them whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process answers.
    pub(super) fn connected(&self) {
        self.counts().was_connected = true;
    }

    /// A process was started, because none was there.
    pub(super) fn started(&self) {
        let mut counts = self.counts();
        counts.restarts += u64::from(counts.was_connected);
    }

    /// Looks at what the process tells.
    pub(super) fn count(&self, event: &EgressEvent) {
        let EgressEvent::Records(records) = event else {
            return;
        };
        let mut counts = self.counts();
        for told in records {
            counts.add(&told.record);
        }
    }

    pub(super) fn status(&self) -> EgressStatus {
        let counts = self.counts();
        let decisions = counts.decisions.iter();
        EgressStatus {
            restarts: counts.restarts,
            decisions: decisions
                .map(|(&(kind, decision, reason), &count)| EgressCount {
                    kind,
                    decision,
                    reason,
                    count,
                })
                .collect(),
        }
    }
}

impl Counts {
    fn add(&mut self, record: &EgressRecord) {
        // The end of a connection is no decision; that it may be was counted when it began.
        if record.decision == Decision::Closed {
            return;
        }
        let key = (record.kind, record.decision, record.reason);
        let count = self.decisions.entry(key).or_default();
        // With those like it that were not recorded one by one.
        *count = count.saturating_add(record.suppressed.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use dayfly_types::egress::NameSource;

    use super::*;

    fn record(decision: Decision, reason: Option<DenyReason>, suppressed: u64) -> EgressRecord {
        EgressRecord {
            sequence: 1,
            at_ms: 1,
            kind: EgressRecordKind::Tls,
            decision,
            name: None,
            name_source: NameSource::None,
            destination: None,
            dialed: None,
            answers: Vec::new(),
            rule: None,
            internal_network: None,
            reason,
            would_deny: false,
            bytes_up: 0,
            bytes_down: 0,
            duration_ms: 0,
            suppressed,
        }
    }

    #[test]
    fn decisions_are_counted_with_those_that_were_not_recorded() {
        let tally = EgressTally::default();
        for (decision, reason, suppressed) in [
            (Decision::Allowed, None, 0),
            (Decision::Closed, None, 0),
            (Decision::Denied, Some(DenyReason::NoRule), 0),
            (Decision::Denied, Some(DenyReason::NoRule), 4),
        ] {
            tally.counts().add(&record(decision, reason, suppressed));
        }
        let mut decisions = tally.status().decisions;
        decisions.sort_by_key(|one| one.count);
        let told = decisions.iter();
        let told: Vec<_> = told
            .map(|one| (one.decision, one.reason, one.count))
            .collect();
        assert_eq!(
            told,
            [
                (Decision::Allowed, None, 1),
                (Decision::Denied, Some(DenyReason::NoRule), 6)
            ]
        );
    }

    #[test]
    fn only_a_process_that_was_there_before_is_started_again() {
        let tally = EgressTally::default();
        tally.started();
        tally.connected();
        assert_eq!(tally.status().restarts, 0);
        tally.started();
        assert_eq!(tally.status().restarts, 1);
    }
}
