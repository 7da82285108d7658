//! Bytes to frames, with bounded memory and nothing taken on trust.

use dayfly_types::limits::FRAME_PAYLOAD_BYTES_MAX;

use crate::frame::{
    ChannelId, DataHeader, FLAG_END, FRAME_HEADER_BYTES, FRAME_MAGIC, Frame, KIND_CONTROL,
    KIND_CREDIT, KIND_DATA, SessionTag, StreamKind,
};

/// Why the bytes are not the frames of this conversation. Nothing after it can be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("no frame starts here")]
    BadMagic,
    #[error("frame header checksum is wrong")]
    HeaderChecksum,
    #[error("frame payload checksum is wrong")]
    PayloadChecksum,
    #[error("frame belongs to another conversation")]
    ForeignSession,
    #[error("frame payload of {bytes} bytes is over the limit")]
    PayloadTooLong { bytes: u32 },
    #[error("frame kind {kind} is not known")]
    UnknownKind { kind: u8 },
    #[error("stream kind {stream} is not known")]
    UnknownStream { stream: u8 },
    #[error("credit frame is malformed")]
    MalformedCredit,
}

/// Turns pushed bytes into frames.
///
/// Call [`Decoder::next_frame`] until it gives `None` before the next push: then the decoder
/// never holds more than one unfinished frame and what was pushed last.
#[derive(Debug)]
pub struct Decoder {
    tag: SessionTag,
    buffer: Vec<u8>,
    start: usize,
}

impl Decoder {
    #[must_use]
    pub const fn new(tag: SessionTag) -> Self {
        Self {
            tag,
            buffer: Vec::new(),
            start: 0,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes at the front are no frame of this conversation. The
    /// offending bytes stay in the buffer: [`Decoder::into_unread`] hands them to a hunt.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, DecodeError> {
        let unread = &self.buffer[self.start..];
        let Some(head) = Head::parse(unread, self.tag)? else {
            return Ok(None);
        };
        let length = FRAME_HEADER_BYTES + head.payload_bytes;
        let Some(payload) = unread.get(FRAME_HEADER_BYTES..length) else {
            return Ok(None);
        };
        if crc32fast::hash(payload) != head.payload_crc {
            return Err(DecodeError::PayloadChecksum);
        }
        let frame = head.into_frame(payload)?;
        self.start += length;
        Ok(Some(frame))
    }

    /// Everything that was pushed and is not part of a frame already given out.
    #[must_use]
    pub fn into_unread(mut self) -> Vec<u8> {
        self.buffer.drain(..self.start);
        self.buffer
    }

    /// How many bytes wait in memory.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.buffer.len() - self.start
    }
}

struct Head {
    kind: u8,
    is_end: bool,
    channel: ChannelId,
    stream: u8,
    offset: u64,
    payload_bytes: usize,
    payload_crc: u32,
}

impl Head {
    fn parse(bytes: &[u8], tag: SessionTag) -> Result<Option<Self>, DecodeError> {
        // Fail on the first wrong byte, not after a whole header: what follows may be an
        // opening that is shorter than a header.
        let magic = FRAME_MAGIC.to_le_bytes();
        if bytes.iter().zip(magic).any(|(have, want)| *have != want) {
            return Err(DecodeError::BadMagic);
        }
        let Some(header) = bytes.first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(None);
        };
        if crc32fast::hash(&header[..32]) != number(header, 32) {
            return Err(DecodeError::HeaderChecksum);
        }
        if number(header, 16) != tag.0 {
            return Err(DecodeError::ForeignSession);
        }
        let bytes = number(header, 12);
        let payload_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if payload_bytes > FRAME_PAYLOAD_BYTES_MAX {
            return Err(DecodeError::PayloadTooLong { bytes });
        }
        let offset = u64::from(number(header, 20)) | u64::from(number(header, 24)) << 32;
        Ok(Some(Self {
            kind: header[2],
            is_end: header[3] & FLAG_END != 0,
            channel: ChannelId(number(header, 4)),
            stream: header[8],
            offset,
            payload_bytes,
            payload_crc: number(header, 28),
        }))
    }

    fn into_frame(self, payload: &[u8]) -> Result<Frame, DecodeError> {
        match self.kind {
            KIND_CONTROL => Ok(Frame::Control {
                is_last: self.is_end,
                bytes: payload.to_vec(),
            }),
            KIND_DATA => {
                let header = DataHeader {
                    channel: self.channel,
                    stream: self.stream()?,
                    offset: self.offset,
                    is_end: self.is_end,
                };
                Ok(Frame::Data {
                    header,
                    bytes: payload.to_vec(),
                })
            }
            KIND_CREDIT => {
                let bytes = payload
                    .try_into()
                    .map_err(|_| DecodeError::MalformedCredit)?;
                let bytes = u32::from_le_bytes(bytes);
                Ok(Frame::Credit {
                    channel: self.channel,
                    stream: self.stream()?,
                    bytes,
                })
            }
            kind => Err(DecodeError::UnknownKind { kind }),
        }
    }

    fn stream(&self) -> Result<StreamKind, DecodeError> {
        StreamKind::from_wire(self.stream).ok_or(DecodeError::UnknownStream {
            stream: self.stream,
        })
    }
}

