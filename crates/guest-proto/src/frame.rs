//! One frame: a fixed header, then a payload.
//!
//! ```text
//!  0  magic       u16    12  payload bytes u32    28  payload crc32 u32
//!  2  kind        u8     16  session tag   u32    32  header crc32  u32 (of bytes 0..32)
//!  3  flags       u8     20  offset        u64    36  payload
//!  4  channel     u32         (of a data frame, else zero)
//!  8  stream      u8, then three zero bytes
//! ```
//! All numbers are little endian.

use std::fmt;

use dayfly_types::limits::FRAME_PAYLOAD_BYTES_MAX;
use serde::{Deserialize, Serialize};

pub const FRAME_MAGIC: u16 = 0xDF1A;
pub const FRAME_HEADER_BYTES: usize = 36;
/// The longest frame on the wire, which is also how much filler ends any dead one.
pub const FRAME_BYTES_MAX: usize = FRAME_HEADER_BYTES + FRAME_PAYLOAD_BYTES_MAX;

pub(crate) const KIND_CONTROL: u8 = 1;
pub(crate) const KIND_DATA: u8 = 2;
pub(crate) const KIND_CREDIT: u8 = 3;
/// On data: the stream ends after this frame. On control: the message ends with it.
pub(crate) const FLAG_END: u8 = 1;

/// What frames of one conversation carry, so that those of another are not taken for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionTag(pub u32);

/// One exec or one open file. Chosen by the host, never used twice in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChannelId(pub u32);

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The streams that a channel may have. Each has its own credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamKind {
    Stdin,
    Stdout,
    Stderr,
    File,
}

impl StreamKind {
    pub const ALL: [Self; 4] = [Self::Stdin, Self::Stdout, Self::Stderr, Self::File];

    #[must_use]
    pub const fn wire(self) -> u8 {
        match self {
            Self::Stdin => 1,
            Self::Stdout => 2,
            Self::Stderr => 3,
            Self::File => 4,
        }
    }

    #[must_use]
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Stdin),
            2 => Some(Self::Stdout),
            3 => Some(Self::Stderr),
            4 => Some(Self::File),
            _ => None,
        }
    }
}

/// Where the bytes of a data frame belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHeader {
    pub channel: ChannelId,
    pub stream: StreamKind,
    /// Position of the first byte in its stream. An overlap is a protocol error, and so is a gap
    /// but in the output of an exec.
    pub offset: u64,
    /// Nothing follows on this stream.
    pub is_end: bool,
}

/// A decoded frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A piece of a control message.
    Control { is_last: bool, bytes: Vec<u8> },
    /// Bytes of a stream.
    Data { header: DataHeader, bytes: Vec<u8> },
    /// The receiver of a stream took this many bytes more.
    Credit {
        channel: ChannelId,
        stream: StreamKind,
        bytes: u32,
    },
}

/// Writes the frames of one conversation.
#[derive(Debug, Clone, Copy)]
pub struct FrameEncoder {
    tag: SessionTag,
}

impl FrameEncoder {
    #[must_use]
    pub const fn new(tag: SessionTag) -> Self {
        Self { tag }
    }

    /// Appends a control message as one or more frames.
    pub fn control(&self, message: &[u8], out: &mut Vec<u8>) {
        let mut pieces = message.chunks(FRAME_PAYLOAD_BYTES_MAX).peekable();
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() { FLAG_END } else { 0 };
            self.frame(
                &Head {
                    kind: KIND_CONTROL,
                    flags,
                    ..Head::default()
                },
                piece,
                out,
            );
        }
    }

    /// Appends one data frame. At most [`FRAME_PAYLOAD_BYTES_MAX`] of `bytes` are taken; the
    /// caller sends the rest in further frames.
    pub fn data(&self, header: DataHeader, bytes: &[u8], out: &mut Vec<u8>) {
        debug_assert!(
            bytes.len() <= FRAME_PAYLOAD_BYTES_MAX,
            "callers split by the frame limit"
        );
        let head = Head {
            kind: KIND_DATA,
            flags: if header.is_end { FLAG_END } else { 0 },
            channel: header.channel.0,
            stream: header.stream.wire(),
            offset: header.offset,
        };
        self.frame(&head, bytes, out);
    }

    /// Appends one credit frame.
    pub fn credit(&self, channel: ChannelId, stream: StreamKind, bytes: u32, out: &mut Vec<u8>) {
        let head = Head {
            kind: KIND_CREDIT,
            channel: channel.0,
            stream: stream.wire(),
            ..Head::default()
        };
        self.frame(&head, &bytes.to_le_bytes(), out);
    }

    fn frame(&self, head: &Head, payload: &[u8], out: &mut Vec<u8>) {
        let payload = &payload[..payload.len().min(FRAME_PAYLOAD_BYTES_MAX)];
        // The slice above is at most 64 KiB long.
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let start = out.len();
        out.reserve(FRAME_HEADER_BYTES + payload.len());
        out.extend_from_slice(&FRAME_MAGIC.to_le_bytes());
        out.extend_from_slice(&[head.kind, head.flags]);
        out.extend_from_slice(&head.channel.to_le_bytes());
        out.extend_from_slice(&[head.stream, 0, 0, 0]);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&self.tag.0.to_le_bytes());
        out.extend_from_slice(&head.offset.to_le_bytes());
        out.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
        let header_crc = crc32fast::hash(&out[start..]);
        out.extend_from_slice(&header_crc.to_le_bytes());
        out.extend_from_slice(payload);
    }
}

#[derive(Debug, Default)]
struct Head {
    kind: u8,
    flags: u8,
    channel: u32,
    stream: u8,
    offset: u64,
}
