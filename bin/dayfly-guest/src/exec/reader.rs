//! One channel on an exec: how far it has read each stream, and what it may still send.
//!
//! Readers come and go with conversations; the exec does not notice.

use dayfly_guest_proto::{
    ChannelId, DataHeader, FrameEncoder, ReceiveWindow, SendWindow, StreamKind, WindowError,
};
use dayfly_types::limits::{FRAME_PAYLOAD_BYTES_MAX, STREAM_CREDIT_BYTES};

use crate::files::Outlets;

/// What a new channel asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attachment {
    pub(crate) channel: ChannelId,
    /// Where to begin; `None` for a stream that the channel does not have.
    pub(crate) stdout: Option<u64>,
    pub(crate) stderr: Option<u64>,
    pub(crate) stdin: bool,
}

#[derive(Debug)]
pub(super) struct Reader {
    pub(super) channel: ChannelId,
    pub(super) stdout: Option<Position>,
    pub(super) stderr: Option<Position>,
    pub(super) stdin: Option<Upstream>,
}

/// How far one stream was sent on one channel.
#[derive(Debug)]
pub(super) struct Position {
    window: SendWindow,
    /// Where the log ended when the channel came: what children of an ended process had written by
    /// then is for this reader too.
    pub(super) attached_end: u64,
}

/// The input that one channel sends.
#[derive(Debug, Default)]
pub(super) struct Upstream {
    pub(super) window: ReceiveWindow,
    /// Credit that the channel was not told of yet.
    owed: u32,
}

impl Reader {
    pub(super) fn position(&mut self, stream: StreamKind) -> Option<&mut Position> {
        match stream {
            StreamKind::Stdout => self.stdout.as_mut(),
            StreamKind::Stderr => self.stderr.as_mut(),
            StreamKind::Stdin | StreamKind::File => None,
        }
    }

    /// Whether every stream that the channel has was sent to its end.
    pub(super) fn has_everything(&self) -> bool {
        let streams = [&self.stdout, &self.stderr];
        streams
            .into_iter()
            .flatten()
            .all(|position| position.window.has_ended())
    }

    /// Gives credit back for input that was taken.
    pub(super) fn pay_credit(&mut self, outlets: &mut Outlets<'_>) {
        let Some(upstream) = self.stdin.as_mut().filter(|upstream| upstream.owed > 0) else {
            return;
        };
        let owed = std::mem::take(&mut upstream.owed);
        let (channel, stream) = (self.channel, StreamKind::Stdin);
        outlets.encoder.credit(channel, stream, owed, outlets.bulk);
    }
}

impl Upstream {
    /// Notes that the process took bytes, or that nobody ever will.
    pub(super) fn take(&mut self, bytes: usize) {
        self.owed += self.window.take(bytes).unwrap_or(0);
    }
}

impl Position {
    pub(super) fn new(offset: u64, attached_end: u64) -> Self {
        Self {
            window: SendWindow::starting_at(offset),
            attached_end,
        }
    }

    /// The offset of the next byte to send.
    pub(super) const fn offset(&self) -> u64 {
        self.window.sent_bytes()
    }

    pub(super) fn credit(&self) -> usize {
        self.window.credit()
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.window.has_ended()
    }

    /// Up to where the host has taken bytes, as far as its credit tells.
    pub(super) fn delivered(&self) -> u64 {
        let on_their_way = u64::from(STREAM_CREDIT_BYTES) - self.window.credit() as u64;
        self.window.sent_bytes().saturating_sub(on_their_way)
    }

    pub(super) fn grant(&mut self, bytes: u32) -> Result<(), WindowError> {
        self.window.grant(bytes)
    }

    /// Leaves bytes out that the log no longer has.
    pub(super) fn skip_to(&mut self, offset: u64) {
        self.window.skip_to(offset);
    }

    /// Sends as many of the bytes as there is credit for.
    pub(super) fn send(
        &mut self,
        (channel, stream): (ChannelId, StreamKind),
        bytes: &[u8],
        encoder: FrameEncoder,
        out: &mut Vec<u8>,
    ) {
        let bytes = &bytes[..bytes.len().min(self.credit())];
        for piece in bytes.chunks(FRAME_PAYLOAD_BYTES_MAX) {
            self.frame((channel, stream), piece, false, encoder, out);
        }
    }

    pub(super) fn end(
        &mut self,
        (channel, stream): (ChannelId, StreamKind),
        encoder: FrameEncoder,
        out: &mut Vec<u8>,
    ) {
        self.frame((channel, stream), &[], true, encoder, out);
    }

    fn frame(
        &mut self,
        (channel, stream): (ChannelId, StreamKind),
        bytes: &[u8],
        is_end: bool,
        encoder: FrameEncoder,
        out: &mut Vec<u8>,
    ) {
        // Within credit by construction, so there is no error to handle.
        let Ok(offset) = self.window.send(bytes.len(), is_end) else {
            return;
        };
        let header = DataHeader {
            channel,
            stream,
            offset,
            is_end,
        };
        encoder.data(header, bytes, out);
    }
}
