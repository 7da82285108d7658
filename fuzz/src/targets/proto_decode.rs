//! The decoder of both ends of the agent protocol.
//!
//! What is promised for any bytes: no panic, memory within a frame and what was pushed, control
//! messages that parse or are refused, and a guest that finds the next opening whatever came
//! before it.

use super::Inputs;
use dayfly_guest_proto::frame::{FRAME_BYTES_MAX, FRAME_HEADER_BYTES, FRAME_MAGIC};
use dayfly_guest_proto::{
    Call, Frame, FrameEncoder, GuestMessage, GuestPort, HostPort, MessageAssembler, Nonce, Opening,
    PortRole, ReceiveWindow, Received, SendWindow,
};

/// The nonce of the conversation that the corpus was recorded in.
const NONCE: Nonce = Nonce([0xC0; 16]);
const NEXT: Nonce = Nonce([0x0C; 16]);

/// Checks every promise on one input.
///
/// # Panics
/// When a promise is broken.
pub(super) fn check(input: &[u8]) {
    check_bytes(input);
    // Checksums stop nearly every mutation at the door; with new ones it gets inside.
    let mut sealed = input.to_vec();
    seal_frames(&mut sealed);
    check_bytes(&sealed);
}

fn check_bytes(input: &[u8]) {
    for role in [PortRole::Control, PortRole::Bulk] {
        check_guest(input, role);
        check_host(input, role);
    }
    // Messages are also reached without the checksums in front of them.
    let _ = Call::parse(input);
    let _ = GuestMessage::parse(input);
}

fn check_guest(input: &[u8], role: PortRole) {
    let mut port = GuestPort::new(role);
    let mut reader = Reader::default();
    let mut push = |bytes: &[u8], last: &mut Option<Received>| {
        // An uneven step, so that frames are cut everywhere.
        for piece in bytes.chunks(4099) {
            port.push(piece);
            while let Some(received) = port.next() {
                if let Received::Frame(frame) = &received {
                    reader.take(frame);
                }
                *last = Some(received);
            }
            assert!(
                port.held_bytes() <= FRAME_BYTES_MAX + piece.len(),
                "memory is not bounded"
            );
        }
    };
    let mut last = None;
    push(&Opening::new(NONCE, role).encode(), &mut last);
    push(input, &mut last);
    push(&vec![0; FRAME_BYTES_MAX], &mut last);
    let opening = Opening::new(NEXT, role);
    push(&opening.encode(), &mut last);
    assert_eq!(
        last,
        Some(Received::Opened(opening)),
        "the next opening was not found"
    );
}

fn check_host(input: &[u8], role: PortRole) {
    let mut port = HostPort::new(role);
    port.push(input);
    let _ = port.next_ack(NONCE);
    let mut port = HostPort::new(role);
    port.push(&Opening::new(NONCE, role).answer().encode());
    assert!(
        port.next_ack(NONCE).is_ok_and(|ack| ack.is_some()),
        "own ack was not found"
    );
    port.converse(NONCE);
    let mut reader = Reader::default();
    for piece in input.chunks(4099) {
        port.push(piece);
        loop {
            match port.next_frame() {
                Ok(Some(frame)) => reader.take(&frame),
                Ok(None) => break,
                // Final for a host.
                Err(_) => return,
            }
        }
    }
}

/// Gives whatever looks like a frame the checksums that it would need.
fn seal_frames(input: &mut [u8]) {
    let magic = FRAME_MAGIC.to_le_bytes();
    let mut at = 0;
    while at + FRAME_HEADER_BYTES <= input.len() {
        if input[at..at + 2] != magic {
            at += 1;
            continue;
        }
        let length = u32::from_le_bytes([
            input[at + 12],
            input[at + 13],
            input[at + 14],
            input[at + 15],
        ]);
        let start = at + FRAME_HEADER_BYTES;
        let end =
            usize::try_from(length).map_or(input.len(), |length| start.saturating_add(length));
        let payload = crc32fast::hash(&input[start..end.min(input.len())]);
        input[at + 16..at + 20].copy_from_slice(&NONCE.session_tag().0.to_le_bytes());
        input[at + 28..at + 32].copy_from_slice(&payload.to_le_bytes());
        let header = crc32fast::hash(&input[at..at + 32]);
        input[at + 32..at + 36].copy_from_slice(&header.to_le_bytes());
        at = end;
    }
}

/// What stands behind the decoder at both ends.
#[derive(Debug, Default)]
struct Reader {
    assembler: MessageAssembler,
    receive: ReceiveWindow,
    send: SendWindow,
}

impl Reader {
    fn take(&mut self, frame: &Frame) {
        match frame {
            Frame::Control { is_last, bytes } => {
                let message = self.assembler.push(*is_last, bytes.clone());
                if let Ok(Some(message)) = message {
                    let _ = Call::parse(&message);
                    let _ = GuestMessage::parse(&message);
                }
            }
            Frame::Data { header, bytes } => {
                let accepted = self
                    .receive
                    .accept(header.offset, bytes.len(), header.is_end);
                if accepted.is_ok() {
                    let _ = self.receive.take(bytes.len());
                }
            }
            Frame::Credit { bytes, .. } => {
                let _ = self.send.send(1000.min(self.send.credit()), false);
                let _ = self.send.grant(*bytes);
            }
        }
    }
}

/// Streams and openings. One input for each frozen message was recorded beside them.
pub(super) fn seeds() -> Inputs {
    use dayfly_guest_proto::{ChannelId, DataHeader, StreamKind};
    let encoder = FrameEncoder::new(NONCE.session_tag());
    let mut inputs = Vec::new();
    let mut stream = Vec::new();
    for (index, kind) in StreamKind::ALL.into_iter().enumerate() {
        let channel = ChannelId(u32::try_from(index).unwrap_or(0));
        for (offset, is_end) in [(0, false), (5, true)] {
            let header = DataHeader {
                channel,
                stream: kind,
                offset,
                is_end,
            };
            encoder.data(header, b"bytes", &mut stream);
        }
        encoder.credit(channel, kind, 65_536, &mut stream);
    }
    inputs.push(("streams".to_owned(), stream.clone()));
    stream.extend_from_slice(&Opening::new(NEXT, PortRole::Control).encode());
    stream.extend_from_slice(&Opening::new(NEXT, PortRole::Bulk).answer().encode());
    inputs.push(("streams-then-opening".to_owned(), stream.clone()));
    stream.truncate(stream.len() - 60);
    inputs.push(("cut-opening".to_owned(), stream));
    inputs
}
