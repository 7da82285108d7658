//! The protocol side of the fake guest: bytes in, bytes out.

use std::collections::{HashMap, VecDeque};
use std::io;

use dayfly_guest_proto::{
    Activity, Answer, Call, ChannelId, DataHeader, Event, Frame, FrameEncoder, GuestError,
    GuestErrorCode, GuestMessage, GuestPort, GuestState, MessageAssembler, MessageError, Nonce,
    Opening, Pairing, PortRole, ReceiveWindow, Received, Request, Response, SendWindow, StartExec,
    StreamKind,
};
use dayfly_types::ExecId;
use dayfly_types::file::{FileMode, OpenedFile};
use dayfly_types::limits::{AGENT_CALLS_MAX, FRAME_PAYLOAD_BYTES_MAX};
use tokio::time::Instant;

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
    /// Who waits for the end of an exec, and from which offsets it reads.
    readers: HashMap<ChannelId, Reader>,
    reads: HashMap<ChannelId, (SendWindow, Vec<u8>)>,
    writes: HashMap<ChannelId, (ReceiveWindow, String, Vec<u8>)>,
    /// Calls that wait for the thaw.
    postponed: VecDeque<Call>,
    quiesced_at: Option<Instant>,
}

type Outcome = Result<Response, GuestError>;

#[derive(Debug)]
struct Reader {
    exec: ExecId,
    /// `None` for a stream that it does not read.
    stdout: Option<u64>,
    stderr: Option<u64>,
}

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
            readers: HashMap::new(),
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
        self.tell_readers();
        Ok(())
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
        self.readers.clear();
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
            self.guest.lock().execs.allow_more_time(since.elapsed());
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
            Request::StartExec(start) => self.start_exec(&start),
            Request::Quiesce { .. } => {
                self.quiesced_at.get_or_insert_with(Instant::now);
                self.guest.lock().serve(request)
            }
            Request::Activity => Ok(Response::Activity(self.activity())),
            Request::AttachExec {
                channel,
                exec_id,
                stdout_offset,
                stderr_offset,
                ..
            } => {
                let described = self.guest.lock().execs.describe(&exec_id);
                if described.is_ok() {
                    let reader = Reader {
                        exec: exec_id,
                        stdout: stdout_offset,
                        stderr: stderr_offset,
                    };
                    self.readers.insert(channel, reader);
                }
                described
            }
            Request::CancelChannel { channel } => {
                self.readers.remove(&channel);
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
                    Response::FileOpened(OpenedFile {
                        size,
                        mode: FileMode::of(0o644),
                        mtime: 0,
                    })
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
        Activity {
            execs: state.execs.running(),
            busy_ms: state.busy_ms(),
        }
    }

    fn start_exec(&mut self, start: &StartExec) -> Outcome {
        if self.guest.state() != GuestState::Running {
            let text = "user code may not run yet";
            return Err(GuestError::new(GuestErrorCode::WrongState, text));
        }
        let pid = self.guest.lock().execs.start(&start.spec)?;
        let reader = Reader {
            exec: start.spec.exec_id.clone(),
            stdout: Some(0),
            stderr: Some(0),
        };
        self.readers.insert(start.channel, reader);
        Ok(Response::ExecStarted { pid })
    }

    /// Sends the output and the end of every exec that is over to those who read it.
    fn tell_readers(&mut self) {
        let is_over = |reader: &Reader| {
            let state = self.guest.lock();
            let exec = state.execs.find(&reader.exec);
            exec.map_or(true, |exec| exec.exit.is_some())
        };
        let over: Vec<ChannelId> = self
            .readers
            .iter()
            .filter(|(_, reader)| is_over(reader))
            .map(|(channel, _)| *channel)
            .collect();
        for channel in over {
            if let Some(reader) = self.readers.remove(&channel) {
                self.end_reader(channel, &reader);
            }
        }
    }

    fn end_reader(&mut self, channel: ChannelId, reader: &Reader) {
        let found = self.guest.lock().execs.find(&reader.exec).cloned();
        let Ok(exec) = found else { return };
        let Some(exit) = exec.exit else { return };
        let encoder = self.encoder();
        let streams = [
            (StreamKind::Stdout, reader.stdout, &exec.stdout),
            (StreamKind::Stderr, reader.stderr, &exec.stderr),
        ];
        for (stream, offset, bytes) in streams {
            let Some(offset) = offset else { continue };
            let header = DataHeader {
                channel,
                stream,
                offset,
                is_end: true,
            };
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let rest = bytes.get(from..).unwrap_or_default();
            encoder.data(header, rest, &mut self.bulk);
        }
        self.send(&GuestMessage::Event(Event::ExecExited {
            channel,
            exit,
            duration_ms: 1,
        }));
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let state = self.guest.lock();
        let is_running = state.life == GuestState::Running;
        // The lease may have ended under somebody else's eyes.
        let overdue = (is_running && !self.postponed.is_empty()).then(Instant::now);
        let execs = state.execs.deadline().filter(|_| is_running);
        execs
            .into_iter()
            .chain(state.lease_end)
            .chain(overdue)
            .min()
    }

    pub(super) fn expire(&mut self) {
        self.resume();
        if self.guest.state() != GuestState::Running {
            return;
        }
        self.guest.lock().execs.expire(Instant::now());
        self.tell_readers();
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
