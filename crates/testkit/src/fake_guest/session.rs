//! The protocol side of the fake guest: bytes in, bytes out.

use std::collections::{HashMap, VecDeque};
use std::io;

use dayfly_guest_proto::{
    Activity, Answer, Call, ChannelId, DataHeader, Event, ExecCommand, ExecExit, ExitReason, Frame,
    FrameEncoder, GuestError, GuestErrorCode, GuestMessage, GuestPort, GuestState,
    MessageAssembler, MessageError, Nonce, Opening, Pairing, PortRole, ReceiveWindow, Received,
    Request, Response, SendWindow, StartExec, StreamKind,
};
use dayfly_types::limits::{AGENT_CALLS_MAX, FRAME_PAYLOAD_BYTES_MAX};
use tokio::time::{Duration, Instant};

use super::{FakeGuest, GuestFault};

/// One conversation after the other on one pair of sockets.
#[derive(Debug)]
pub(super) struct Session {
    guest: FakeGuest,
    ports: [GuestPort; 2],
    pairing: Pairing,
    assembler: MessageAssembler,
    /// What waits to be written to each port.
    pub(super) control: Vec<u8>,
    pub(super) bulk: Vec<u8>,
    hanging: HashMap<ChannelId, Option<Instant>>,
    reads: HashMap<ChannelId, (SendWindow, Vec<u8>)>,
    writes: HashMap<ChannelId, (ReceiveWindow, String, Vec<u8>)>,
    /// Calls that wait for the thaw.
    postponed: VecDeque<Call>,
    quiesced_at: Option<Instant>,
}

type Outcome = Result<Response, GuestError>;

impl Session {
    pub(super) fn new(guest: FakeGuest) -> Self {
        Self {
            guest,
            ports: [
                GuestPort::new(PortRole::Control),
                GuestPort::new(PortRole::Bulk),
            ],
            pairing: Pairing::default(),
            assembler: MessageAssembler::default(),
            control: Vec::new(),
            bulk: Vec::new(),
            hanging: HashMap::new(),
            reads: HashMap::new(),
            writes: HashMap::new(),
            postponed: VecDeque::new(),
            quiesced_at: None,
        }
    }

    fn encoder(&self) -> FrameEncoder {
        let nonce = self.pairing.agreed().unwrap_or(Nonce([0; 16]));
        FrameEncoder::new(nonce.session_tag())
    }

    fn port(&mut self, role: PortRole) -> &mut GuestPort {
        let [control, bulk] = &mut self.ports;
        if role == PortRole::Control {
            control
        } else {
            bulk
        }
    }

    pub(super) fn receive(&mut self, role: PortRole, bytes: &[u8]) -> io::Result<()> {
        self.port(role).push(bytes);
        while let Some(received) = self.port(role).next() {
            match received {
                Received::Opened(opening) => self.open(opening),
                Received::Lost(_) => self.pairing.lost(role),
                Received::Frame(frame) => self.take(frame)?,
            }
        }
        self.note_execs();
        Ok(())
    }

    /// Lets a copy of the guest know what ran when it was made.
    fn note_execs(&self) {
        let count = u32::try_from(self.hanging.len()).unwrap_or(u32::MAX);
        self.guest.lock().attached_execs = count;
    }

    fn open(&mut self, opening: Opening) {
        self.end_conversation();
        self.pairing.opened(opening.port, opening.nonce);
        let is_control = opening.port == PortRole::Control;
        let out = if is_control {
            &mut self.control
        } else {
            &mut self.bulk
        };
        out.extend_from_slice(&opening.answer().encode());
        self.guest.lock().note_opening();
    }

    pub(super) fn end_conversation(&mut self) {
        self.note_execs();
        self.guest.lock().end_execs();
        self.hanging.clear();
        self.reads.clear();
        self.writes.clear();
        self.postponed.clear();
    }

    fn take(&mut self, frame: Frame) -> io::Result<()> {
        match frame {
            Frame::Control { is_last, bytes } => {
                let message = self
                    .assembler
                    .push(is_last, bytes)
                    .map_err(io::Error::other)?;
                let Some(message) = message else {
                    return Ok(());
                };
                let fault = self.guest.lock().fault;
                match fault {
                    GuestFault::None => self.serve_message(&message),
                    GuestFault::Garbage => self.control.extend_from_slice(b"garbage"),
                    GuestFault::Silence => {}
                    GuestFault::Death => return Err(io::ErrorKind::BrokenPipe.into()),
                }
            }
            Frame::Data { header, bytes } => self.take_data(header, &bytes),
            Frame::Credit { channel, bytes, .. } => {
                if let Some((window, _)) = self.reads.get_mut(&channel) {
                    let _ = window.grant(bytes);
                    self.pump_read(channel);
                }
            }
        }
        Ok(())
    }

