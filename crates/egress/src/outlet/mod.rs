//! The way out of one lifecycle: its policy, what of it is under way, and its tasks.
//!
//! A policy and the connections that it let through are under one lock. So a connection is either
//! decided by the new policy, or it is in the list when the new policy is held against the list;
//! there is nothing in between.

mod cut;
mod names;
mod passage;
mod verdict;

pub(crate) use cut::Cut;
pub(crate) use names::NoAddress;
pub(crate) use passage::{Facts, Passage};
pub(crate) use verdict::{Allowed, Target};

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dayfly_core::egress::{EgressApproach, may_reach};
use dayfly_types::egress::{DenyReason, EgressPolicy, EgressRecord, InternalNetwork};
use dayfly_types::limits::{
    EGRESS_CONNECTIONS_MAX, EGRESS_DIALS_PER_SECOND, EGRESS_QUESTIONS_PER_SECOND,
};
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::options::Options;
use crate::pace::Pace;
use crate::protocol::SandboxRun;
use crate::rate::{DistinctNames, SAMPLE_WINDOW, TokenBucket};
use crate::records::{Outbox, Recorder};
use crate::resolve::NameResolver;

/// A connection that was told to end has ended by then.
const CUT_LIMIT: Duration = Duration::from_secs(1);

/// One open lifecycle.
#[derive(Debug)]
pub(crate) struct Outlet {
    lifecycle: SandboxRun,
    inside: Mutex<Inside>,
    /// What the operator has opened to its project.
    internal: Arc<[InternalNetwork]>,
    /// Whom connections to public addresses go through.
    proxy: Option<SocketAddrV4>,
    recorder: Recorder,
    resolver: NameResolver,
    questions: Mutex<TokenBucket>,
    lookups: Mutex<TokenBucket>,
    dials: Mutex<TokenBucket>,
    wildcard_names: Mutex<DistinctNames>,
    connections: Arc<Semaphore>,
    /// What comes from the guest, and what goes to it.
    upward: Arc<Pace>,
    downward: Arc<Pace>,
    stop: CancellationToken,
    /// Sockets that close from now on close by a reset.
    is_closing: Arc<AtomicBool>,
    tasks: TaskTracker,
    /// A passage has ended.
    ended: Notify,
}

#[derive(Debug)]
struct Inside {
    epoch: u64,
    policy: Arc<EgressPolicy>,
    passages: HashMap<u64, Open>,
    next: u64,
}

/// What a new policy is held against.
#[derive(Debug)]
struct Open {
    target: Target,
    /// The addresses in internal networks that it is dialled at. A rule has to lead to each.
    inside: Vec<SocketAddrV4>,
    cut: Cut,
    is_cut: bool,
}

impl Open {
    /// Whether a policy lets it go on.
    fn check(&self, policy: &EgressPolicy, internal: &[InternalNetwork]) -> Result<(), DenyReason> {
        verdict::decide(policy, internal, &self.target)?;
        let may_reach = |address: &SocketAddrV4| {
            let approach = EgressApproach {
                policy,
                name: self.target.name(),
                port: Some(address.port()),
            };
            may_reach(approach, *address.ip(), internal)
        };
        let is_inside = self.inside.iter().all(may_reach);
        is_inside.then_some(()).ok_or(DenyReason::NeverAddress)
    }
}

impl Outlet {
    pub(crate) fn new(
        lifecycle: SandboxRun,
        epoch: u64,
        policy: EgressPolicy,
        outbox: Arc<Outbox>,
        options: &Options,
    ) -> Arc<Self> {
        let now = Instant::now();
        let bucket = |per_second| Mutex::new(TokenBucket::new(per_second, now));
        let pace = || Arc::new(Pace::new(options.bytes_per_second, now));
        let internal = Arc::from(options.internal_networks.of(&lifecycle.project));
        Arc::new(Self {
            recorder: Recorder::new(lifecycle.clone(), outbox),
            lifecycle,
            inside: Mutex::new(Inside {
                epoch,
                policy: Arc::new(policy),
                passages: HashMap::new(),
                next: 0,
            }),
            resolver: NameResolver::new(
                Arc::from(options.resolvers.as_slice()),
                Arc::clone(&internal),
            ),
            internal,
            proxy: options.proxy,
            questions: bucket(EGRESS_QUESTIONS_PER_SECOND),
            lookups: bucket(EGRESS_QUESTIONS_PER_SECOND),
            dials: bucket(EGRESS_DIALS_PER_SECOND),
            wildcard_names: Mutex::new(DistinctNames::new(now)),
            connections: Arc::new(Semaphore::new(EGRESS_CONNECTIONS_MAX)),
            upward: pace(),
            downward: pace(),
            stop: CancellationToken::new(),
            is_closing: Arc::default(),
            tasks: TaskTracker::new(),
            ended: Notify::new(),
        })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) const fn lifecycle(&self) -> &SandboxRun {
        &self.lifecycle
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.inside().epoch
    }

    pub(crate) fn policy(&self) -> Arc<EgressPolicy> {
        Arc::clone(&self.inside().policy)
    }

    /// What the operator has opened to its project.
    pub(crate) fn internal(&self) -> &[InternalNetwork] {
        &self.internal
    }

    /// Whom connections to public addresses go through.
    pub(crate) const fn proxy(&self) -> Option<SocketAddrV4> {
        self.proxy
    }

