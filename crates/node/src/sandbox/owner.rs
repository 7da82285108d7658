//! The task that owns one sandbox.

use std::sync::Arc;

use dayfly_core::lifecycle::LifecycleEvent;
use dayfly_guest_client::AgentClient;
use dayfly_guest_proto::IdentityEvent;
use dayfly_node_api::{NodeError, SandboxReport};
use dayfly_types::{ErrorCode, Generation, SandboxState, limits};
use dayfly_vmm::{CpuWeight, SlotIndex, Vm, VmEvent};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::bring_up::{
    BringUpError, BroughtUp, Origin, Start, Supply, bring_up, start_programs, unix_nanos,
};
use super::connect::{RETRY_PAUSE, connect_again};
use super::occasions::{wait_for_event, wait_for_idleness, wait_for_loss};
use super::permit::network_report;
use super::report::{captures_of, report};
use super::room::{RoomWait, disk_condition, wait_for_room};
use super::stages::Laps;
use super::{Activity, Published, Request, SandboxHandle};
use crate::capacity::Promise;
use crate::disk_lane::DiskLane;
use crate::effects::Effect;
use crate::journal::SandboxRecord;
use crate::parts::Parts;
use crate::pause_guard::Watching;

/// The owner's own state. Nobody else writes any of it.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(super) parts: Arc<Parts>,
    pub(super) record: SandboxRecord,
    /// All that it does to the disk, in order.
    pub(super) disk: DiskLane,
    pub(super) vm: Option<Box<dyn Vm>>,
    pub(super) agent: Option<AgentClient>,
    pub(super) stages: Laps,
    refusal: Option<NodeError>,
    /// Held for as long as the sandbox may use what it was promised.
    pub(super) promise: Option<Promise>,
    publish: watch::Sender<Published>,
    pub(super) delete_waiters: Vec<oneshot::Sender<()>>,
    pub(super) doomed: CancellationToken,
    pub(super) activity: Arc<Activity>,
    /// A fork's capture that is being made durable; true when that is over.
    pub(super) publication: Option<watch::Receiver<bool>>,
    /// There while the engine stands still.
    pub(super) guard: Option<Watching>,
    /// Whether the machine that is being brought up may have run.
    pub(super) may_have_run: bool,
    /// It goes because nothing happened in it.
    pub(super) idled_out: bool,
    pub(super) room: RoomWait,
    /// How often it began to sleep for others.
    pub(super) sleeps_for_others: u64,
}

/// What the owner does next.
enum Next {
    Serve,
    TearDown,
}

/// What made the owner look up.
enum Occasion {
    Request(Option<Request>),
    Expired,
    Idle,
    Machine(VmEvent),
    MayGoOn,
    AgentLost,
    AgentFound(Option<AgentClient>),
}

impl Owner {
    /// Makes an owner and the handle to it. Nothing runs yet.
    pub(crate) fn new(
        parts: Arc<Parts>,
        record: SandboxRecord,
        promise: Option<Promise>,
    ) -> (Self, SandboxHandle, mpsc::Receiver<Request>) {
        let (requests, incoming) = mpsc::channel(limits::SANDBOX_QUEUE_LENGTH_MAX);
        let activity = Activity::new(Arc::clone(&parts.clock));
        let doomed = CancellationToken::new();
        let condition = disk_condition(&record, false);
        let first = Published {
            report: Arc::new(report(&parts, &record, &Laps::default(), condition, None)),
            agent: None,
            refusal: None,
            expires: record.expires,
            process: record.phase.process(),
            promise: promise.as_ref().map(Promise::number),
            captures: captures_of(&record),
            sleeps_for_others: 0,
            is_restless: record.is_restless,
        };
        let (publish, published) = watch::channel(first);
        let handle = SandboxHandle {
            id: record.id.clone(),
            requests,
            published,
            doomed: doomed.clone(),
            activity: Arc::clone(&activity),
        };
        let owner = Self {
            parts,
            record,
            disk: DiskLane::default(),
            vm: None,
            agent: None,
            stages: Laps::default(),
            refusal: None,
            promise,
            publish,
            delete_waiters: Vec::new(),
            doomed,
            activity,
            publication: None,
            guard: None,
            may_have_run: false,
            idled_out: false,
            room: RoomWait::default(),
            sleeps_for_others: 0,
        };
        (owner, handle, incoming)
    }

