//! Records on their way to the node, on either side of the connection: at most so many of one kind and reason in a second, and at most so many
//! that wait.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use dayfly_types::egress::{Decision, DenyReason, EgressRecord, EgressRecordKind};
use dayfly_types::limits::EGRESS_RECORDS_PER_SECOND;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::protocol::{
    EgressMessage, PACKET_RECORDS_MAX, RunRecord, SandboxRun, WAITING_RECORDS_MAX,
};
use crate::rate::{SAMPLE_WINDOW, Sampled, Sampler};

/// What waits to be sent or to be taken, of all lifecycles.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    grew: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    records: BTreeMap<SandboxRun, VecDeque<EgressRecord>>,
    count: usize,
    lost: BTreeMap<SandboxRun, u64>,
    /// Whose turn it was, so that a busy lifecycle does not hold up the others.
    last: Option<SandboxRun>,
}

impl Waiting {
    fn push(&mut self, lifecycle: &SandboxRun, record: EgressRecord) {
        if self.count >= WAITING_RECORDS_MAX {
            self.drop_one();
        }
        self.records
            .entry(lifecycle.clone())
            .or_default()
            .push_back(record);
        self.count += 1;
    }

    /// Drops the oldest record of whoever has the most, so that a noisy sandbox loses its own.
    fn drop_one(&mut self) {
        let most = self.records.iter().max_by_key(|(_, records)| records.len());
        let Some(lifecycle) = most.map(|(lifecycle, _)| lifecycle.clone()) else {
            return;
        };
        self.take(&lifecycle, 1);
        self.count_lost(lifecycle, 1);
    }

    fn count_lost(&mut self, lifecycle: SandboxRun, count: u64) {
        *self.lost.entry(lifecycle).or_default() += count;
    }

    fn take(&mut self, lifecycle: &SandboxRun, max: usize) -> Vec<EgressRecord> {
        let Some(records) = self.records.get_mut(lifecycle) else {
            return Vec::new();
        };
        let taken: Vec<_> = records.drain(..records.len().min(max)).collect();
        if records.is_empty() {
            self.records.remove(lifecycle);
        }
        self.count -= taken.len();
        taken
    }

    fn next(&mut self) -> Option<EgressMessage> {
        if let Some((lifecycle, count)) = self.lost.pop_first() {
            return Some(EgressMessage::Lost { lifecycle, count });
        }
        let after = self.last.take();
        let behind = after.as_ref().and_then(|last| {
            let range = (Bound::Excluded(last), Bound::Unbounded);
            self.records.range(range).next().map(|(next, _)| next)
        });
        let lifecycle = behind.or_else(|| self.records.keys().next()).cloned()?;
        let records = self.take(&lifecycle, PACKET_RECORDS_MAX);
        self.last = Some(lifecycle.clone());
        let records = records.into_iter().map(|record| RunRecord {
            lifecycle: lifecycle.clone(),
            record,
        });
        Some(EgressMessage::Records(records.collect()))
    }

    /// Takes back what could not be sent.
    fn put_back(&mut self, message: EgressMessage) {
        match message {
            EgressMessage::Answer { .. } => {}
            EgressMessage::Lost { lifecycle, count } => self.count_lost(lifecycle, count),
            EgressMessage::Records(records) => {
                for record in records.into_iter().rev() {
                    if self.count >= WAITING_RECORDS_MAX {
                        self.count_lost(record.lifecycle, 1);
                        continue;
                    }
                    self.count += 1;
                    self.records
                        .entry(record.lifecycle)
                        .or_default()
                        .push_front(record.record);
                }
            }
        }
    }
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, lifecycle: &SandboxRun, record: EgressRecord) {
        self.lock().push(lifecycle, record);
        self.grew.notify_one();
    }

    pub(crate) fn count_lost(&self, lifecycle: SandboxRun, count: u64) {
        self.lock().count_lost(lifecycle, count);
        self.grew.notify_one();
    }

    /// What to send next. Waits until there is something.
    ///
    /// # Cancel safety
    /// What was taken and not marked as sent goes back.
    pub(crate) async fn next(&self) -> Outgoing<'_> {
        loop {
            let grown = self.grew.notified();
            if let Some(message) = self.lock().next() {
                return Outgoing {
                    outbox: self,
                    message: Some(message),
                };
            }
            grown.await;
        }
    }
}

/// A message that goes back into the box unless it was sent.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    outbox: &'a Outbox,
    message: Option<EgressMessage>,
}

impl Outgoing<'_> {
    pub(crate) const fn message(&self) -> Option<&EgressMessage> {
        self.message.as_ref()
    }

    pub(crate) fn sent(self) {
        self.taken();
    }

    /// The message itself; it does not go back.
    pub(crate) fn taken(mut self) -> Option<EgressMessage> {
        self.message.take()
    }
}

impl Drop for Outgoing<'_> {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            self.outbox.lock().put_back(message);
            self.outbox.grew.notify_one();
        }
    }
}

/// What a rate is kept for.
type Kind = (EgressRecordKind, Decision, Option<DenyReason>);

/// Records the decisions about one lifecycle.
#[derive(Debug)]
pub(crate) struct Recorder {
    lifecycle: SandboxRun,
    outbox: Arc<Outbox>,
    samplers: Mutex<HashMap<Kind, Sampler<EgressRecord>>>,
    held: Notify,
}

impl Recorder {
    pub(crate) fn new(lifecycle: SandboxRun, outbox: Arc<Outbox>) -> Self {
        Self {
            lifecycle,
            outbox,
            samplers: Mutex::default(),
            held: Notify::new(),
        }
    }

