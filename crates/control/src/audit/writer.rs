//! The one who writes the record.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dayfly_types::limits::AUDIT_BYTES_MAX;
use tokio::sync::{mpsc, oneshot};

use super::repeats::Repeats;
use super::{Message, State};
use crate::conditions::{Condition, Conditions};
use crate::store::{AuditEvent, Store, StoreError, Unavailable};
use crate::time::now_ms;

/// Entries that one transaction adds.
const BATCH_MAX: usize = 256;
/// After a failed write.
const RETRY: Duration = Duration::from_millis(500);
/// Entries that the database refuses for what they are, not for how it is, are given up after this
/// many attempts; else they would hold up all others for ever.
const ATTEMPTS_MAX: usize = 20;

/// How the record is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditSettings {
    /// What the entries of one project may take. The oldest make room for new ones.
    pub bytes_max: u64,
    /// A refusal of the same key for the same call within this long is counted, not written.
    pub repeats_within: Duration,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            bytes_max: AUDIT_BYTES_MAX,
            repeats_within: Duration::from_secs(30),
        }
    }
}

/// Writes what comes out of the queue.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    store: &'a Store,
    conditions: &'a Conditions,
    settings: AuditSettings,
    state: Arc<State>,
    repeats: Repeats,
}

/// One turn's messages.
#[derive(Debug, Default)]
struct Batch {
    entries: Vec<AuditEvent>,
    waiting: Vec<oneshot::Sender<()>>,
    is_last: bool,
}

impl Batch {
    fn of(messages: impl Iterator<Item = Message>) -> Self {
        let mut batch = Self::default();
        for message in messages {
            match message {
                Message::Entry(entry) => batch.entries.push(*entry),
                Message::Flush(done) => batch.waiting.push(done),
                Message::End(done) => {
                    batch.waiting.push(done);
                    batch.is_last = true;
                }
            }
        }
        batch
    }

