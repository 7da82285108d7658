//! The gate of a real node: keeps the egress process running and tells it every permit.
//!
//! The process outlives this one, so what it serves is asked for on each connection and brought in
//! line with what is wanted. While there is no connection nothing new is let out, and what was let
//! out before goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use dayfly_egress::client::{
    Connected, EgressCallError, EgressClient, EgressConnectError, EgressEvent,
};
use dayfly_egress::protocol::{RunRecord, SandboxRun};
use dayfly_host::net::{self, SlotSockets};
use dayfly_host::process::Pidfd;
use dayfly_node_api::{EgressDecision, EgressStatus};
use dayfly_types::{Backoff, SandboxId};
use dayfly_vmm::SlotIndex;
use futures::StreamExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::gate::{EgressGate, EgressPermit, GateError};
use super::log::{LogError, NetworkLogs};
use super::process::{EgressProcess, StartEgressError};
use super::spool::EgressSpool;
use super::tally::EgressTally;
use crate::disk_lane::off_runtime;

/// How long a process that was started may take to listen.
const LISTEN_LIMIT: Duration = Duration::from_secs(5);
/// A socket file has no event that one can wait for without watching its directory.
const LISTEN_PAUSE: Duration = Duration::from_millis(5);
const FAILURE_PAUSE: Duration = Duration::from_millis(500);
/// How often what is in force is compared with what should be.
const APPLY_PERIOD: Duration = Duration::from_secs(1);
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(30);
/// Permits that are put in force at the same time after a connection came up.
const APPLY_AT_ONCE: usize = 8;

/// The gate. Nothing happens before [`HostEgress::run`].
#[derive(Debug)]
pub struct HostEgress {
    process: EgressProcess,
    netns_directory: PathBuf,
    logs: Arc<NetworkLogs>,
    spool: Arc<EgressSpool>,
    wanted: Mutex<BTreeMap<u32, SlotPermit>>,
    link: watch::Sender<Option<EgressClient>>,
    tally: EgressTally,
}

#[derive(Debug)]
struct SlotPermit {
    permit: EgressPermit,
    served: Served,
    /// One call at a time about one slot.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// What the process is known to do for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    No,
    /// This start of the sandbox, with the policy of this epoch.
    Epoch(u64),
}

/// Why there is no conversation with the process.
#[derive(Debug, thiserror::Error)]
enum LinkError {
    #[error("the egress process could not be started")]
    Start(#[source] StartEgressError),
    #[error("the egress process could not be talked to")]
    Connect(#[source] EgressConnectError),
}

impl HostEgress {
    #[must_use]
    pub fn new(
        process: EgressProcess,
        netns_directory: PathBuf,
        logs: Arc<NetworkLogs>,
        spool: Arc<EgressSpool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            process,
            netns_directory,
            logs,
            spool,
            wanted: Mutex::default(),
            link: watch::Sender::new(None),
            tally: EgressTally::default(),
        })
    }

