//! Room for who needs it, from who does not use it.
//!
//! On a host that shares, the memory of shared sandboxes is promised more than once. When a create or
//! a wake finds no room, or the host itself has little left, the longest idle of them sleeps: one
//! after the other, each to its end, and never one that is used. When there is room again, those go
//! on that fell asleep over a command. ADR 0047.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dayfly_core::admission::{Demand, Refusal, memory_left, memory_missing};
use dayfly_core::pressure::{Pressure, judge};
use dayfly_host::memory_pressure::StallTrigger;
use dayfly_node_api::{NodeError, SharingStatus};
use dayfly_types::{ErrorCode, Moment, SandboxClass, SandboxId, SandboxState, limits};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::capacity::{Ledger, Promise, PromiseNumber};
use crate::disk_lane::off_runtime;
use crate::parts::Parts;
use crate::sandbox::{Request, SandboxHandle};

/// How soon a caller may ask again when the node is full.
const FULL_RETRY: Duration = Duration::from_secs(5);

/// What is remembered between two sleeps.
#[derive(Debug, Default)]
pub(crate) struct Relief {
    /// One at a time: what one gave back is seen before the next goes.
    turn: tokio::sync::Mutex<()>,
    /// Until when one is left alone that could not sleep, or wake.
    unable: Mutex<HashMap<SandboxId, Moment>>,
    pressure: Mutex<Option<Pressure>>,
    put_to_sleep: AtomicU64,
    not_put_to_sleep: AtomicU64,
}

/// One that could sleep.
struct Candidate {
    handle: SandboxHandle,
    /// Somebody reads what a command says; these go last.
    is_followed: bool,
    since: Moment,
    gives_mib: u64,
}

/// Promises what a machine needs, or says what is short. Others may fall asleep for it.
pub(crate) async fn admit(
    parts: &Parts,
    class: SandboxClass,
    demand: Demand,
) -> Result<Promise, NodeError> {
    let deadline = Instant::now() + limits::RELIEF_DEADLINE;
    loop {
        let refusal = match parts.ledger.promise_to(class, demand) {
            Ok(promise) => return Ok(promise),
            Err(refusal) => refusal,
        };
        if !could_help(parts, refusal, demand) {
            return Err(full(refusal));
        }
        match timeout_at(deadline, make_room(parts, class, demand)).await {
            Ok(Some(promise)) => return Ok(promise),
            Ok(None) if Instant::now() < deadline => {}
            Ok(None) | Err(_) => return Err(full(refusal)),
        }
    }
}

fn full(refusal: Refusal) -> NodeError {
    let text = format!("this node is full: {refusal}");
    NodeError::new(ErrorCode::NoCapacity, text).retry_after(FULL_RETRY)
}

/// Whether those who could sleep have what is missing. Nobody sleeps for what they cannot give, and
/// who cannot be helped hears so at once: nothing here leaves memory.
fn could_help(parts: &Parts, refusal: Refusal, demand: Demand) -> bool {
    if !parts.ledger.sharing().is_on() || !matches!(refusal, Refusal::Memory { .. }) {
        return false;
    }
    let (capacity, committed) = parts.ledger.view();
    let missing_mib = memory_missing(capacity, committed, demand.memory_mib);
    let given: u64 = (candidates(parts).iter()).map(|one| one.gives_mib).sum();
    given >= missing_mib
}

/// Waits for its turn and puts one to sleep, unless there is room by then.
async fn make_room(parts: &Parts, class: SandboxClass, demand: Demand) -> Option<Promise> {
    let _turn = parts.relief.turn.lock().await;
    if let Ok(promise) = parts.ledger.promise_to(class, demand) {
        return Some(promise);
    }
    put_one_to_sleep(parts, "a sandbox needs room").await;
    parts.ledger.promise_to(class, demand).ok()
}

/// Who could sleep now, as far as is known, in the order in which they should.
fn candidates(parts: &Parts) -> Vec<Candidate> {
    let now = parts.clock.now();
    let mut found: Vec<Candidate> = parts
        .all_sandboxes()
        .filter(|handle| !parts.relief.is_unable(&handle.id, now))
        .filter_map(|handle| candidate(parts, &handle, now))
        .collect();
    found.sort_by_key(|one| (one.is_followed, one.since));
    found
}