    /// Creates the sandbox and then serves it until it is gone.
    pub(crate) async fn create_and_run(
        mut self,
        mut origin: Origin,
        incoming: mpsc::Receiver<Request>,
    ) {
        // A boot takes too long for others to wait with their engines.
        let is_boot = matches!(origin.start, Start::Boot { .. });
        let under_way = (!is_boot).then(|| self.parts.pool.create_begins());
        let next = self.create_unless_deleted(&mut origin).await;
        // Its turn ends here, with the bring-up.
        drop(origin);
        if let Some(under_way) = under_way {
            under_way.linger();
        }
        self.run(next, incoming).await;
    }

    /// Serves a sandbox that an earlier life of this program created.
    pub(crate) async fn adopt_and_run(
        mut self,
        vm: Option<Box<dyn Vm>>,
        incoming: mpsc::Receiver<Request>,
    ) {
        self.vm = vm;
        self.tell_ledger().await;
        let next = if self.record.state() == SandboxState::Deleting {
            Next::TearDown
        } else {
            Next::Serve
        };
        self.run(next, incoming).await;
    }

    async fn run(mut self, next: Next, mut incoming: mpsc::Receiver<Request>) {
        if matches!(next, Next::Serve) {
            self.serve(&mut incoming).await;
        }
        // A look at all captures for each of many deletes would cost more than the deletes.
        let may_leave_garbage = !captures_of(&self.record).is_empty();
        self.tear_down(&mut incoming).await;
        self.parts.forget(&self.record.id);
        self.parts.network_logs.forget(&self.record.id);
        self.publish_now();
        if may_leave_garbage {
            self.parts.housekeeping.notify_one();
        }
        for waiter in self.delete_waiters.drain(..) {
            // A caller that stopped waiting does not need the answer.
            let _ = waiter.send(());
        }
    }

    /// Runs the creation; a delete wins over it at any point.
    async fn create_unless_deleted(&mut self, origin: &mut Origin) -> Next {
        let doomed = self.doomed.clone();
        let outcome = tokio::select! {
            outcome = self.create(origin) => outcome,
            () = doomed.cancelled() => {
                let text = "deleted while it was being created";
                Err(NodeError::new(ErrorCode::WrongState, text))
            }
        };
        match outcome {
            Ok(()) => Next::Serve,
            Err(error) => {
                self.refusal = Some(error);
                Next::TearDown
            }
        }
    }

    /// Brings the machine up, with one more try when a parked engine was found dead, and lets user
    /// code run. The journal says `running` before the first instruction of it.
    pub(super) async fn start_machine(&mut self, origin: &Origin) -> Result<(), NodeError> {
        let what = if origin.event == IdentityEvent::Wake {
            "the sandbox could not be woken"
        } else if origin.event == IdentityEvent::Rollback {
            "the sandbox could not be taken back"
        } else {
            "the sandbox could not be created"
        };
        let mut outcome = self.attempt(origin, Supply::Any).await;
        if let Err(BringUpError::Restore(error)) = &outcome {
            // A parked engine may have died on the shelf; one started now has not.
            let text = crate::error_chain(error);
            tracing::warn!(sandbox_id = %self.record.id, error = %text, "restore failed, trying once more");
            if let Some(slot) = self.record.phase.slot()
                && self.release_slot(slot).await
            {
                outcome = self.attempt(origin, Supply::FreshOnly).await;
            }
        }
        self.may_have_run = match &outcome {
            Ok(_) => true,
            Err(error) => error.behind_restore(),
        };
        let started = match outcome {
            Ok(brought_up) => self.go(brought_up, origin, what).await,
            Err(error) => {
                let text = crate::error_chain(&error);
                tracing::warn!(sandbox_id = %self.record.id, error = %text, what);
                Err(error.into_node_error(what))
            }
        };
        self.publish_now();
        started
    }

