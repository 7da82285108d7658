//! How conversations begin, what their frames mean, and how they end.

use dayfly_guest_proto::{
    Call, ChannelId, DataHeader, Frame, MessageAssembler, MessageError, Opening, PortRole,
    Received, StreamKind, WindowError,
};

use crate::agent::Agent;
use crate::files::Worker;
use crate::port::{Intake, Port};

impl Agent {
    pub(crate) fn port(&mut self, role: PortRole) -> &mut Port {
        match role {
            PortRole::Control => &mut self.control,
            PortRole::Bulk => &mut self.bulk,
        }
    }

    pub(crate) fn read_port(&mut self, role: PortRole) -> bool {
        // A host that calls and does not read answers is not read either.
        if role == PortRole::Control && !self.control.has_room() {
            return false;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let intake = self.port(role).read(&mut scratch);
        self.scratch = scratch;
        while let Some(received) = self.port(role).parser.next() {
            self.receive(role, received);
        }
        self.has_hung_up |= intake == Intake::HangUp;
        intake == Intake::Some
    }

    fn receive(&mut self, role: PortRole, received: Received) {
        match received {
            Received::Opened(opening) => self.open(opening),
            Received::Lost(_) => self.lose_port(role),
            Received::Frame(frame) if self.pairing.agreed().is_some() => {
                if !self.take_frame(role, frame) {
                    self.lose_conversation();
                }
            }
            // One port is ahead of the other: nothing of it counts yet.
            Received::Frame(_) => {}
        }
    }

    fn open(&mut self, opening: Opening) {
        if self.pairing.agreed().is_some() {
            self.end_conversation();
        }
        let ack = opening.answer();
        self.pairing.opened(opening.port, opening.nonce);
        let port = self.port(opening.port);
        port.discard_output();
        port.output().extend_from_slice(&ack.encode());
        self.generation = ack.generation;
        self.life.note_opening();
        if opening.port == PortRole::Control {
            self.assembler = MessageAssembler::default();
        }
    }

    /// Gives whether the frame obeys the protocol.
    fn take_frame(&mut self, role: PortRole, frame: Frame) -> bool {
        match (role, frame) {
            (PortRole::Control, Frame::Control { is_last, bytes }) => {
                match self.assembler.push(is_last, bytes) {
                    Ok(Some(message)) => self.take_message(&message),
                    Ok(None) => true,
                    Err(_) => false,
                }
            }
            (PortRole::Bulk, Frame::Data { header, bytes }) => {
                self.take_data(header, bytes).is_ok()
            }
            (
                PortRole::Bulk,
                Frame::Credit {
                    channel,
                    stream,
                    bytes,
                },
            ) => self.take_credit(channel, stream, bytes).is_ok(),
            (PortRole::Control, Frame::Data { .. } | Frame::Credit { .. })
            | (PortRole::Bulk, Frame::Control { .. }) => false,
        }
    }

    fn take_message(&mut self, message: &[u8]) -> bool {
        match Call::parse(message) {
            Ok(call) => self.take_call(call, message.len()),
            Err(MessageError::Refused { call, error }) => self.answer(call, Err(error)),
            Err(_) => return false,
        }
        true
    }

    /// Bytes for a channel that is no longer there are late, not wrong.
    fn take_data(&mut self, header: DataHeader, bytes: Vec<u8>) -> Result<(), WindowError> {
        if header.stream == StreamKind::Stdin {
            let for_exec = self.sockets.accept(header, bytes)?;
            return for_exec.map_or(Ok(()), |bytes| self.execs.accept_input(header, bytes));
        }
        let channel = Some(header.channel);
        let worker = self
            .workers
            .iter_mut()
            .find(|worker| worker.channel() == channel);
        worker.map_or(Ok(()), |worker| worker.accept(header, &bytes))
    }

    fn take_credit(
        &mut self,
        channel: ChannelId,
        stream: StreamKind,
        bytes: u32,
    ) -> Result<(), WindowError> {
        match stream {
            StreamKind::Stdout if self.sockets.has_channel(channel) => {
                self.sockets.grant(channel, bytes)
            }
            StreamKind::Stdout | StreamKind::Stderr => self.execs.grant(channel, stream, bytes),
            StreamKind::File => {
                let mut workers = self.workers.iter_mut();
                let worker = workers.find(|worker| worker.channel() == Some(channel));
                worker.map_or(Ok(()), |worker| worker.grant(bytes))
            }
            StreamKind::Stdin => Ok(()),
        }
    }

    /// One port lost its host. The other one may already have opened with the next host, whose
    /// conversation must not suffer for it.
    pub(crate) fn lose_port(&mut self, role: PortRole) {
        if self.pairing.agreed().is_some() {
            self.lose_conversation();
        } else {
            self.forget_port(role);
        }
    }

    /// The host is gone or speaks nonsense: end what belongs to the conversation and wait for an
    /// opening.
    pub(crate) fn lose_conversation(&mut self) {
        self.end_conversation();
        self.forget_conversation();
    }

    fn end_conversation(&mut self) {
        // Execs belong to the guest. They go on, and whoever opens next may read them.
        self.execs.drop_readers();
        self.sockets.close_all();
        self.workers.drain(..).for_each(Worker::discard);
        self.port_waits.clear();
        self.postponed.clear();
    }

    fn forget_conversation(&mut self) {
        self.forget_port(PortRole::Control);
        self.forget_port(PortRole::Bulk);
    }

    fn forget_port(&mut self, role: PortRole) {
        self.pairing.lost(role);
        let port = self.port(role);
        port.discard_output();
        port.parser.hunt_again();
        if role == PortRole::Control {
            self.assembler = MessageAssembler::default();
        }
    }
}