fn candidate(parts: &Parts, handle: &SandboxHandle, now: Moment) -> Option<Candidate> {
    let published = handle.published.borrow();
    let report = &published.report;
    let may = report.class == SandboxClass::Shared
        && report.state == SandboxState::Running
        && report.condition.is_none()
        && published.agent.is_some();
    let since = handle.activity.quiet_since().filter(|_| may)?;
    let promise = published.promise?;
    drop(published);
    (now.since(since) >= limits::PRESSURE_IDLE_MIN).then(|| Candidate {
        handle: handle.clone(),
        is_followed: handle.activity.has_followers(),
        since,
        gives_mib: parts.ledger.memory_mib(promise),
    })
}

/// Tries one after the other until one sleeps. Says whether one does.
async fn put_one_to_sleep(parts: &Parts, why: &str) -> bool {
    for Candidate { handle, .. } in candidates(parts) {
        let id = handle.id.clone();
        let slept = handle.ask(Request::SleepForOthers).await;
        if matches!(slept, Ok(true)) {
            tracing::info!(sandbox_id = %id, why, "idle, and put to sleep for others");
            parts.relief.put_to_sleep.fetch_add(1, Ordering::SeqCst);
            parts.ledger.look_at_host();
            return true;
        }
        if let Err(error) = slept {
            tracing::warn!(sandbox_id = %id, %error, "cannot put it to sleep for others");
        }
        parts.relief.not_put_to_sleep.fetch_add(1, Ordering::SeqCst);
        parts.relief.leave_alone(id, parts.clock.now());
    }
    false
}

/// Looks at the host and at all shared sandboxes until `stop`, and puts some to sleep while the
/// host is under pressure. A sleep or a wake may take long; the looks go on meanwhile, because who
/// was not seen is not known to rest.
pub(crate) async fn run(parts: Arc<Parts>, period: Duration, stop: CancellationToken) {
    let period = period.min(limits::PRESSURE_PERIOD);
    // The kernel's figure is of the last seconds: what a sleep gave back shows in it later.
    let settling = limits::PRESSURE_PAUSE.min(2 * period);
    let mut trigger = parts.ledger.stall_trigger();
    let mut calm_since = parts.clock.now();
    let mut sleeps = OneAtATime::until(&stop);
    let mut wakes = OneAtATime::until(&stop);
    while !stop.is_cancelled() {
        let worker = Arc::clone(&parts);
        let pressure = off_runtime(move || look(&worker)).await;
        let now = parts.clock.now();
        if let Some(pressure) = pressure {
            calm_since = now;
            let parts = Arc::clone(&parts);
            sleeps.begin(async move { relieve(&parts, pressure, settling).await });
        } else if now.since(calm_since) >= limits::PRESSURE_IDLE_MIN {
            let parts = Arc::clone(&parts);
            wakes.begin(async move { wake_one(&parts).await });
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(period) => {}
            () = stalled(&mut trigger), if pressure.is_none() => {}
        }
    }
}

/// Work beside the looks. What is asked for while it goes on is left out: the next look asks again.
struct OneAtATime {
    stop: CancellationToken,
    going_on: Option<JoinHandle<()>>,
}

impl OneAtATime {
    fn until(stop: &CancellationToken) -> Self {
        Self {
            stop: stop.clone(),
            going_on: None,
        }
    }

    fn begin(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        if self
            .going_on
            .as_ref()
            .is_some_and(|work| !work.is_finished())
        {
            return;
        }
        let stop = self.stop.clone();
        self.going_on = Some(tokio::spawn(async move {
            stop.run_until_cancelled(work).await;
        }));
    }
}

/// A trigger that is gone is not asked again; the looks at a steady pace stay.
async fn stalled(trigger: &mut Option<StallTrigger>) {
    let Some(there) = trigger else {
        return std::future::pending().await;
    };
    if let Err(error) = there.stalled().await {
        tracing::warn!(%error, "the kernel does not say any more when memory stalls");
        *trigger = None;
    }
}

