//! One exec or file as the conversation keeps it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use dayfly_guest_proto::{
    ChannelId, ExecExit, GuestError, ReceiveWindow, SendWindow, StdinMode, StreamKind, WindowError,
};
use tokio::sync::Notify;

/// What a channel is for. Decides which streams and events it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Exec(StdinMode),
    Read,
    Write,
}

/// The last word of the guest about a channel.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Exited { exit: ExecExit, duration_ms: u64 },
    Written { bytes: u64 },
    Failed(GuestError),
}

/// A stream that the guest sends. Holds at most one window.
#[derive(Debug)]
pub(crate) struct Inbound {
    stream: StreamKind,
    window: ReceiveWindow,
    /// One buffer, not a list of frames: a guest that sends single bytes costs no more than one
    /// that sends whole frames.
    buffer: BytesMut,
}

#[derive(Debug)]
pub(crate) struct Channel {
    purpose: Purpose,
    inbound: Vec<Inbound>,
    /// The stream that the host sends, if there is one.
    pub(crate) outbound: Option<SendWindow>,
    pub(crate) outcome: Option<Outcome>,
    /// Wakes the one who takes bytes and the outcome.
    pub(crate) news: Arc<Notify>,
    /// Wakes whoever waits for credit.
    pub(crate) credit: Arc<Notify>,
}

/// Bytes taken from a stream, and the credit to send back for them.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) stream: StreamKind,
    pub(crate) bytes: Bytes,
    pub(crate) credit: Option<u32>,
}

impl Channel {
    pub(crate) fn new(purpose: Purpose) -> Self {
        let (inbound, outbound) = match purpose {
            Purpose::Exec(stdin) => {
                let streams = vec![
                    Inbound::new(StreamKind::Stdout),
                    Inbound::new(StreamKind::Stderr),
                ];
                let has_input = stdin == StdinMode::Piped;
                (streams, has_input.then(SendWindow::default))
            }
            Purpose::Read => (vec![Inbound::new(StreamKind::File)], None),
            Purpose::Write => (Vec::new(), Some(SendWindow::default())),
        };
        let (news, credit) = (Arc::default(), Arc::default());
        Self {
            purpose,
            inbound,
            outbound,
            outcome: None,
            news,
            credit,
        }
    }

    /// The kind of stream that the host sends on this channel.
    pub(crate) const fn outbound_stream(&self) -> StreamKind {
        match self.purpose {
            Purpose::Exec(_) => StreamKind::Stdin,
            Purpose::Read | Purpose::Write => StreamKind::File,
        }
    }

    pub(crate) fn inbound(&mut self, stream: StreamKind) -> Option<&mut Inbound> {
        self.inbound
            .iter_mut()
            .find(|inbound| inbound.stream == stream)
    }

    /// Whether the outcome is one that a channel of this purpose can have, and the first.
    pub(crate) fn may_end_with(&self, outcome: &Outcome) -> bool {
        let fits = match outcome {
            Outcome::Exited { .. } => matches!(self.purpose, Purpose::Exec(_)),
            Outcome::Written { .. } => self.purpose == Purpose::Write,
            Outcome::Failed(_) => !matches!(self.purpose, Purpose::Exec(_)),
        };
        fits && self.outcome.is_none()
    }

    /// Takes bytes of any stream, the one that waits longest first.
    pub(crate) fn take(&mut self) -> Option<Taken> {
        let index = self
            .inbound
            .iter()
            .position(|inbound| !inbound.buffer.is_empty())?;
        let inbound = &mut self.inbound[index];
        let bytes = inbound.buffer.split().freeze();
        let credit = inbound.window.take(bytes.len());
        let taken = Taken {
            stream: inbound.stream,
            bytes,
            credit,
        };
        // The other stream comes first next time.
        self.inbound.rotate_left(index + 1);
        Some(taken)
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.inbound
            .iter()
            .all(|i| i.window.has_ended() && i.buffer.is_empty())
    }

    /// Whether the guest has nothing more to say, so that there is nothing to cancel.
    pub(crate) fn is_over(&self) -> bool {
        let has_ended = self
            .inbound
            .iter()
            .all(|inbound| inbound.window.has_ended());
        match self.purpose {
            Purpose::Exec(_) => has_ended && self.outcome.is_some(),
            Purpose::Read => has_ended || self.outcome.is_some(),
            Purpose::Write => self.outcome.is_some(),
        }
    }
}

impl Inbound {
    fn new(stream: StreamKind) -> Self {
        Self {
            stream,
            window: ReceiveWindow::default(),
            buffer: BytesMut::new(),
        }
    }

    pub(crate) fn accept(
        &mut self,
        offset: u64,
        bytes: &[u8],
        is_end: bool,
    ) -> Result<(), WindowError> {
        self.window.accept(offset, bytes.len(), is_end)?;
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }
}

/// Numbers channels. Never reuses one, so that late frames are known as such.
#[derive(Debug, Default)]
pub(crate) struct ChannelNumbers {
    last: u32,
}

impl ChannelNumbers {
    pub(crate) fn next(&mut self) -> Option<ChannelId> {
        self.last = self.last.checked_add(1)?;
        Some(ChannelId(self.last))
    }

    pub(crate) const fn was_given(&self, channel: ChannelId) -> bool {
        channel.0 != 0 && channel.0 <= self.last
    }
}
