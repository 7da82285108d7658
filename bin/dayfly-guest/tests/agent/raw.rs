//! A host that says what no client would.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use crate::support::{DEADLINE, Guest};
use dayfly_guest_proto::{
    Answer, Call, ChannelId, DataHeader, Event, Frame, FrameEncoder, GuestError, GuestMessage,
    HostPort, MessageAssembler, Nonce, Opening, PortRole, Request, Response, StreamKind,
};

/// One conversation, frame by frame. It gives credit back only when told.
pub(crate) struct RawHost {
    control: (UnixStream, HostPort),
    bulk: (UnixStream, HostPort),
    assembler: MessageAssembler,
    pub(crate) encoder: FrameEncoder,
    calls: u64,
    answers: Vec<Answer>,
    pub(crate) events: Vec<Event>,
    pub(crate) data: Vec<(DataHeader, Vec<u8>)>,
}

impl RawHost {
    pub(crate) fn open(guest: &Guest, seed: u8) -> Self {
        let nonce = Nonce([seed; 16]);
        let port = |role, stream: &UnixStream| {
            let mut stream = stream.try_clone().unwrap();
            let opening = Opening::new(nonce, role).encode();
            stream.write_all(&opening).unwrap();
            (stream, HostPort::new(role))
        };
        let mut host = Self {
            control: port(PortRole::Control, &guest.control),
            bulk: port(PortRole::Bulk, &guest.bulk),
            assembler: MessageAssembler::default(),
            encoder: FrameEncoder::new(nonce.session_tag()),
            calls: 0,
            answers: Vec::new(),
            events: Vec::new(),
            data: Vec::new(),
        };
        for (stream, port) in [&mut host.control, &mut host.bulk] {
            let end = Instant::now() + DEADLINE;
            while port.next_ack(nonce).unwrap().is_none() {
                assert!(Instant::now() < end, "no answer to the opening");
                read(stream, port);
            }
            port.converse(nonce);
        }
        host
    }

    pub(crate) fn call(&mut self, request: Request) -> Result<Response, GuestError> {
        self.calls += 1;
        let call = self.calls;
        let bytes = serde_json::to_vec(&Call { call, request }).unwrap();
        let mut out = Vec::new();
        self.encoder.control(&bytes, &mut out);
        write(&mut self.control.0, &out);
        self.until(|host| host.answers.iter().any(|answer| answer.call == call));
        let index = self.answers.iter().position(|answer| answer.call == call);
        self.answers.remove(index.unwrap()).result.into()
    }

    pub(crate) fn send(&mut self, channel: u32, stream: StreamKind, offset: u64, bytes: &[u8]) {
        let header = DataHeader {
            channel: ChannelId(channel),
            stream,
            offset,
            is_end: false,
        };
        let mut out = Vec::new();
        self.encoder.data(header, bytes, &mut out);
        write(&mut self.bulk.0, &out);
    }

    pub(crate) fn credit(&mut self, channel: u32, stream: StreamKind, bytes: u32) {
        let mut out = Vec::new();
        self.encoder
            .credit(ChannelId(channel), stream, bytes, &mut out);
        write(&mut self.bulk.0, &out);
    }

    /// Reads until a condition holds.
    pub(crate) fn until(&mut self, mut is_so: impl FnMut(&Self) -> bool) {
        let end = Instant::now() + DEADLINE;
        while !is_so(self) {
            assert!(Instant::now() < end, "within the deadline");
            self.step();
        }
    }

    fn step(&mut self) {
        read(&mut self.control.0, &mut self.control.1);
        read(&mut self.bulk.0, &mut self.bulk.1);
        while let Some(frame) = self.control.1.next_frame().unwrap() {
            let Frame::Control { is_last, bytes } = frame else {
                panic!("{frame:?} on the control port");
            };
            if let Some(message) = self.assembler.push(is_last, bytes).unwrap() {
                match GuestMessage::parse(&message).unwrap() {
                    GuestMessage::Answer(answer) => self.answers.push(answer),
                    GuestMessage::Event(event) => self.events.push(event),
                }
            }
        }
        while let Some(frame) = self.bulk.1.next_frame().unwrap() {
            match frame {
                Frame::Data { header, bytes } => self.data.push((header, bytes)),
                Frame::Credit { .. } => {}
                Frame::Control { .. } => panic!("{frame:?} on the bulk port"),
            }
        }
    }
}

fn read(stream: &mut UnixStream, port: &mut HostPort) {
    let mut buffer = vec![0; 65_536];
    match stream.read(&mut buffer) {
        Ok(count) => port.push(&buffer[..count]),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::yield_now(),
        Err(error) => panic!("{error}"),
    }
}

fn write(stream: &mut UnixStream, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}