/// Notes what engines use and what the host has left. Says what is short. Blocks.
fn look(parts: &Parts) -> Option<Pressure> {
    let now = parts.clock.now();
    let mut used: Vec<(PromiseNumber, u64)> = Vec::new();
    for handle in parts.all_sandboxes() {
        let (process, promise) = {
            let published = handle.published.borrow();
            (published.process, published.promise)
        };
        let Some(process) = process else {
            continue;
        };
        let load = parts.ledger.engine_load(process.pid);
        let cpu = load.map(|load| load.cpu);
        handle.activity.look_for_quiet(now, process.pid, cpu);
        if let (Some(promise), Some(load)) = (promise, load) {
            used.push((promise, load.memory_mib));
        }
    }
    parts.ledger.note_memory(&used);
    parts.ledger.look_at_host();
    let (capacity, committed) = parts.ledger.view();
    let pressure = judge(capacity, committed, parts.ledger.memory_stall());
    parts.relief.note(pressure);
    pressure
}

async fn relieve(parts: &Parts, pressure: Pressure, settling: Duration) {
    let Ok(turn) = parts.relief.turn.try_lock() else {
        // Somebody is being put to sleep already.
        return;
    };
    put_one_to_sleep(parts, &pressure.to_string()).await;
    drop(turn);
    if matches!(pressure, Pressure::Stall { .. }) {
        tokio::time::sleep(settling).await;
    }
}

/// Wakes one that fell asleep over a command, if there is room for it twice: once for it, and once
/// so that its wake does not put the next to sleep.
async fn wake_one(parts: &Parts) {
    let (capacity, committed) = parts.ledger.view();
    let (left_mib, now) = (memory_left(capacity, committed), parts.clock.now());
    let fits = |handle: &SandboxHandle| {
        let published = handle.published.borrow();
        let report = &published.report;
        let sleeps = report.state == SandboxState::Hibernated && report.unavailable.is_none();
        if !published.is_restless || !sleeps || parts.relief.is_unable(&handle.id, now) {
            return false;
        }
        let (memory_mib, disk_mib) = (report.memory.into(), report.disk_mib);
        let demand = parts.ledger.demand(report.class, memory_mib, disk_mib);
        2 * demand.memory_mib <= left_mib
    };
    let Some(handle) = parts.all_sandboxes().find(fits) else {
        return;
    };
    match handle.ask(Request::Wake).await {
        Ok(_) => tracing::info!(sandbox_id = %handle.id, "there is room; it goes on"),
        Err(error) => {
            tracing::warn!(sandbox_id = %handle.id, %error, "cannot wake it again");
            parts.relief.leave_alone(handle.id, parts.clock.now());
        }
    }
}

impl Relief {
    fn unable(&self) -> MutexGuard<'_, HashMap<SandboxId, Moment>> {
        self.unable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_unable(&self, id: &SandboxId, now: Moment) -> bool {
        self.unable().get(id).is_some_and(|until| *until > now)
    }

    fn leave_alone(&self, id: SandboxId, now: Moment) {
        let mut unable = self.unable();
        unable.retain(|_, until| *until > now);
        unable.insert(id, now.plus(limits::PRESSURE_RETRY));
    }

    /// Notes what is short, and logs it once.
    fn note(&self, pressure: Option<Pressure>) {
        let mut known = self.pressure.lock().unwrap_or_else(PoisonError::into_inner);
        match (known.as_ref(), &pressure) {
            (None, Some(pressure)) => tracing::warn!(%pressure, "memory is short"),
            (Some(_), None) => tracing::info!("memory is not short any more"),
            (None, None) | (Some(_), Some(_)) => {}
        }
        *known = pressure;
    }

    pub(crate) fn status(&self, ledger: &Ledger) -> SharingStatus {
        let sharing = ledger.sharing();
        let known = self.pressure.lock().unwrap_or_else(PoisonError::into_inner);
        SharingStatus {
            memory: sharing.memory,
            disk: sharing.disk,
            memory_available_mib: ledger.view().0.memory_available_mib,
            pressure: known.as_ref().map(ToString::to_string),
            put_to_sleep: self.put_to_sleep.load(Ordering::SeqCst),
            not_put_to_sleep: self.not_put_to_sleep.load(Ordering::SeqCst),
        }
    }
}