    /// Lets those go who wait for it.
    fn release(&mut self) {
        for done in self.waiting.drain(..) {
            let _ = done.send(());
        }
    }
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        store: &'a Store,
        conditions: &'a Conditions,
        settings: AuditSettings,
        state: Arc<State>,
    ) -> Self {
        Self {
            store,
            conditions,
            settings,
            state,
            repeats: Repeats::new(settings.repeats_within),
        }
    }

    pub(super) async fn run(mut self, mut receiver: mpsc::Receiver<Message>) {
        let mut messages = Vec::new();
        loop {
            let due = self.next_turn();
            tokio::select! {
                count = receiver.recv_many(&mut messages, BATCH_MAX) => {
                    if count == 0 {
                        return;
                    }
                }
                () = tokio::time::sleep_until(due.into()) => {}
            }
            let mut batch = Batch::of(messages.drain(..));
            self.count_repeats(&mut batch);
            self.write(&mut batch).await;
            self.write_losses().await;
            batch.release();
        }
    }

    /// When there is something to write though nobody adds anything.
    fn next_turn(&self) -> Instant {
        // Far enough for nobody to notice.
        let far = Duration::from_secs(3600);
        let mut next = Instant::now() + far;
        if !self.state.losses().is_empty() {
            next = Instant::now() + RETRY;
        }
        self.repeats.next().map_or(next, |due| due.min(next))
    }

    fn count_repeats(&mut self, batch: &mut Batch) {
        let now = Instant::now();
        let entries = std::mem::take(&mut batch.entries);
        // What is over first: it came before.
        batch.entries = self.repeats.counted((!batch.is_last).then_some(now));
        let passed = entries.into_iter();
        let passed = passed.filter_map(|entry| self.repeats.pass(entry, now));
        batch.entries.extend(passed);
    }

    /// Writes a batch, however long that takes.
    async fn write(&self, batch: &mut Batch) {
        for attempt in 1_usize.. {
            let Err(error) = self.append(&batch.entries).await else {
                return;
            };
            // Ever less often: the log may be on the same disk.
            if attempt.is_power_of_two() {
                tracing::error!(
                    attempt,
                    count = batch.entries.len(),
                    error = &error as &dyn std::error::Error,
                    "audit not written"
                );
            }
            // Who reads is told what there is.
            batch.release();
            if attempt >= ATTEMPTS_MAX && Unavailable::find(&error).is_none() {
                let mut losses = self.state.losses();
                batch.entries.iter().for_each(|entry| losses.note(entry));
                return;
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Says what was lost. What cannot be said yet is kept for the next time.
    async fn write_losses(&self) {
        let losses = self.state.losses().take();
        if losses.is_empty() {
            return;
        }
        if self.append(&losses.marks(now_ms())).await.is_err() {
            self.state.losses().put_back(losses);
        }
    }

    async fn append(&self, entries: &[AuditEvent]) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let written = self.store.append_audit(entries, self.settings.bytes_max);
        let written = written.await;
        let has_failed = written.is_err();
        self.state
            .is_unwritable
            .store(has_failed, Ordering::Relaxed);
        if let Err(error) = &written {
            let why = Unavailable::find(error).map_or("the log says why", Unavailable::why);
            let detail = format!("the audit record cannot be written: {why}");
            self.conditions.set(Condition::AuditUnwritable, detail);
        } else {
            self.conditions.clear(Condition::AuditUnwritable);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use dayfly_types::ProjectId;
    use dayfly_types::limits::AUDIT_QUEUE_LENGTH_MAX;
    use sqlx::ConnectOptions;
    use sqlx::sqlite::SqliteConnectOptions;

    use super::super::Audit;
    use super::super::losses::LOST;
    use super::*;
    use crate::store::AuditPage;

    async fn run(database: &std::path::Path, statement: &'static str) {
        let options = SqliteConnectOptions::new().filename(database);
        let mut program = options.connect().await.unwrap();
        let done = sqlx::raw_sql(statement).execute(&mut program).await;
        done.unwrap();
    }

    async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
        for _ in 0..500 {
            if holds().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("never: {what}");
    }

    #[tokio::test]
    async fn what_the_record_could_not_take_is_told_in_it() {
        let place = tempfile::tempdir().unwrap();
        let database = place.path().join("database");
        let store = Store::open(&database).await.unwrap();
        let [one, two] = ["one", "two"].map(|name| ProjectId::parse(name).unwrap());
        for project in [&one, &two] {
            store.ensure_project(project, 1).await.unwrap();
        }
        let forbid = "CREATE TRIGGER no_audit BEFORE INSERT ON audit_records \
            BEGIN SELECT RAISE(ABORT, 'not now'); END";
        run(&database, forbid).await;
        let (audit, conditions) = (Audit::default(), Conditions::default());
        let entry = |project: &ProjectId, at_ms| {
            AuditEvent::of_server(project, "POST /x", at_ms, "{}".to_owned())
        };
        let work = async {
            audit.record(entry(&one, 1)).await;
            eventually("it is noticed", async || audit.ensure_writable().is_err()).await;
            assert_eq!(conditions.current()[0].0, Condition::AuditUnwritable);
            for _ in 0..AUDIT_QUEUE_LENGTH_MAX {
                audit.record(entry(&one, 2)).await;
            }
            for at_ms in 3..8 {
                audit.record(entry(&one, at_ms * 1000)).await;
                audit.handle().record_now(entry(&two, at_ms * 1000));
            }
            run(&database, "DROP TRIGGER no_audit").await;
            eventually("it can be written", async || {
                audit.ensure_writable().is_ok() && audit.handle.state.losses().is_empty()
            })
            .await;
            audit.flush().await;
        };
        tokio::select! {
            () = audit.write(&store, &conditions, AuditSettings::default()) => {}
            () = work => {}
        }
        assert!(conditions.current().is_empty());
        let most = i64::try_from(2 * AUDIT_QUEUE_LENGTH_MAX).unwrap();
        for (project, kept) in [(&one, AUDIT_QUEUE_LENGTH_MAX + 1), (&two, 0)] {
            let rows = store.audit(project, AuditPage::newest(most)).await.unwrap();
            let (marks, rest): (Vec<_>, Vec<_>) =
                rows.into_iter().partition(|row| row.operation == LOST);
            assert_eq!(rest.len(), kept);
            assert_eq!(marks.len(), 1);
            let detail: serde_json::Value = serde_json::from_str(&marks[0].detail).unwrap();
            assert_eq!(detail["lost"], 5);
            assert_eq!(detail["from"], "1970-01-01T00:00:03Z");
            assert_eq!(detail["to"], "1970-01-01T00:00:07Z");
        }
    }
}