    /// Keeps the process running until `stop`. A process that serves a sandbox stays then, one that
    /// serves none is ended. Gives whether it was.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) -> bool {
        let mut backoff = Backoff::new(FAILURE_PAUSE, FAILURE_PAUSE_MAX);
        while !stop.is_cancelled() {
            let connected = tokio::select! {
                connected = self.connect() => connected,
                () = stop.cancelled() => break,
            };
            match connected {
                Ok((connected, process)) => {
                    backoff.reset();
                    tokio::select! {
                        () = self.serve(connected) => tracing::warn!("the egress process is gone"),
                        () = stop.cancelled() => {}
                    }
                    self.link.send_replace(None);
                    // Collected, so that nothing of it stays in the table of processes.
                    let _ = process.map(|process| process.reap());
                }
                Err(error) => {
                    let error = crate::error_chain(&error);
                    tracing::error!(error, "sandboxes reach nothing new");
                    let pause = tokio::time::sleep(backoff.pause());
                    stop.run_until_cancelled(pause).await;
                }
            }
        }
        let serves_none = self.lock().is_empty();
        if serves_none {
            self.end().await;
        }
        serves_none
    }

    /// Waits until somebody decides, but not for long: without, sandboxes reach nothing and run.
    pub async fn connected(&self, limit: Duration) {
        let mut link = self.link.subscribe();
        let up = link.wait_for(Option::is_some);
        if tokio::time::timeout(limit, up).await.is_err() {
            tracing::warn!("the egress process is not there yet");
        }
    }

    async fn end(&self) {
        let process = self.process.clone();
        let ended = tokio::task::spawn_blocking(move || process.end()).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(error = crate::error_chain(&error), "it could not be ended");
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, SlotPermit>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Slots that somebody may send from.
    pub(super) fn slots(&self) -> Vec<(u32, PathBuf)> {
        let wanted = self.lock();
        wanted
            .keys()
            .map(|slot| (*slot, self.netns(*slot)))
            .collect()
    }

    fn netns(&self, slot: u32) -> PathBuf {
        self.netns_directory.join(slot.to_string())
    }

    /// The process that runs, or a new one in its place.
    async fn connect(&self) -> Result<(Connected, Option<Pidfd>), LinkError> {
        let socket = self.process.socket();
        let process = self.process.clone();
        if off_runtime(move || process.is_current()).await
            && let Ok(connected) = EgressClient::connect(&socket).await
        {
            return Ok((connected, None));
        }
        let identity = self.process.start().await.map_err(LinkError::Start)?;
        self.tally.started();
        let process = Pidfd::open(identity).ok();
        let end = tokio::time::Instant::now() + LISTEN_LIMIT;
        loop {
            match EgressClient::connect(&socket).await {
                Ok(connected) => return Ok((connected, process)),
                Err(error) if tokio::time::Instant::now() > end => {
                    return Err(LinkError::Connect(error));
                }
                Err(_) => tokio::time::sleep(LISTEN_PAUSE).await,
            }
        }
    }

    async fn serve(&self, connected: Connected) {
        let Connected {
            client,
            mut events,
            open,
        } = connected;
        for lifecycle in self.take_stock(&open) {
            // What cannot be closed now is found again on the next connection.
            let _ = client.close(lifecycle).await;
        }
        self.tally.connected();
        self.link.send_replace(Some(client));
        // Again and again: a call that failed while the connection stood is nobody else's to repeat.
        let applying = async {
            loop {
                self.apply_what_is_not_in_force().await;
                self.logs.keep_only(&self.sandboxes());
                tokio::time::sleep(APPLY_PERIOD).await;
            }
        };
        let taking = async {
            while let Some(event) = events.recv().await {
                self.tally.count(&event);
                let (logs, spool) = (Arc::clone(&self.logs), Arc::clone(&self.spool));
                off_runtime(move || keep(&logs, &spool, event)).await;
            }
        };
        tokio::select! {
            // Resolves when the connection is over.
            () = taking => {}
            never = applying => never,
        }
    }

    /// Those that somebody may send from.
    fn sandboxes(&self) -> BTreeSet<SandboxId> {
        let wanted = self.lock();
        let permits = wanted.values().map(|one| &one.permit);
        permits.map(|permit| lifecycle_of(permit).sandbox).collect()
    }

    async fn apply_what_is_not_in_force(&self) {
        let waiting: Vec<u32> = {
            let wanted = self.lock();
            let is_waiting = |one: &SlotPermit| one.served != Served::Epoch(one.permit.epoch);
            let waiting = wanted.iter().filter(|(_, one)| is_waiting(one));
            waiting.map(|(slot, _)| *slot).collect()
        };
        futures::stream::iter(waiting)
            .for_each_concurrent(APPLY_AT_ONCE, |slot| async move {
                if let Err(error) = self.apply(slot).await {
                    let error = crate::error_chain(&error);
                    tracing::warn!(slot, error, "a permit is not in force");
                }
            })
            .await;
    }

    /// Compares what is served with what is wanted. Gives what nobody wants.
    fn take_stock(&self, open: &[(SandboxRun, u64)]) -> Vec<SandboxRun> {
        let mut wanted = self.lock();
        for one in wanted.values_mut() {
            one.served = Served::No;
        }
        let mut unwanted = Vec::new();
        for (lifecycle, epoch) in open {
            match wanted.get_mut(&lifecycle.slot) {
                Some(one) if lifecycle_of(&one.permit) == *lifecycle => {
                    one.served = Served::Epoch(*epoch);
                }
                _ => unwanted.push(lifecycle.clone()),
            }
        }
        unwanted
    }

    /// Brings one slot in line with its permit.
    async fn apply(&self, slot: u32) -> Result<(), GateError> {
        let Some(turn) = self.lock().get(&slot).map(|one| Arc::clone(&one.turn)) else {
            return Ok(());
        };
        let _turn = turn.lock().await;
        let Some((permit, served)) = self.snapshot(slot) else {
            return Ok(());
        };
        let client = self.link.borrow().clone();
        let client =
            client.ok_or_else(|| GateError::Unavailable(Box::new(EgressCallError::Gone)))?;
        let lifecycle = lifecycle_of(&permit);
        let (epoch, policy) = (permit.epoch, permit.policy.clone());
        let done = match served {
            Served::Epoch(known) if known == epoch => return Ok(()),
            Served::Epoch(_) => client.set_policy(lifecycle, epoch, policy).await,
            Served::No => {
                let sockets = self.sockets(slot).await?;
                let SlotSockets {
                    tcp,
                    dns_udp,
                    dns_tcp,
                } = &sockets;
                let descriptors = [tcp.as_fd(), dns_udp.as_fd(), dns_tcp.as_fd()];
                client.open(lifecycle, epoch, policy, descriptors).await
            }
        };
        done.map_err(|error| match error {
            EgressCallError::Refused { why } => GateError::Refused(why),
            error @ (EgressCallError::Gone
            | EgressCallError::TimedOut
            | EgressCallError::TooLarge
            | EgressCallError::Send(_)) => GateError::Unavailable(Box::new(error)),
        })?;
        self.note(slot, &permit);
        Ok(())
    }

    fn snapshot(&self, slot: u32) -> Option<(EgressPermit, Served)> {
        let wanted = self.lock();
        wanted
            .get(&slot)
            .map(|one| (one.permit.clone(), one.served))
    }

    /// Notes what is in force, unless the slot has another holder by now.
    fn note(&self, slot: u32, permit: &EgressPermit) {
        if let Some(one) = self.lock().get_mut(&slot)
            && one.permit.start == permit.start
        {
            one.served = Served::Epoch(permit.epoch);
        }
    }

    async fn sockets(&self, slot: u32) -> Result<SlotSockets, GateError> {
        let netns = self.netns(slot);
        let opened = tokio::task::spawn_blocking(move || net::open_slot_sockets(&netns)).await;
        match opened {
            Ok(Ok(sockets)) => Ok(sockets),
            Ok(Err(error)) => Err(GateError::Sockets(Box::new(error))),
            Err(error) => Err(GateError::Sockets(Box::new(error))),
        }
    }

    fn want(&self, permit: EgressPermit) -> u32 {
        let slot = permit.slot.0;
        let mut wanted = self.lock();
        match wanted.get_mut(&slot) {
            Some(one) if one.permit.start == permit.start => one.permit = permit,
            Some(_) | None => {
                let one = SlotPermit {
                    permit,
                    served: Served::No,
                    turn: Arc::default(),
                };
                wanted.insert(slot, one);
            }
        }
        slot
    }
}