    pub(crate) fn record(&self, mut record: EgressRecord) {
        record.at_ms = now_ms();
        let key = (record.kind, record.decision, record.reason);
        let admitted = {
            let mut samplers = self.samplers.lock().unwrap_or_else(PoisonError::into_inner);
            let sampler = samplers.entry(key).or_default();
            sampler.admit(record, EGRESS_RECORDS_PER_SECOND, Instant::now())
        };
        match admitted {
            Some(sampled) => self.push(sampled),
            None => self.held.notify_one(),
        }
    }

    fn push(&self, sampled: Sampled<EgressRecord>) {
        let mut record = sampled.value;
        record.suppressed = sampled.suppressed;
        self.outbox.push(&self.lifecycle, record);
    }

    /// Tells of what was held back when nothing follows that could. Runs as long as the lifecycle.
    pub(crate) async fn release_held(&self) {
        loop {
            self.held.notified().await;
            while self.release(Instant::now()) {
                sleep(SAMPLE_WINDOW).await;
            }
        }
    }

    /// True when something is still held back.
    pub(crate) fn release(&self, now: Instant) -> bool {
        let mut samplers = self.samplers.lock().unwrap_or_else(PoisonError::into_inner);
        let released: Vec<_> = samplers
            .values_mut()
            .filter_map(|sampler| sampler.release(now))
            .collect();
        let is_holding = samplers.values().any(Sampler::is_holding);
        drop(samplers);
        for sampled in released {
            self.push(sampled);
        }
        is_holding
    }
}

fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| u64::try_from(since.as_millis()).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use dayfly_types::egress::NameSource;
    use dayfly_types::{ProjectId, SandboxId};

    use super::*;

    fn lifecycle(name: &str) -> SandboxRun {
        SandboxRun {
            sandbox: SandboxId::parse(name).unwrap(),
            project: ProjectId::default_project(),
            slot: 1,
            start: 1,
        }
    }

    fn record(at_ms: u64) -> EgressRecord {
        EgressRecord {
            sequence: 0,
            at_ms,
            kind: EgressRecordKind::Dns,
            decision: Decision::Denied,
            name: None,
            name_source: NameSource::None,
            destination: None,
            dialed: None,
            answers: Vec::new(),
            rule: None,
            internal_network: None,
            reason: Some(DenyReason::NoRule),
            would_deny: false,
            bytes_up: 0,
            bytes_down: 0,
            duration_ms: 0,
            suppressed: 0,
        }
    }

    fn drain(outbox: &Outbox) -> (Vec<RunRecord>, u64) {
        let (mut records, mut lost) = (Vec::new(), 0);
        while let Some(message) = outbox.lock().next() {
            match message {
                EgressMessage::Records(some) => records.extend(some),
                EgressMessage::Lost { count, .. } => lost += count,
                EgressMessage::Answer { .. } => {}
            }
        }
        (records, lost)
    }

    #[test]
    fn a_noisy_lifecycle_loses_its_own_oldest_records() {
        let outbox = Outbox::default();
        let (quiet, noisy) = (lifecycle("quiet"), lifecycle("noisy"));
        outbox.push(&quiet, record(1));
        for at in 0..5000 {
            outbox.push(&noisy, record(at));
        }
        let (records, lost) = drain(&outbox);
        assert_eq!(records.len(), WAITING_RECORDS_MAX);
        assert_eq!(lost, 5001 - WAITING_RECORDS_MAX as u64);
        assert_eq!(records.iter().filter(|r| r.lifecycle == quiet).count(), 1);
        let last = records.iter().rfind(|r| r.lifecycle == noisy).unwrap();
        assert_eq!(last.record.at_ms, 4999);
    }

    #[test]
    fn what_is_left_out_is_told_by_a_record_of_its_own_kind() {
        let outbox = Arc::new(Outbox::default());
        let recorder = Recorder::new(lifecycle("mixed"), Arc::clone(&outbox));
        let kinds = [
            (EgressRecordKind::Dns, EGRESS_RECORDS_PER_SECOND + 7),
            (EgressRecordKind::Tls, EGRESS_RECORDS_PER_SECOND + 3),
        ];
        for (kind, count) in kinds {
            for at in 0..count {
                let record = record(u64::from(at));
                recorder.record(EgressRecord { kind, ..record });
            }
        }
        recorder.release(Instant::now() + 2 * SAMPLE_WINDOW);
        let (records, _) = drain(&outbox);
        for (kind, count) in kinds {
            let of_kind = records.iter().filter(|one| one.record.kind == kind);
            let told: u64 = of_kind.map(|one| 1 + one.record.suppressed).sum();
            assert_eq!(told, u64::from(count), "{kind:?}");
        }
    }

    #[tokio::test]
    async fn what_was_not_sent_goes_back_in_order_and_turns_are_taken() {
        let outbox = Outbox::default();
        let (one, two) = (lifecycle("one"), lifecycle("two"));
        for at in 0..100 {
            outbox.push(&one, record(at));
        }
        outbox.push(&two, record(7));
        drop(outbox.next().await);
        let first = outbox.next().await;
        let owner = match first.message() {
            Some(EgressMessage::Records(records)) => records[0].lifecycle.clone(),
            other => panic!("{other:?}"),
        };
        first.sent();
        let (rest, _) = drain(&outbox);
        assert_ne!(rest[0].lifecycle, owner, "the other one has its turn");
        let of_one = rest.iter().filter(|r| r.lifecycle == one);
        let times: Vec<_> = of_one.map(|r| r.record.at_ms).collect();
        assert!(times.is_sorted());
    }
}