    async fn attempt(
        &mut self,
        origin: &Origin,
        supply: Supply,
    ) -> Result<BroughtUp, BringUpError> {
        let limit = origin.deadline();
        let parts = Arc::clone(&self.parts);
        let work = bring_up(&parts, &self.disk, &mut self.record, origin, supply);
        tokio::time::timeout(limit, work)
            .await
            .unwrap_or(Err(BringUpError::TimedOut(limit)))
    }

    async fn go(
        &mut self,
        brought_up: BroughtUp,
        origin: &Origin,
        what: &str,
    ) -> Result<(), NodeError> {
        let BroughtUp {
            vm,
            agent,
            identified,
            mut stages,
        } = brought_up;
        for hook in &identified.hooks {
            let failed = hook.timed_out || hook.exit_code != Some(0);
            tracing::info!(sandbox_id = %self.record.id, hook = ?hook.name, failed, "hook ran");
        }
        let event = if self.record.state() == SandboxState::Waking {
            LifecycleEvent::WakeDone
        } else {
            LifecycleEvent::Ready
        };
        self.vm = Some(vm);
        self.transition(event).await?;
        self.weigh_cpu()
            .await
            .map_err(|error| error.into_node_error(what))?;
        let now = unix_nanos(self.parts.clock.as_ref());
        let effects = &self.parts.effects;
        effects
            .around_async(Effect::GuestThaw, agent.thaw_at(now))
            .await
            .map_err(|error| BringUpError::Thaw(error).into_node_error(what))?;
        stages.end("thaw");
        if let Start::Boot { programs, .. } = &origin.start {
            start_programs(&self.record.id, &agent, programs).await;
            stages.end("programs");
        }
        self.agent = Some(agent);
        self.tell_ledger().await;
        self.record.ready_ms = Some(stages.total_ms());
        self.stages = stages.into_laps();
        self.activity.note_use(self.parts.clock.now());
        Ok(())
    }

    /// What ran for somebody already went before it until now.
    async fn weigh_cpu(&self) -> Result<(), BringUpError> {
        let Some(slot) = self.record.phase.slot() else {
            return Ok(());
        };
        let weighed = self.parts.slots.weigh_cpu(slot, CpuWeight::Running).await;
        weighed.map_err(BringUpError::Limit)
    }

    /// Waits for whatever ends the sandbox, and does what is asked of it meanwhile.
    async fn serve(&mut self, incoming: &mut mpsc::Receiver<Request>) {
        self.publish_now();
        loop {
            match self.next_occasion(incoming).await {
                Occasion::Request(Some(Request::Delete { done })) => {
                    self.delete_waiters.push(done);
                    return;
                }
                Occasion::Request(None) => return,
                Occasion::Request(Some(request)) => {
                    let end = self.end();
                    tokio::select! {
                        () = self.answer(request) => {}
                        () = end => return,
                    }
                }
                Occasion::Expired if self.has_time_left() => self.publish_now(),
                Occasion::Expired => {
                    tracing::info!(sandbox_id = %self.record.id, "expired");
                    return;
                }
                Occasion::Idle => {
                    let end = self.end();
                    let ends = tokio::select! {
                        ends = self.idle_timeout_deletes() => ends,
                        () = end => true,
                    };
                    if ends {
                        return;
                    }
                }
                Occasion::Machine(VmEvent::Ended(exit)) => {
                    self.fail(format!("the engine ended: {exit}")).await;
                }
                Occasion::Machine(VmEvent::GuestEnded(end)) => self.guest_ended(end).await,
                Occasion::Machine(VmEvent::WaitsForRoom) => self.out_of_room(),
                Occasion::Machine(VmEvent::WriteFailed) => self.disk_is_damaged().await,
                Occasion::MayGoOn => self.try_again().await,
                Occasion::AgentLost => {
                    self.agent = None;
                    self.publish_now();
                }
                Occasion::AgentFound(agent) => {
                    self.agent = agent;
                    self.publish_now();
                }
            }
        }
    }