fn number(header: &[u8; FRAME_HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::FrameEncoder;

    const TAG: SessionTag = SessionTag(0x1234_5678);

    fn any_frame() -> impl Strategy<Value = Frame> {
        let stream = (0_usize..4).prop_map(|index| StreamKind::ALL[index]);
        let bytes = proptest::collection::vec(any::<u8>(), 1..300);
        (
            any::<u32>(),
            stream,
            any::<u64>(),
            any::<bool>(),
            bytes,
            0..3,
        )
            .prop_map(|(channel, stream, offset, flag, bytes, kind)| {
                let channel = ChannelId(channel);
                match kind {
                    0 => Frame::Control {
                        is_last: true,
                        bytes,
                    },
                    1 => {
                        let header = DataHeader {
                            channel,
                            stream,
                            offset,
                            is_end: flag,
                        };
                        Frame::Data { header, bytes }
                    }
                    _ => Frame::Credit {
                        channel,
                        stream,
                        bytes: 77,
                    },
                }
            })
    }

    fn encode(frames: &[Frame]) -> Vec<u8> {
        let encoder = FrameEncoder::new(TAG);
        let mut out = Vec::new();
        for frame in frames {
            match frame {
                Frame::Control { bytes, .. } => encoder.control(bytes, &mut out),
                Frame::Data { header, bytes } => encoder.data(*header, bytes, &mut out),
                Frame::Credit {
                    channel,
                    stream,
                    bytes,
                } => {
                    encoder.credit(*channel, *stream, *bytes, &mut out);
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn frames_survive_any_split_of_their_bytes(
            frames in proptest::collection::vec(any_frame(), 0..8),
            step in 1_usize..200,
        ) {
            let bytes = encode(&frames);
            let mut decoder = Decoder::new(TAG);
            let mut seen = Vec::new();
            for piece in bytes.chunks(step) {
                decoder.push(piece);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    seen.push(frame);
                }
            }
            prop_assert_eq!(seen, frames);
            prop_assert_eq!(decoder.held_bytes(), 0);
        }

        #[test]
        fn one_flipped_bit_is_always_noticed(frame in any_frame(), position in any::<usize>()) {
            let mut bytes = encode(std::slice::from_ref(&frame));
            let position = position % (bytes.len() * 8);
            bytes[position / 8] ^= 1 << (position % 8);
            let mut decoder = Decoder::new(TAG);
            decoder.push(&bytes);
            prop_assert!(decoder.next_frame().is_err());
        }
    }

    #[test]
    fn frame_of_another_conversation_is_refused() {
        let bytes = encode(&[Frame::Control {
            is_last: true,
            bytes: b"x".to_vec(),
        }]);
        let mut decoder = Decoder::new(SessionTag(1));
        decoder.push(&bytes);
        assert_eq!(decoder.next_frame(), Err(DecodeError::ForeignSession));
    }

    #[test]
    fn long_message_becomes_frames_within_the_limit() {
        let message = vec![7; FRAME_PAYLOAD_BYTES_MAX * 2 + 5];
        let mut out = Vec::new();
        FrameEncoder::new(TAG).control(&message, &mut out);
        let mut decoder = Decoder::new(TAG);
        decoder.push(&out);
        let mut sizes = Vec::new();
        while let Some(frame) = decoder.next_frame().unwrap() {
            let Frame::Control { is_last, bytes } = frame else {
                panic!("not control")
            };
            sizes.push((is_last, bytes.len()));
        }
        let max = FRAME_PAYLOAD_BYTES_MAX;
        assert_eq!(sizes, vec![(false, max), (false, max), (true, 5)]);
    }
}