fn lifecycle_of(permit: &EgressPermit) -> SandboxRun {
    SandboxRun {
        sandbox: permit.sandbox.clone(),
        project: permit.project.clone(),
        slot: permit.slot.0,
        start: permit.start,
    }
}

#[async_trait]
impl EgressGate for HostEgress {
    async fn permit(&self, permit: EgressPermit) -> Result<(), GateError> {
        let slot = self.want(permit);
        self.apply(slot).await
    }

    fn adopt(&self, permit: EgressPermit) {
        self.want(permit);
    }

    async fn withdraw(&self, slot: SlotIndex) {
        let Some(gone) = self.lock().remove(&slot.0) else {
            return;
        };
        // A call about this permit that is under way must not open it again behind the close.
        let _turn = gone.turn.lock().await;
        let client = self.link.borrow().clone();
        if let Some(client) = client
            && let Err(error) = client.close(lifecycle_of(&gone.permit)).await
        {
            // The next connection finds it open and closes it.
            tracing::warn!(
                error = crate::error_chain(&error),
                "a permit was not taken back"
            );
        }
    }

    fn is_in_force(&self, slot: SlotIndex, epoch: u64) -> bool {
        let wanted = self.lock();
        let is_linked = self.link.borrow().is_some();
        is_linked
            && wanted
                .get(&slot.0)
                .is_some_and(|one| one.served == Served::Epoch(epoch))
    }

    fn status(&self) -> EgressStatus {
        self.tally.status()
    }
}

/// Puts what the egress process told into the records. Blocks.
fn keep(logs: &NetworkLogs, spool: &EgressSpool, event: EgressEvent) {
    // What cannot be written there is counted and in the log already.
    let _ = match event {
        EgressEvent::Records(records) => spool.append(keep_in_logs(logs, records)),
        EgressEvent::Lost { lifecycle, count } => {
            tell(logs.count_lost(&lifecycle.sandbox, count));
            spool.count_lost(count)
        }
    };
}

/// The log of a sandbox first: a command that was denied something waits for it.
fn keep_in_logs(logs: &NetworkLogs, records: Vec<RunRecord>) -> Vec<EgressDecision> {
    let mut of_each: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for one in records {
        let SandboxRun {
            sandbox, project, ..
        } = one.lifecycle;
        let of_one = of_each.entry((sandbox, project)).or_default();
        of_one.push(one.record);
    }
    let mut decisions = Vec::new();
    for ((sandbox, project), mut records) in of_each {
        tell(logs.append(&sandbox, &mut records));
        decisions.extend(records.into_iter().map(|record| EgressDecision {
            number: 0,
            project: project.clone(),
            sandbox: sandbox.clone(),
            record,
        }));
    }
    decisions
}

fn tell(kept: Result<(), LogError>) {
    if let Err(error) = kept {
        // The sandbox may have been deleted a moment ago.
        tracing::debug!(error = crate::error_chain(&error), "records were not kept");
    }
}
