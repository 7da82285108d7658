//! The task that owns one sandbox.

use std::sync::Arc;
use std::time::Duration;

use dayfly_core::expiry;
use dayfly_core::lifecycle::{self, Event};
use dayfly_guest_client::AgentClient;
use dayfly_node_api::{NodeError, SandboxReport, Stage};
use dayfly_types::{ErrorCode, Generation, SandboxState, limits};
use dayfly_vmm::{SlotIndex, Vm};
use tokio::sync::{mpsc, oneshot, watch};

use super::create::{CreateError, Created, Supply, create};
use super::{Published, Request, SandboxHandle};
use crate::capacity::Promise;
use crate::guest::open_agent;
use crate::journal::SandboxRecord;
use crate::parts::Parts;
use crate::templates::ReadyTemplate;

/// How long to wait before a failed teardown or a failed agent connection is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The owner's own state. Nobody else writes any of it.
#[derive(Debug)]
pub(crate) struct Owner {
    parts: Arc<Parts>,
    record: SandboxRecord,
    vm: Option<Box<dyn Vm>>,
    agent: Option<AgentClient>,
    stages: Vec<Stage>,
    refusal: Option<NodeError>,
    /// Held for as long as the sandbox may use what it was promised.
    promise: Option<Promise>,
    publish: watch::Sender<Published>,
    delete_waiters: Vec<oneshot::Sender<()>>,
}

/// What the owner does next.
enum Next {
    Serve,
    TearDown,
}

/// How one attempt at a creation ended.
enum Attempt {
    Done(Result<Created, CreateError>),
    Deleted,
}

impl Owner {
    /// Makes an owner and the handle to it. Nothing runs yet.
    pub(crate) fn new(
        parts: Arc<Parts>,
        record: SandboxRecord,
        promise: Option<Promise>,
    ) -> (Self, SandboxHandle, mpsc::Receiver<Request>) {
        let (requests, incoming) = mpsc::channel(limits::SANDBOX_QUEUE_LENGTH_MAX);
        let first = Published {
            report: Arc::new(report(&parts, &record, &[])),
            agent: None,
            refusal: None,
            expires: record.expires,
        };
        let (publish, published) = watch::channel(first);
        let handle = SandboxHandle {
            id: record.id.clone(),
            requests,
            published,
        };
        let owner = Self {
            parts,
            record,
            vm: None,
            agent: None,
            stages: Vec::new(),
            refusal: None,
            promise,
            publish,
            delete_waiters: Vec::new(),
        };
        (owner, handle, incoming)
    }

    /// Creates the sandbox and then serves it until it is gone.
    pub(crate) async fn create_and_run(
        mut self,
        template: Arc<ReadyTemplate>,
        mut incoming: mpsc::Receiver<Request>,
    ) {
        let under_way = self.parts.pool.create_begins();
        let next = self.create_unless_deleted(&template, &mut incoming).await;
        under_way.linger();
        self.run(next, incoming).await;
    }