    fn serve_message(&mut self, message: &[u8]) {
        match Call::parse(message) {
            Ok(call) => self.take_call(call),
            Err(MessageError::Refused { call, error }) => self.answer(call, Err(error)),
            Err(_) => {}
        }
    }

    fn take_call(&mut self, call: Call) {
        let is_quiesced = self.guest.state() == GuestState::Quiesced;
        if !is_quiesced || call.request.is_served_while_quiesced() {
            self.serve_call(call);
            self.resume();
        } else if self.postponed.len() < AGENT_CALLS_MAX {
            self.postponed.push_back(call);
        } else {
            let error = GuestError::new(GuestErrorCode::TooMany, "too many calls wait");
            self.answer(call.call, Err(error));
        }
    }

    fn serve_call(&mut self, call: Call) {
        if let Some(channel) = self.serve(call.call, call.request) {
            self.pump_read(channel);
        }
    }

    /// In a guest that runs again: gives execs the time of the pause, and serves what waited.
    fn resume(&mut self) {
        if self.guest.state() != GuestState::Running {
            return;
        }
        if let Some(since) = self.quiesced_at.take() {
            for deadline in self.hanging.values_mut().flatten() {
                *deadline += since.elapsed();
            }
        }
        while let Some(call) = self.postponed.pop_front() {
            self.serve_call(call);
        }
    }

    fn send(&mut self, message: &GuestMessage) {
        let bytes = serde_json::to_vec(message).unwrap_or_default();
        self.encoder().control(&bytes, &mut self.control);
    }

    fn answer(&mut self, call: u64, outcome: Outcome) {
        self.send(&GuestMessage::Answer(Answer {
            call,
            result: outcome.into(),
        }));
    }

