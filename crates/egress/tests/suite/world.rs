//! A node, its egress process, some slots with guests, and the internet.

use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use dayfly_egress::client::{Connected, EgressCallError, EgressClient, EgressEvent};
use dayfly_egress::protocol::{RunRecord, SandboxRun};
use dayfly_host::netns;
use dayfly_types::egress::{Decision, DenyReason, EgressPolicy, EgressRecord};
use dayfly_types::{ProjectId, SandboxId};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::internet::Internet;
use super::proxy::{Given, Proxy};
use super::slot::Slot;

/// Longer than anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Records in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    events: Mutex<(Vec<RunRecord>, u64)>,
    grew: Condvar,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) internet: Internet,
    pub(crate) slots: Vec<Slot>,
    runs: Vec<SandboxRun>,
    pub(crate) proxy: Proxy,
    node: Runtime,
    client: EgressClient,
    pub(crate) kept: Arc<Kept>,
    epoch: Mutex<u64>,
    _directory: TempDir,
}

pub(crate) fn policy(mode: &str, rules: serde_json::Value) -> EgressPolicy {
    serde_json::from_value(serde_json::json!({"mode": mode, "rules": rules})).unwrap()
}

/// Looks again and again until something holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(25));
    }
}

/// What nine of ten do not exceed.
pub(crate) fn p90_of_ten(mut work: impl FnMut()) -> Duration {
    let mut times = [(); 10].map(|()| {
        let started = Instant::now();
        work();
        started.elapsed()
    });
    times.sort_unstable();
    times[8]
}

/// Lets through one host on the usual ports.
pub(crate) fn allow(host: &str) -> EgressPolicy {
    policy("allowlist", serde_json::json!([{"id": host, "host": host}]))
}

pub(crate) fn public() -> EgressPolicy {
    policy("public", serde_json::json!([]))
}

pub(crate) fn lifecycle(slot: u32, start: u64) -> SandboxRun {
    SandboxRun {
        sandbox: SandboxId::parse(&format!("test-{slot}")).unwrap(),
        project: ProjectId::default_project(),
        slot,
        start,
    }
}

/// The same in another project.
pub(crate) fn lifecycle_in(project: &str, slot: u32, start: u64) -> SandboxRun {
    SandboxRun {
        project: ProjectId::parse(project).unwrap(),
        ..lifecycle(slot, start)
    }
}

impl World {
    /// None, with a word of why, where namespaces cannot be made.
    pub(crate) fn start(policies: &[EgressPolicy]) -> Option<Self> {
        Self::start_with(policies, None)
    }

    /// The same, with so many bytes a second for each slot in each direction.
    pub(crate) fn start_with(policies: &[EgressPolicy], rate: Option<NonZeroU64>) -> Option<Self> {
        let policies = policies.iter().map(|policy| ("default", policy.clone()));
        let given = Given {
            rate,
            ..Given::default()
        };
        Self::start_in(policies.collect(), given)
    }