    /// Serves a sandbox that an earlier life of this program created.
    pub(crate) async fn adopt_and_run(
        mut self,
        vm: Option<Box<dyn Vm>>,
        incoming: mpsc::Receiver<Request>,
    ) {
        self.vm = vm;
        let next = if self.record.state == SandboxState::Deleting {
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
        self.tear_down(&mut incoming).await;
        self.parts.forget(&self.record.id);
        self.publish_now();
        for waiter in self.delete_waiters.drain(..) {
            // A caller that stopped waiting does not need the answer.
            let _ = waiter.send(());
        }
    }

    /// Runs the creation; a delete wins over it at any point.
    async fn create_unless_deleted(
        &mut self,
        template: &Arc<ReadyTemplate>,
        incoming: &mut mpsc::Receiver<Request>,
    ) -> Next {
        let mut outcome = self.attempt(Supply::Any, template, incoming).await;
        if let Attempt::Done(Err(CreateError::Restore(error))) = &outcome {
            // A parked engine may have died on the shelf; one started now has not.
            let text = crate::error_chain(error);
            tracing::warn!(sandbox_id = %self.record.id, error = %text, "restore failed, trying once more");
            if let Some(slot) = self.record.slot
                && self.release_slot(slot).await
            {
                outcome = self.attempt(Supply::FreshOnly, template, incoming).await;
            }
        }
        match outcome {
            Attempt::Done(Ok(created)) => self.created(created),
            Attempt::Done(Err(error)) => {
                let text = crate::error_chain(&error);
                tracing::warn!(sandbox_id = %self.record.id, error = %text, "cannot create");
                self.refusal = Some(refusal_of(&error));
                Next::TearDown
            }
            Attempt::Deleted => {
                let text = "deleted while it was being created";
                self.refusal = Some(NodeError::new(ErrorCode::WrongState, text));
                Next::TearDown
            }
        }
    }

    async fn attempt(
        &mut self,
        supply: Supply,
        template: &Arc<ReadyTemplate>,
        incoming: &mut mpsc::Receiver<Request>,
    ) -> Attempt {
        let parts = Arc::clone(&self.parts);
        let limit = limits::CREATE_DEADLINE;
        let clock = parts.clock.as_ref();
        let work = create(
            &parts.pool,
            &parts.journal,
            &mut self.record,
            template,
            clock,
            supply,
        );
        tokio::select! {
            done = tokio::time::timeout(limit, work) => {
                Attempt::Done(done.unwrap_or(Err(CreateError::TimedOut(limit))))
            }
            request = incoming.recv() => {
                if let Some(Request::Delete { done }) = request {
                    self.delete_waiters.push(done);
                }
                Attempt::Deleted
            }
        }
    }

    fn created(&mut self, created: Created) -> Next {
        self.vm = Some(created.vm);
        self.agent = Some(created.agent);
        self.record.ready_ms = Some(created.stages.total_ms());
        self.stages = created.stages.into_laps();
        match self.change(Event::Ready, None) {
            Ok(()) => Next::Serve,
            Err(error) => {
                self.refusal = Some(error);
                Next::TearDown
            }
        }
    }

    /// Waits for whatever ends the sandbox, and repairs what can be repaired meanwhile.
    async fn serve(&mut self, incoming: &mut mpsc::Receiver<Request>) {
        loop {
            let expires = self.record.expires;
            let clock = Arc::clone(&self.parts.clock);
            let expiry = async {
                match expires {
                    Some(moment) => clock.sleep_until(moment).await,
                    None => std::future::pending().await,
                }
            };
            let watched = self.agent.clone();
            tokio::select! {
                biased;
                request = incoming.recv() => {
                    if let Some(Request::Delete { done }) = request {
                        self.delete_waiters.push(done);
                    }
                    return;
                }
                () = expiry => {
                    tracing::info!(sandbox_id = %self.record.id, "expired");
                    return;
                }
                exit = wait_for_exit(&mut self.vm) => {
                    self.engine_died(&exit).await;
                }
                () = wait_for_loss(watched.as_ref()) => {
                    self.agent = None;
                    self.publish_now();
                }
                agent = connect_again(&self.parts, &self.record), if self.needs_agent() => {
                    self.agent = agent;
                    self.publish_now();
                }
            }
        }
    }

    fn needs_agent(&self) -> bool {
        self.agent.is_none() && self.record.state == SandboxState::Running
    }

    /// The guest is gone for good: give its resources back at once, keep the reason to show.
    async fn engine_died(&mut self, exit: &str) {
        self.vm = None;
        self.agent = None;
        let reason = format!("the engine ended: {exit}");
        tracing::warn!(sandbox_id = %self.record.id, reason, "failed");
        if let Some(slot) = self.record.slot {
            self.release_slot(slot).await;
        }
        self.promise = None;
        if let Err(error) = self.change(Event::Fault, Some(reason)) {
            tracing::error!(sandbox_id = %self.record.id, %error, "cannot record a failure");
        }
    }

    /// Ends everything of the sandbox. Goes on until it is done; every step may be repeated.
    async fn tear_down(&mut self, incoming: &mut mpsc::Receiver<Request>) {
        if let Err(error) = self.change(Event::Delete, None) {
            tracing::warn!(sandbox_id = %self.record.id, %error, "deleting without a record of it");
        }
        self.agent = None;
        // The record names the slot from the moment it was taken, also when the creation was cut
        // short, so nothing that was made can be missed here.
        while let Some(slot) = self.record.slot {
            if self.release_slot(slot).await {
                break;
            }
            self.pause_and_collect(incoming).await;
        }
        self.vm = None;
        while let Err(error) = self.parts.journal.remove(&self.record.id) {
            tracing::error!(sandbox_id = %self.record.id, error = %crate::error_chain(&error), "cannot forget");
            self.pause_and_collect(incoming).await;
        }
        self.promise = None;
        self.record.state = SandboxState::Deleted;
        self.record.generation = self.record.generation.next();
        // Deletes that arrived in the meantime are answered with the first.
        while let Ok(Request::Delete { done }) = incoming.try_recv() {
            self.delete_waiters.push(done);
        }
    }

    async fn pause_and_collect(&mut self, incoming: &mut mpsc::Receiver<Request>) {
        tokio::select! {
            () = tokio::time::sleep(RETRY_PAUSE) => {}
            Some(Request::Delete { done }) = incoming.recv() => self.delete_waiters.push(done),
        }
    }

    async fn release_slot(&mut self, slot: SlotIndex) -> bool {
        match self.parts.slots.release(slot).await {
            Ok(()) => {
                self.record.slot = None;
                self.record.process = None;
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
    fn change(&mut self, event: Event, reason: Option<String>) -> Result<(), NodeError> {
        let to = match lifecycle::next(self.record.state, event) {
            Ok(state) => state,
            // A repeated delete finds the sandbox where it should be.
            Err(_) if event == Event::Delete && self.record.state == SandboxState::Deleting => {
                return Ok(());
            }
            Err(error) => return Err(NodeError::new(ErrorCode::WrongState, error.to_string())),
        };
        self.record.state = to;
        self.record.generation = self.record.generation.next();
        if reason.is_some() {
            self.record.reason = reason;
        }
        let written = self.parts.journal.write(&self.record);
        self.publish_now();
        written.map_err(|error| {
            tracing::error!(sandbox_id = %self.record.id, error = %crate::error_chain(&error), "cannot write the journal");
            NodeError::internal("the node could not write its journal")
        })
    }

    fn publish_now(&self) {
        let report = Arc::new(report(&self.parts, &self.record, &self.stages));
        self.parts.announce(&report);
        self.publish.send_replace(Published {
            report,
            agent: self.agent.clone(),
            refusal: self.refusal.clone(),
            expires: self.record.expires,
        });
    }
}

fn refusal_of(error: &CreateError) -> NodeError {
    let message = format!("the sandbox could not be created: {error}");
    match error {
        CreateError::Engine(_) | CreateError::TimedOut(_) => {
            NodeError::new(ErrorCode::NoCapacity, message).retry_after(Duration::from_secs(1))
        }
        CreateError::Agent(_) | CreateError::Identity(_) | CreateError::Thaw(_) => {
            NodeError::new(ErrorCode::GuestUnavailable, message)
        }
        CreateError::Journal(_) | CreateError::Restore(_) | CreateError::Randomness => {
            NodeError::internal(message)
        }
    }
}

async fn wait_for_exit(vm: &mut Option<Box<dyn Vm>>) -> String {
    match vm {
        Some(vm) => format!("{:?}", vm.wait().await),
        None => std::future::pending().await,
    }
}

async fn wait_for_loss(agent: Option<&AgentClient>) {
    match agent {
        Some(agent) => {
            agent.closed().await;
        }
        None => std::future::pending().await,
    }
}

/// One attempt at a new conversation; an attempt that fails takes at least the pause.
async fn connect_again(parts: &Parts, record: &SandboxRecord) -> Option<AgentClient> {
    let slot = record.slot?;
    let run = match parts.slots.reopen(slot).await {
        Ok(slot) => slot.run_directory,
        Err(error) => {
            tracing::warn!(sandbox_id = %record.id, error = %crate::error_chain(&error), "no slot");
            tokio::time::sleep(RETRY_PAUSE).await;
            return None;
        }
    };
    match open_agent(&run, limits::AGENT_HANDSHAKE_DEADLINE).await {
        Ok(agent) => Some(agent),
        Err(error) => {
            let text = crate::error_chain(&error);
            tracing::debug!(sandbox_id = %record.id, error = %text, "the agent is away");
            tokio::time::sleep(RETRY_PAUSE).await;
            None
        }
    }
}

fn report(parts: &Parts, record: &SandboxRecord, stages: &[Stage]) -> SandboxReport {
    SandboxReport {
        id: record.id.clone(),
        project: record.project.clone(),
        template: record.template.clone(),
        state: record.state,
        generation: record.generation,
        reason: record.reason.clone(),
        memory: record.machine.memory,
        vcpus: record.machine.vcpus,
        ready_ms: record.ready_ms,
        stages: stages.to_vec(),
        expires_in_seconds: record
            .expires
            .map(|deadline| expiry::seconds_left(parts.clock.now(), deadline)),
    }
}

/// The generation that a new sandbox starts from.
pub(crate) const FIRST_GENERATION: Generation = Generation(1);