    /// Serves a call; gives a channel whose file is to be sent after the answer.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what needs no channel is served elsewhere"
    )]
    fn serve(&mut self, call: u64, request: Request) -> Option<ChannelId> {
        let mut opened = None;
        let outcome = match request {
            Request::StartExec(spec) => return self.start_exec(call, &spec),
            Request::Quiesce { .. } => {
                self.quiesced_at.get_or_insert_with(Instant::now);
                self.guest.lock().serve(request)
            }
            Request::Activity => Ok(Response::Activity(self.activity())),
            Request::SignalExec { channel, signal } => {
                self.end_hanging(channel, signal, ExitReason::Signaled);
                Ok(Response::Done)
            }
            Request::CancelChannel { channel } => {
                self.hanging.remove(&channel);
                self.reads.remove(&channel);
                self.writes.remove(&channel);
                Ok(Response::Done)
            }
            Request::OpenRead {
                channel,
                path,
                offset,
                limit,
                ..
            } => {
                let read = self.guest.lock().read(&path, offset, limit);
                read.map(|(size, bytes)| {
                    self.reads.insert(channel, (SendWindow::default(), bytes));
                    opened = Some(channel);
                    Response::FileOpened {
                        size,
                        mode: "0644".to_owned(),
                        mtime: 0,
                    }
                })
            }
            Request::OpenWrite { channel, path, .. } => {
                self.writes
                    .insert(channel, (ReceiveWindow::default(), path, Vec::new()));
                Ok(Response::Done)
            }
            other => self.guest.lock().serve(other),
        };
        self.answer(call, outcome);
        opened
    }

    fn activity(&self) -> Activity {
        let state = self.guest.lock();
        let attached = u32::try_from(self.hanging.len()).unwrap_or(u32::MAX);
        Activity {
            execs: attached.saturating_add(state.detached_execs),
            busy_ms: state.busy_ms(),
        }
    }

    fn start_exec(&mut self, call: u64, spec: &StartExec) -> Option<ChannelId> {
        if self.guest.state() != GuestState::Running {
            let error = GuestError::new(GuestErrorCode::WrongState, "user code may not run yet");
            self.answer(call, Err(error));
            return None;
        }
        self.answer(
            call,
            Ok(Response::ExecStarted {
                pid: 100 + spec.channel.0,
            }),
        );
        let line = match &spec.command {
            ExecCommand::Argv(words) => words.join(" "),
            ExecCommand::Shell(line) => line.clone(),
        };
        let (program, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let (stdout, stderr, code) = match program {
            "true" => (String::new(), String::new(), 0),
            "exit" => (String::new(), String::new(), rest.parse().unwrap_or(2)),
            "echo" => (format!("{rest}\n"), String::new(), 0),
            "hang" => {
                let timeout = spec.timeout_ms.map(Duration::from_millis);
                self.hanging.insert(
                    spec.channel,
                    timeout.map(|timeout| Instant::now() + timeout),
                );
                return None;
            }
            _ => (
                String::new(),
                format!("{program}: command not found\n"),
                127,
            ),
        };
        let exit = ExecExit {
            code,
            signal: None,
            reason: ExitReason::Exited,
        };
        self.end_exec(spec.channel, stdout.as_bytes(), stderr.as_bytes(), exit);
        None
    }

    fn end_exec(&mut self, channel: ChannelId, stdout: &[u8], stderr: &[u8], exit: ExecExit) {
        let encoder = self.encoder();
        for (stream, bytes) in [(StreamKind::Stdout, stdout), (StreamKind::Stderr, stderr)] {
            let header = DataHeader {
                channel,
                stream,
                offset: 0,
                is_end: true,
            };
            encoder.data(header, bytes, &mut self.bulk);
        }
        self.send(&GuestMessage::Event(Event::ExecExited {
            channel,
            exit,
            duration_ms: 1,
        }));
    }

    fn end_hanging(&mut self, channel: ChannelId, signal: i32, reason: ExitReason) {
        if self.hanging.remove(&channel).is_some() {
            let exit = ExecExit {
                code: 128 + signal,
                signal: Some(signal),
                reason,
            };
            self.end_exec(channel, &[], &[], exit);
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let state = self.guest.lock();
        let is_running = state.life == GuestState::Running;
        // The lease may have ended under somebody else's eyes.
        let overdue = (is_running && !self.postponed.is_empty()).then(Instant::now);
        let execs = self.hanging.values().flatten().filter(|_| is_running);
        execs.copied().chain(state.lease_end).chain(overdue).min()
    }

    pub(super) fn expire(&mut self) {
        self.resume();
        if self.guest.state() != GuestState::Running {
            return;
        }
        let now = Instant::now();
        let is_due = |deadline: &Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        let due: Vec<_> = self
            .hanging
            .iter()
            .filter(|(_, deadline)| is_due(deadline))
            .map(|(id, _)| *id)
            .collect();
        for channel in due {
            self.end_hanging(channel, 9, ExitReason::TimedOut);
        }
        self.note_execs();
    }

    fn take_data(&mut self, header: DataHeader, bytes: &[u8]) {
        let (channel, encoder) = (header.channel, self.encoder());
        let Some((window, _, content)) = self.writes.get_mut(&channel) else {
            return;
        };
        if window
            .accept(header.offset, bytes.len(), header.is_end)
            .is_err()
        {
            return;
        }
        content.extend_from_slice(bytes);
        if let Some(credit) = window.take(bytes.len()) {
            encoder.credit(channel, StreamKind::File, credit, &mut self.bulk);
        }
        if header.is_end
            && let Some((_, path, content)) = self.writes.remove(&channel)
        {
            let bytes = content.len() as u64;
            self.guest.lock().files.insert(path, content);
            self.send(&GuestMessage::Event(Event::WriteDone { channel, bytes }));
        }
    }

    fn pump_read(&mut self, channel: ChannelId) {
        let encoder = self.encoder();
        let Some((window, rest)) = self.reads.get_mut(&channel) else {
            return;
        };
        while !window.has_ended() {
            let count = rest.len().min(window.credit()).min(FRAME_PAYLOAD_BYTES_MAX);
            let is_end = count == rest.len();
            if count == 0 && !is_end {
                return;
            }
            let Ok(offset) = window.send(count, is_end) else {
                return;
            };
            let header = DataHeader {
                channel,
                stream: StreamKind::File,
                offset,
                is_end,
            };
            let bytes: Vec<u8> = rest.drain(..count).collect();
            encoder.data(header, &bytes, &mut self.bulk);
        }
        self.reads.remove(&channel);
    }
}
