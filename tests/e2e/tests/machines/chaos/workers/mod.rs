//! What callers do meanwhile. Each worker has things of its own, so that it knows what they hold.

mod churn;
mod keys;
mod sleeper;
mod snapshots;
mod volume;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dayfly_api::{CreateSandbox, ExecRequest};
use dayfly_client::{Client, ClientError};
use dayfly_e2e::{patient, shell};
use tokio::task::JoinSet;

use crate::chaos::generator::Generator;
use crate::chaos::ledger::Ledger;

pub(crate) use keys::check as check_key;
pub(crate) use sleeper::{READ, is_whole};
pub(crate) use snapshots::restores;
pub(crate) use volume::{VOLUME, holds_everything};

/// How long any one call may take here, with the daemon coming and going.
const CALL_LIMIT: Duration = Duration::from_secs(60);
/// How long what was acknowledged may take to be there, with faults going on.
pub(crate) const THERE_WITHIN: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(200);
const LABEL: &str = "chaos";
/// Nothing may end by itself during a run.
const TTL_SECONDS: u64 = 24 * 3600;

/// What every worker has.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) ledger: Arc<Ledger>,
    stop: Arc<AtomicBool>,
    marks: Arc<AtomicU64>,
}

/// A sandbox that a worker has.
#[derive(Debug, Clone)]
struct Owned {
    id: String,
    /// Since when its engine must not have been hurt for it to be there.
    since: Instant,
}

/// Starts all of them.
pub(crate) fn start(world: &World, seed: u64) -> JoinSet<()> {
    let mut workers = JoinSet::new();
    for part in 10..12 {
        workers.spawn(sleeper::run(world.clone(), Generator::new(seed, part)));
    }
    workers.spawn(snapshots::run(world.clone(), Generator::new(seed, 20)));
    workers.spawn(churn::run(world.clone(), Generator::new(seed, 30)));
    workers.spawn(volume::run(world.clone()));
    workers.spawn(keys::run(world.clone(), Generator::new(seed, 40)));
    workers
}

impl World {
    pub(crate) fn new(client: Client, url: String) -> Self {
        Self {
            client,
            url,
            ledger: Arc::default(),
            stop: Arc::default(),
            marks: Arc::default(),
        }
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed) && self.ledger.book().broken.is_empty()
    }

    /// A number that nobody has written yet.
    fn mark(&self) -> u64 {
        self.marks.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Waits a while, or until the end.
    async fn nap(&self, time: Duration) {
        let end = Instant::now() + time;
        while self.goes_on() && Instant::now() < end {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// One call with its limit, counted. A call without an answer may have happened or not.
    async fn call<T>(
        &self,
        what: &'static str,
        call: impl Future<Output = Result<T, ClientError>>,
    ) -> Option<T> {
        let limit = patient(CALL_LIMIT);
        match tokio::time::timeout(limit, call).await {
            Ok(outcome) => self.ledger.count(what, outcome),
            Err(_) => {
                *self.ledger.book().not_acknowledged.entry(what).or_default() += 1;
                None
            }
        }
    }

    async fn create(&self, what: &'static str, request: CreateSandbox) -> Option<Owned> {
        let label = self.mark().to_string();
        let request = CreateSandbox {
            ttl_seconds: Some(TTL_SECONDS),
            metadata: Some(self.label(&label)),
            ..request
        };
        let since = Instant::now();
        let made = self.call(what, self.client.create_sandbox(&request)).await;
        if made.is_none() {
            self.ledger.book().lost.insert(label);
            self.nap(PAUSE * 5).await;
        }
        let id = made?.id;
        Some(Owned { id, since })
    }

    /// What a sandbox is found by whose creation was not acknowledged.
    fn label(&self, label: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(LABEL.to_owned(), label.to_owned())])
    }

    /// Deletes what was made and not acknowledged: nobody else will.
    pub(crate) async fn delete_lost(&self) {
        let Ok(all) = self.client.list_sandboxes().await else {
            return;
        };
        for sandbox in all {
            let label = sandbox.metadata.get(LABEL);
            let is_lost = label.is_some_and(|label| self.ledger.book().lost.contains(label));
            if is_lost && sandbox.status != "deleting" {
                self.delete(&sandbox.id).await;
            }
        }
    }

    /// What a shell text printed, when it ended well.
    async fn run(&self, what: &'static str, id: &str, text: &str) -> Option<String> {
        let request = ExecRequest {
            timeout_seconds: Some(30.0),
            ..shell(text)
        };
        let result = self.call(what, self.client.exec(id, &request)).await?;
        (result.exit_code == 0).then_some(result.stdout)
    }

    async fn delete(&self, id: &str) {
        if self
            .call("delete", self.client.delete_sandbox(id))
            .await
            .is_some()
        {
            self.ledger.book().deleted.insert(id.to_owned());
        }
    }

    /// Asks until the text prints something, the sandbox is lost for a reason that is known, or
    /// the time is over, which is a broken promise.
    async fn insist(&self, promise: &'static str, owned: &Owned, text: &str) -> Option<String> {
        let end = Instant::now() + patient(THERE_WITHIN);
        loop {
            if let Some(printed) = self.run("exec", &owned.id, text).await {
                return Some(printed);
            }
            let is_excused = self.ledger.is_excused(&owned.id, owned.since);
            let status = self.client.get_sandbox(&owned.id).await;
            let is_failed = status.as_ref().is_ok_and(|found| found.status == "failed");
            if is_excused && (is_failed || Instant::now() > end) {
                return None;
            }
            if is_failed || Instant::now() > end {
                let id = &owned.id;
                self.ledger
                    .check(promise, false, || format!("{id}: {status:?}"));
                return None;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Whether a list of marks has one.
fn has_mark(printed: &str, mark: u64) -> bool {
    printed.lines().any(|line| line.trim() == mark.to_string())
}