    /// Resolves when the sandbox is to end, by its deadline or by a delete, whatever it is busy
    /// with.
    fn end(&self) -> impl Future<Output = ()> + use<> {
        let (doomed, clock) = (self.doomed.clone(), Arc::clone(&self.parts.clock));
        // Whether a deadline of before a reboot is over is decided when nothing is under way.
        let expires = self.record.expires.filter(|_| !self.record.expires_bridged);
        async move {
            let expiry = async {
                match expires {
                    Some(moment) => clock.sleep_until(moment).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = doomed.cancelled() => {}
                () = expiry => {}
            }
        }
    }

    async fn next_occasion(&mut self, incoming: &mut mpsc::Receiver<Request>) -> Occasion {
        let expires = self.record.expires;
        let clock = Arc::clone(&self.parts.clock);
        let expiry = async {
            match expires {
                Some(moment) => clock.sleep_until(moment).await,
                None => std::future::pending().await,
            }
        };
        let watched = self.agent.clone();
        let needs_agent = self.needs_agent();
        let idle_limit = self.idle_limit();
        let pid = self.vm.as_ref().map(|vm| vm.process().pid);
        let room_pause = self.room_pause();
        tokio::select! {
            biased;
            () = expiry => Occasion::Expired,
            request = incoming.recv() => Occasion::Request(request),
            event = wait_for_event(&mut self.vm) => Occasion::Machine(event),
            () = wait_for_room(&self.parts, room_pause.unwrap_or_default()),
                if room_pause.is_some() => Occasion::MayGoOn,
            () = wait_for_loss(watched.as_ref()) => Occasion::AgentLost,
            agent = connect_again(&self.parts, &self.record), if needs_agent => {
                Occasion::AgentFound(agent)
            }
            () = wait_for_idleness(&self.parts, &self.activity, pid, idle_limit) => Occasion::Idle,
        }
    }

    /// Does what was asked and answers. Dropped in the middle when the sandbox is deleted.
    async fn answer(&mut self, request: Request) {
        // A caller that stopped waiting does not need the answer.
        match request {
            Request::Delete { .. } => {}
            Request::Pause(reply) => {
                let done = self.pause().await;
                let _ = reply.send(done.map(|()| self.report()));
            }
            Request::Resume(reply) => {
                let done = self.resume().await;
                let _ = reply.send(done.map(|()| self.report()));
            }
            Request::Hibernate(reply) => {
                let done = self.hibernate().await;
                let _ = reply.send(done.map(|()| self.report()));
            }
            // Whoever needed it may have gone, or found room elsewhere.
            Request::SleepForOthers(reply) if reply.is_closed() => {}
            Request::SleepForOthers(reply) => {
                let _ = reply.send(self.sleep_for_others().await);
            }
            Request::GiveBack(reply) => {
                let _ = reply.send(self.give_back().await);
            }
            Request::Wake(reply) => {
                let done = self.wake().await;
                let _ = reply.send(done.map(|()| self.report()));
            }
            Request::Rollback { to, reply } => {
                let done = self.rollback(&to).await;
                let _ = reply.send(done.map(|()| self.report()));
            }
            Request::Capture { wish, reply } => {
                let captured = self.capture(&wish).await;
                let _ = reply.send(captured);
            }
            Request::ForkCapture { wish, reply } => {
                let captured = self.capture_for_fork(&wish).await;
                let _ = reply.send(captured);
            }
            Request::SetNetwork { wanted, reply } => {
                let _ = reply.send(self.set_network(wanted).await);
            }
            Request::Network(reply) => {
                let _ = reply.send(Ok(network_report(&self.parts, &self.record)));
            }
            Request::LookAgain => self.publish_now(),
            Request::SetLifecycle { change, reply } => {
                let _ = reply.send(self.set_lifecycle(change).await);
            }
        }
    }

    fn needs_agent(&self) -> bool {
        let may_answer = self.record.state() == SandboxState::Running && !self.room.is_waiting();
        self.agent.is_none() && self.vm.is_some() && may_answer
    }

    /// Ends everything of the sandbox. Goes on until it is done; every step may be repeated.
    async fn tear_down(&mut self, incoming: &mut mpsc::Receiver<Request>) {
        if let Err(error) = self.change(LifecycleEvent::Delete).await {
            tracing::warn!(sandbox_id = %self.record.id, %error, "deleting without a record of it");
        }
        self.leave_volumes().await;
        self.agent = None;
        // The record names the slot from the moment it was taken, also when the creation was cut
        // short, so nothing that was made can be missed here.
        while let Some(slot) = self.record.phase.slot() {
            if self.release_slot(slot).await {
                break;
            }
            self.pause_and_collect(incoming).await;
        }
        self.vm = None;
        // Behind the engine's end, before the record's: nobody writes, and nobody forgets.
        while !self.release_volumes().await {
            self.pause_and_collect(incoming).await;
        }
        self.abandon_capture().await;
        while let Err(error) = self.forget_record().await {
            tracing::error!(sandbox_id = %self.record.id, error = %crate::error_chain(&error), "cannot remove the record of a deleted sandbox; trying again");
            self.pause_and_collect(incoming).await;
        }
        self.promise = None;
        if let Err(error) = self.advance(LifecycleEvent::Gone) {
            tracing::error!(sandbox_id = %self.record.id, %error, "gone out of turn");
        }
        // Deletes that arrived in the meantime are answered with the first; other requests are
        // dropped, which tells their callers that the sandbox is gone.
        while let Ok(request) = incoming.try_recv() {
            if let Request::Delete { done } = request {
                self.delete_waiters.push(done);
            }
        }
    }

    async fn pause_and_collect(&mut self, incoming: &mut mpsc::Receiver<Request>) {
        tokio::select! {
            () = tokio::time::sleep(RETRY_PAUSE) => {}
            Some(request) = incoming.recv() => {
                if let Request::Delete { done } = request {
                    self.delete_waiters.push(done);
                }
            }
        }
    }

    pub(super) async fn release_slot(&mut self, slot: SlotIndex) -> bool {
        self.parts.egress.withdraw(slot).await;
        match self.parts.slots.release(slot).await {
            Ok(()) => {
                self.record.phase.give_slot_back();
                true
            }
            Err(error) => {
                let text = crate::error_chain(&error);
                tracing::error!(sandbox_id = %self.record.id, error = %text, "cannot release the slot");
                false
            }
        }
    }

    /// Moves to the next state: journal first, then everybody else.
    pub(super) async fn change(&mut self, event: LifecycleEvent) -> Result<(), NodeError> {
        let written = self.transition(event).await;
        self.publish_now();
        written
    }

    /// Moves to the next state here alone, for who writes it down a step later.
    pub(super) fn advance(&mut self, event: LifecycleEvent) -> Result<(), NodeError> {
        let advanced = self.record.advance(event);
        advanced.map_err(|error| NodeError::new(ErrorCode::WrongState, error.to_string()))
    }

    /// Moves to the next state in the journal alone.
    pub(super) async fn transition(&mut self, event: LifecycleEvent) -> Result<(), NodeError> {
        let before = (self.record.phase.clone(), self.record.generation);
        let holds_unwritten = event.holds_unwritten();
        self.advance(event)?;
        let written = self.write_record().await;
        // A state that the journal does not have could neither be left nor be found again.
        if written.is_err() && !holds_unwritten {
            (self.record.phase, self.record.generation) = before;
        }
        written
    }

    pub(super) fn report(&self) -> SandboxReport {
        let ended = self.ended();
        let condition = self.condition();
        report(&self.parts, &self.record, &self.stages, condition, ended)
    }

    pub(super) fn publish_now(&self) {
        let report = Arc::new(self.report());
        self.parts.announce(&report);
        self.publish.send_replace(Published {
            report,
            agent: self.agent.clone(),
            refusal: self.refusal.clone(),
            expires: self.record.expires,
            process: self.record.phase.process(),
            promise: self.promise.as_ref().map(Promise::number),
            captures: captures_of(&self.record),
            sleeps_for_others: self.sleeps_for_others,
            is_restless: self.record.is_restless,
        });
    }
}

/// The generation that a new sandbox starts from.
pub(crate) const FIRST_GENERATION: Generation = Generation(1);