    pub(crate) fn record(&self, record: EgressRecord) {
        self.recorder.record(record);
    }

    pub(crate) fn connections(&self) -> &Arc<Semaphore> {
        &self.connections
    }

    pub(crate) const fn upward(&self) -> &Arc<Pace> {
        &self.upward
    }

    pub(crate) const fn downward(&self) -> &Arc<Pace> {
        &self.downward
    }

    /// What ends a connection of this lifecycle, which ends with it at the latest.
    pub(crate) fn new_cut(&self) -> Cut {
        Cut::within(&self.stop)
    }

    pub(crate) fn closing_mark(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_closing)
    }

    /// Runs a task that ends with the lifecycle at the latest.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let stop = self.stop.clone();
        let task = self.tasks.spawn(async move {
            stop.run_until_cancelled(task).await;
        });
        task.abort_handle()
    }

    /// Tells of records that were held back, for as long as the lifecycle is open.
    pub(crate) async fn release_records(self: Arc<Self>) {
        self.recorder.release_held().await;
    }

    /// Whether one more question may be asked now.
    pub(crate) fn take_question(&self) -> bool {
        take(&self.questions)
    }

    /// Whether a resolver may be asked once more now, for whatever reason.
    fn take_lookup(&self) -> bool {
        take(&self.lookups)
    }

    /// Whether one more connection may be made now.
    pub(crate) fn take_dial(&self) -> bool {
        take(&self.dials)
    }

    /// Decides about a connection, and lists it when it is let through.
    ///
    /// # Errors
    /// Why it is not.
    pub(crate) fn admit(
        self: &Arc<Self>,
        target: Target,
        facts: Facts,
        cut: &Cut,
    ) -> Result<Passage, DenyReason> {
        let mut inside = self.inside();
        let verdict = verdict::decide(&inside.policy, &self.internal, &target)?;
        let id = inside.next;
        inside.next += 1;
        let open = Open {
            target,
            inside: Vec::new(),
            cut: cut.clone(),
            is_cut: false,
        };
        inside.passages.insert(id, open);
        drop(inside);
        Ok(Passage::new(Arc::clone(self), id, facts, verdict))
    }

    /// Decides again about a connection that is listed.
    ///
    /// # Errors
    /// Why it is not let through any more.
    pub(crate) fn check(&self, target: &Target) -> Result<verdict::Allowed, DenyReason> {
        verdict::decide(&self.inside().policy, &self.internal, target)
    }

    /// Says of a listed connection that it is about to be dialled at these addresses of internal
    /// networks. From now on only rules that lead there keep it.
    ///
    /// # Errors
    /// Why it may not, by the policy of this moment.
    fn lead_inside(&self, id: u64, addresses: Vec<SocketAddrV4>) -> Result<(), DenyReason> {
        let mut inside = self.inside();
        let Inside {
            policy, passages, ..
        } = &mut *inside;
        // One that was struck off is over.
        let open = passages.get_mut(&id).ok_or(DenyReason::NeverAddress)?;
        open.inside = addresses;
        open.check(policy, &self.internal)
    }

    /// Strikes a passage off the list; true when a change of the policy ended it.
    fn strike(&self, id: u64) -> bool {
        let open = self.inside().passages.remove(&id);
        self.ended.notify_waiters();
        open.is_some_and(|open| open.is_cut)
    }

    /// Puts a policy in force and ends what it does not allow. Returns how many connections.
    pub(crate) async fn set_policy(&self, epoch: u64, policy: EgressPolicy) -> u32 {
        let cut = self.replace_policy(epoch, policy);
        let all_ended = async {
            loop {
                let ended = self.ended.notified();
                tokio::pin!(ended);
                ended.as_mut().enable();
                let is_open = |id: &u64| self.inside().passages.contains_key(id);
                if !cut.iter().any(is_open) {
                    return;
                }
                ended.await;
            }
        };
        if timeout(CUT_LIMIT, all_ended).await.is_err() {
            tracing::error!(sandbox_id = %self.lifecycle.sandbox, "a cut connection did not end");
        }
        u32::try_from(cut.len()).unwrap_or(u32::MAX)
    }

    fn replace_policy(&self, epoch: u64, policy: EgressPolicy) -> Vec<u64> {
        let mut inside = self.inside();
        inside.epoch = epoch;
        inside.policy = Arc::new(policy);
        let Inside {
            policy, passages, ..
        } = &mut *inside;
        let mut cut = Vec::new();
        for (id, open) in passages {
            if open.check(policy, &self.internal).is_err() {
                open.is_cut = true;
                open.cut.now();
                cut.push(*id);
            }
        }
        cut
    }

    /// Ends everything, by a reset. Returns how many connections there were.
    pub(crate) async fn close(&self) -> u32 {
        let count = self.inside().passages.len();
        self.is_closing.store(true, Ordering::Release);
        self.stop.cancel();
        self.tasks.close();
        if timeout(CUT_LIMIT, self.tasks.wait()).await.is_err() {
            tracing::error!(sandbox_id = %self.lifecycle.sandbox, "a task did not end");
        }
        self.recorder.release(Instant::now() + SAMPLE_WINDOW);
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

fn take(bucket: &Mutex<TokenBucket>) -> bool {
    let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
    bucket.take(Instant::now())
}