    /// The same, each slot in a project, with what an operator decides.
    pub(crate) fn start_in(policies: Vec<(&str, EgressPolicy)>, given: Given) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: network namespaces need root");
            return None;
        }
        if !std::path::Path::new("/usr/sbin/nft").exists() {
            println!("skipped: there is no nft");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let internet = Internet::make(&root);
        let proxy = Proxy::start(&internet, &root, given);
        let node = Runtime::new().unwrap();
        let connected = connect(&node, &proxy);
        let kept = Arc::<Kept>::default();
        let client = keep_events(&node, connected, &kept);
        let mut world = Self {
            internet,
            slots: Vec::new(),
            runs: Vec::new(),
            proxy,
            node,
            client,
            kept,
            epoch: Mutex::new(1),
            _directory: directory,
        };
        for (number, (project, policy)) in policies.into_iter().enumerate() {
            let number = u32::try_from(number).unwrap();
            world.slots.push(Slot::make(&root, number));
            let run = lifecycle_in(project, number, 1);
            assert_eq!(world.open(run.clone(), 1, policy).unwrap(), 0);
            world.runs.push(run);
        }
        Some(world)
    }

    pub(crate) fn open(
        &self,
        lifecycle: SandboxRun,
        epoch: u64,
        policy: EgressPolicy,
    ) -> Result<u32, EgressCallError> {
        let slot = usize::try_from(lifecycle.slot).unwrap();
        let sockets = self.slots[slot].sockets.borrow();
        self.node
            .block_on(self.client.open(lifecycle, epoch, policy, sockets))
    }

    pub(crate) fn close(&self, lifecycle: SandboxRun) -> u32 {
        self.node.block_on(self.client.close(lifecycle)).unwrap()
    }

    pub(crate) fn try_set_policy(
        &self,
        lifecycle: SandboxRun,
        epoch: u64,
        policy: EgressPolicy,
    ) -> Result<u32, EgressCallError> {
        self.node
            .block_on(self.client.set_policy(lifecycle, epoch, policy))
    }

    /// Changes the policy of the first slot.
    pub(crate) fn set_policy(&self, policy: EgressPolicy) -> u32 {
        let mut epoch = self.epoch.lock().unwrap();
        *epoch += 1;
        self.try_set_policy(self.runs[0].clone(), *epoch, policy)
            .unwrap()
    }

    /// Runs something inside the first guest.
    pub(crate) fn guest<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.guest_of(0, work)
    }

    pub(crate) fn guest_of<T: Send + 'static>(
        &self,
        slot: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        netns::in_namespace(&self.slots[slot].guest, work).unwrap()
    }

    /// Dials the process again, as a node does that was restarted.
    pub(crate) fn reconnect(&mut self) -> Vec<(SandboxRun, u64)> {
        let mut connected = connect(&self.node, &self.proxy);
        let open = std::mem::take(&mut connected.open);
        self.client = keep_events(&self.node, connected, &self.kept);
        open
    }

    pub(crate) fn wait_until_over(&self, client: &EgressClient) {
        self.node.block_on(async {
            tokio::time::timeout(PATIENCE, client.over()).await.unwrap();
        });
    }

    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.node.block_on(work)
    }

    pub(crate) const fn client(&self) -> &EgressClient {
        &self.client
    }
}

impl Kept {
    pub(crate) fn all(&self) -> Vec<RunRecord> {
        self.events.lock().unwrap().0.clone()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.events.lock().unwrap().1
    }

    /// Waits for a record.
    pub(crate) fn wait(
        &self,
        what: &str,
        is_meant: impl Fn(&EgressRecord) -> bool,
    ) -> EgressRecord {
        let deadline = Instant::now() + PATIENCE;
        let mut events = self.events.lock().unwrap();
        loop {
            let mut records = events.0.iter().map(|record| &record.record);
            if let Some(found) = records.find(|record| is_meant(record)) {
                return found.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no record of {what} in {:#?}", events.0);
            events = self.grew.wait_timeout(events, left).unwrap().0;
        }
    }

    pub(crate) fn wait_denied(&self, reason: DenyReason) -> EgressRecord {
        self.wait(reason.as_str(), |record| {
            record.decision == Decision::Denied && record.reason == Some(reason)
        })
    }

    pub(crate) fn wait_decision(&self, decision: Decision) -> EgressRecord {
        self.wait(&format!("{decision:?}"), |record| {
            record.decision == decision
        })
    }
}

/// A program that was just started may not listen yet.
fn connect(node: &Runtime, proxy: &Proxy) -> Connected {
    let mut connected = None;
    wait_until("the process listens", || {
        connected = node.block_on(EgressClient::connect(&proxy.control)).ok();
        connected.is_some()
    });
    connected.unwrap()
}

fn keep_events(node: &Runtime, connected: Connected, kept: &Arc<Kept>) -> EgressClient {
    let Connected {
        client, mut events, ..
    } = connected;
    let kept = Arc::clone(kept);
    node.spawn(async move {
        while let Some(event) = events.recv().await {
            let mut events = kept.events.lock().unwrap();
            match event {
                EgressEvent::Records(records) => events.0.extend(records),
                EgressEvent::Lost { count, .. } => events.1 += count,
            }
            drop(events);
            kept.grew.notify_all();
        }
    });
    client
}
