//! What was acknowledged, what was done to the daemon, and what was found broken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dayfly_client::ClientError;

type Counts = BTreeMap<&'static str, u64>;

/// Everything that the checker goes by.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Book>);

#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) acknowledged: Counts,
    pub(crate) not_acknowledged: Counts,
    pub(crate) faults: Counts,
    pub(crate) checks: Counts,
    /// Engines that were killed or stopped, and whose they were. `None`: nobody's yet, or of a
    /// sandbox whose record did not say so.
    hurt: Vec<(Instant, Option<String>)>,
    /// Labels of creations and forks that were not acknowledged.
    pub(crate) lost: BTreeSet<String>,
    /// Sandboxes whose deletion was acknowledged.
    pub(crate) deleted: BTreeSet<String>,
    /// Sandboxes whose hibernation was acknowledged and that nobody has asked for since, with the
    /// last mark that was acknowledged before.
    pub(crate) asleep: BTreeMap<String, u64>,
    /// Snapshots with the last mark that was acknowledged before.
    pub(crate) snapshots: BTreeMap<String, u64>,
    pub(crate) deleted_snapshots: BTreeSet<String>,
    /// Keys whose creation was acknowledged, by prefix.
    pub(crate) keys: BTreeMap<String, String>,
    pub(crate) revoked_keys: BTreeMap<String, String>,
    /// Marks on the volume whose sync was acknowledged.
    pub(crate) synced: BTreeSet<u64>,
    pub(crate) broken: Vec<String>,
}

impl Ledger {
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one operation and gives what it answered, if it did.
    pub(crate) fn count<T>(
        &self,
        what: &'static str,
        outcome: Result<T, ClientError>,
    ) -> Option<T> {
        let mut book = self.book();
        let counts = match outcome {
            Ok(_) => &mut book.acknowledged,
            Err(_) => &mut book.not_acknowledged,
        };
        *counts.entry(what).or_default() += 1;
        outcome.ok()
    }

    pub(crate) fn fault(&self, what: &'static str) {
        *self.book().faults.entry(what).or_default() += 1;
    }

    /// Notes, before it is done, that an engine is killed or stopped.
    pub(crate) fn hurt(&self, sandbox: Option<String>) {
        self.book().hurt.push((Instant::now(), sandbox));
    }

    /// Whether a sandbox may have lost its machine since then: its engine was hurt, or one that
    /// nobody had a name for.
    pub(crate) fn is_excused(&self, sandbox: &str, since: Instant) -> bool {
        let book = self.book();
        let mut hurt = book.hurt.iter();
        hurt.any(|(when, whose)| {
            *when >= since && whose.as_deref().is_none_or(|whose| whose == sandbox)
        })
    }

    /// One promise was looked at.
    pub(crate) fn check(&self, what: &'static str, holds: bool, details: impl FnOnce() -> String) {
        let mut book = self.book();
        *book.checks.entry(what).or_default() += 1;
        if !holds {
            let text = format!("{what}: {}", details());
            dayfly_e2e::figure!("BROKEN {text}");
            book.broken.push(text);
        }
    }
}
