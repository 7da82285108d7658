//! The agent: one thread, one loop, one owner of everything.
//!
//! ```text
//! wait -> reap children, expire deadlines -> read ports -> move bytes -> write ports -> wait
//! ```
//! Nothing in the loop blocks, with exceptions that are the purpose of their call and happen while
//! no user code runs: freezing user processes and syncing file systems in a quiesce, and the hooks
//! of an identity. Only the log of an exec that says more than the disk can take may hold it up for
//! moments, as it would hold up the process if that wrote to the disk itself.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use dayfly_guest_proto::frame::FRAME_BYTES_MAX;
use dayfly_guest_proto::{
    FrameEncoder, GuestMessage, MessageAssembler, Pairing, PortRole, Response,
};
use rustix::process::{WaitOptions, wait};

use crate::background::Background;
use crate::clock::monotonic_ms;
use crate::exec::Execs;
use crate::files::{Outlets, Worker};
use crate::life::Life;
use crate::machine::Machine;
use crate::poller::Poller;
use crate::port::Port;
use crate::port_waits::PortWaits;
use crate::ports;
use crate::postponed::Postponed;
use crate::socket::Sockets;
use crate::sys::ChildSignals;
use crate::volumes::Volumes;

/// What the agent moves at once. Longer than any frame, because a process writes more than one.
const SCRATCH_BYTES: usize = 128 << 10;
const _: () = assert!(SCRATCH_BYTES >= FRAME_BYTES_MAX);

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
    pub(crate) execs: Execs,
    pub(crate) workers: Vec<Worker>,
    pub(crate) sockets: Sockets,
    pub(crate) background: Background,
    pub(crate) port_waits: PortWaits,
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
            execs: Execs::new(&machine),
            machine,
            life: Life::default(),
            generation: 0,
            workers: Vec::new(),
            sockets: Sockets::default(),
            background: Background::default(),
            port_waits: PortWaits::default(),
            postponed: Postponed::default(),
            volumes: Volumes::default(),
            has_hung_up: false,
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
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
        // Nobody is left who could.
        self.execs.kill_all();
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
            sockets,
            background,
            ..
        } = self;
        poller.wait(timeout_ms, |number| {
            has_children |= number == signals;
            control.wake(number);
            bulk.wake(number);
            execs.wake(number);
            workers.iter_mut().for_each(|worker| worker.wake(number));
            sockets.wake(number);
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
            self.execs.note_end(pid, status);
        }
        self.execs.remove_empty_groups();
        self.background.remove_empty_groups();
    }

    fn timeout_ms(&self) -> Option<u64> {
        let execs = self.execs.deadline_ms();
        let of_processes = execs.into_iter().chain(self.port_waits.deadline_ms());
        let of_processes = of_processes.filter(|_| self.life.is_running());
        let workers = self.workers.iter().filter_map(Worker::deadline_ms);
        let ports = [&self.control, &self.bulk]
            .into_iter()
            .filter_map(Port::deadline_ms);
        of_processes
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
            self.execs.expire(now_ms);
            for due in self.port_waits.look(now_ms, ports::look) {
                let ports = due.found.into_iter().collect();
                self.answer(due.call, Ok(Response::Ports { ports }));
            }
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

    /// Moves bytes of every exec, file and socket; buries those that are over.
    fn pump(&mut self) -> bool {
        let encoder = self.encoder();
        let Self {
            control,
            bulk,
            execs,
            workers,
            sockets,
            background,
            scratch,
            ..
        } = self;
        let (control, bulk) = (control.output(), bulk.output());
        let mut outlets = encoder.map(|encoder| Outlets {
            encoder,
            control,
            bulk,
        });
        let mut is_busy = background.discard(scratch);
        // Execs go on without a host: what they say goes to their logs.
        is_busy |= execs.pump(outlets.as_mut(), scratch);
        if let Some(outlets) = &mut outlets {
            for worker in workers.iter_mut() {
                is_busy |= worker.pump(outlets, scratch);
            }
            is_busy |= sockets.pump(outlets, scratch);
        }
        workers.retain(|worker| !worker.is_over());
        for remains in execs.bury() {
            background.adopt(remains);
        }
        is_busy
    }
}
