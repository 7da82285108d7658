//! The agent: one thread, one loop, one owner of everything.
//!
//! ```text
//! wait -> reap children, expire deadlines -> read ports -> move bytes -> write ports -> wait
//! ```
//! Nothing in the loop blocks, with exceptions that are the purpose of their call and happen while
//! no user code runs: freezing user processes and syncing file systems in a quiesce, and the hooks
//! of an identity.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use dayfly_guest_proto::frame::FRAME_BYTES_MAX;
use dayfly_guest_proto::{Event, FrameEncoder, GuestMessage, MessageAssembler, Pairing, PortRole};
use rustix::process::{WaitOptions, wait};

use crate::background::Background;
use crate::clock::monotonic_ms;
use crate::exec::Exec;
use crate::files::{Outlets, Worker};
use crate::life::Life;
use crate::machine::Machine;
use crate::pause::Postponed;
use crate::poller::Poller;
use crate::port::Port;
use crate::sys::ChildSignals;
use crate::volumes::Volumes;

/// What to do when no host is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnHangUp {
    /// A guest waits for the next host.
    Wait,
    /// A test process has nothing left to do.
    Return,
}

#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) poller: Poller,
    signals: ChildSignals,
    pub(crate) control: Port,
    pub(crate) bulk: Port,
    pub(crate) pairing: Pairing,
    pub(crate) assembler: MessageAssembler,
    pub(crate) machine: Machine,
    pub(crate) life: Life,
    pub(crate) generation: u16,
    pub(crate) execs: Vec<Exec>,
    pub(crate) execs_started: u64,
    pub(crate) workers: Vec<Worker>,
    pub(crate) background: Background,
    pub(crate) postponed: Postponed,
    pub(crate) volumes: Volumes,
    pub(crate) has_hung_up: bool,
    pub(crate) scratch: Box<[u8]>,
}

impl Agent {
    pub(crate) fn new(control: OwnedFd, bulk: OwnedFd, machine: Machine) -> io::Result<Self> {
        let poller = Poller::open()?;
        let signals = ChildSignals::open()?;
        poller.watch_borrowed(signals.as_fd())?;
        Ok(Self {
            control: Port::new(PortRole::Control, control, &poller)?,
            bulk: Port::new(PortRole::Bulk, bulk, &poller)?,
            poller,
            signals,
            pairing: Pairing::default(),
            assembler: MessageAssembler::default(),
            machine,
            life: Life::default(),
            generation: 0,
            execs: Vec::new(),
            execs_started: 0,
            workers: Vec::new(),
            background: Background::default(),
            postponed: Postponed::default(),
            volumes: Volumes::default(),
            has_hung_up: false,
            scratch: vec![0; FRAME_BYTES_MAX].into_boxed_slice(),
        })
    }

    /// Serves conversations, one after the other.
    pub(crate) fn run(&mut self, on_hang_up: OnHangUp) -> io::Result<()> {
        let mut is_busy = true;
        while !(self.has_hung_up && on_hang_up == OnHangUp::Return) {
            let timeout_ms = if is_busy { Some(0) } else { self.timeout_ms() };
            self.wait(timeout_ms)?;
            self.expire();
            // Control first: a stop must not wait behind a stream.
            is_busy = self.read_port(PortRole::Control) | self.read_port(PortRole::Bulk);
            is_busy |= self.pump();
            is_busy |= self.control.flush() | self.bulk.flush();
        }
        self.lose_conversation();
        Ok(())
    }

    /// How frames of the present conversation are written, if there is one.
    pub(crate) fn encoder(&self) -> Option<FrameEncoder> {
        self.pairing
            .agreed()
            .map(|nonce| FrameEncoder::new(nonce.session_tag()))
    }

    pub(crate) fn send(&mut self, message: &GuestMessage) {
        let Some(encoder) = self.encoder() else {
            return;
        };
        let (control, bulk) = (self.control.output(), self.bulk.output());
        Outlets {
            encoder,
            control,
            bulk,
        }
        .send(message);
    }

    fn wait(&mut self, timeout_ms: Option<u64>) -> io::Result<()> {
        let signals = self.signals.as_fd().as_raw_fd();
        let mut has_children = false;
        let Self {
            poller,
            control,
            bulk,
            execs,
            workers,
            background,
            ..
        } = self;
        poller.wait(timeout_ms, |number| {
            has_children |= number == signals;
            control.wake(number);
            bulk.wake(number);
            execs.iter_mut().for_each(|exec| exec.wake(number));
            workers.iter_mut().for_each(|worker| worker.wake(number));
            background.wake(number);
        })?;
        if has_children {
            self.reap();
        }
        Ok(())
    }

    /// Collects every child that ended, orphans of user processes included.
    fn reap(&mut self) {
        self.signals.clear();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if let Some(exec) = self.execs.iter_mut().find(|exec| exec.pid == pid) {
                exec.note_end(status);
            }
        }
        self.background.remove_empty_groups();
    }

    fn timeout_ms(&self) -> Option<u64> {
        let is_running = self.life.is_running();
        let execs = self.execs.iter().filter(|_| is_running);
        let execs = execs.filter_map(Exec::deadline_ms);
        let workers = self.workers.iter().filter_map(Worker::deadline_ms);
        let ports = [&self.control, &self.bulk]
            .into_iter()
            .filter_map(Port::deadline_ms);
        execs
            .chain(workers)
            .chain(ports)
            .chain(self.life.lease_end_ms())
            .min()
            .map(|deadline| deadline.saturating_sub(monotonic_ms()))
    }

    fn expire(&mut self) {
        let now_ms = monotonic_ms();
        self.expire_lease(now_ms);
        // Time stands still for whoever is frozen.
        if self.life.is_running() {
            self.execs.iter_mut().for_each(|exec| exec.expire(now_ms));
        }
        self.workers
            .iter_mut()
            .for_each(|worker| worker.expire(now_ms));
        for role in [PortRole::Control, PortRole::Bulk] {
            if self.port(role).expire(now_ms) {
                self.lose_port(role);
            }
        }
    }

    /// Moves bytes of every exec and file; buries those that are over.
    fn pump(&mut self) -> bool {
        let mut is_busy = self.background.discard(&mut self.scratch);
        if let Some(encoder) = self.encoder() {
            let Self {
                control,
                bulk,
                execs,
                workers,
                scratch,
                ..
            } = self;
            let (control, bulk) = (control.output(), bulk.output());
            let mut outlets = Outlets {
                encoder,
                control,
                bulk,
            };
            for exec in execs {
                is_busy |= exec.pump(encoder, outlets.bulk, scratch);
            }
            for worker in workers {
                is_busy |= worker.pump(&mut outlets, scratch);
            }
        }
        self.workers.retain(|worker| !worker.is_over());
        while let Some(index) = self.execs.iter().position(Exec::is_over) {
            let (event, remains) = self.execs.swap_remove(index).finish();
            self.background.adopt(remains);
            self.tell(event);
            is_busy = true;
        }
        is_busy
    }

    fn tell(&mut self, event: Option<Event>) {
        if let Some(event) = event {
            self.send(&GuestMessage::Event(event));
        }
    }
}
