//! One exec or file as the conversation keeps it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use dayfly_guest_proto::{
    ChannelId, GuestError, ReceiveWindow, SendWindow, StreamKind, WindowError,
};
use dayfly_types::exec::ExecEnd;
use tokio::sync::Notify;

/// What a channel is for. Decides which streams and events it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Exec(ExecStreams),
    Read,
    Write,
    Socket,
}

/// The streams that one reader of an exec has, with the offsets that it wants to begin at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExecStreams {
    pub(crate) stdout: Option<u64>,
    pub(crate) stderr: Option<u64>,
    pub(crate) stdin: bool,
}

/// Gaps that may wait for the reader of one stream. An honest guest leaves bytes out only when it
/// has a window of newer ones.
const GAPS_MAX: usize = 64;

/// The last word of the guest about a channel.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Exited(ExecEnd),
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
    may_have_gaps: bool,
    /// How far into the buffer each gap is, and how many bytes it has.
    gaps: VecDeque<(usize, u64)>,
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
    /// Bytes of the stream before these that the guest no longer has.
    pub(crate) gap: u64,
    pub(crate) bytes: Bytes,
    pub(crate) credit: Option<u32>,
}

impl Channel {
    pub(crate) fn new(purpose: Purpose) -> Self {
        let (inbound, outbound) = match purpose {
            Purpose::Exec(streams) => {
                let stdout = streams
                    .stdout
                    .map(|at| Inbound::log(StreamKind::Stdout, at));
                let stderr = streams
                    .stderr
                    .map(|at| Inbound::log(StreamKind::Stderr, at));
                (
                    stdout.into_iter().chain(stderr).collect(),
                    streams.stdin.then(SendWindow::default),
                )
            }
            Purpose::Read => (vec![Inbound::new(StreamKind::File)], None),
            Purpose::Write => (Vec::new(), Some(SendWindow::default())),
            Purpose::Socket => (
                vec![Inbound::new(StreamKind::Stdout)],
                Some(SendWindow::default()),
            ),
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
            Purpose::Exec(_) | Purpose::Socket => StreamKind::Stdin,
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
            Outcome::Exited(_) => matches!(self.purpose, Purpose::Exec(_)),
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
            .position(|inbound| !inbound.is_empty())?;
        let taken = self.inbound[index].take();
        // The other stream comes first next time.
        self.inbound.rotate_left(index + 1);
        Some(taken)
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.inbound
            .iter()
            .all(|inbound| inbound.window.has_ended() && inbound.is_empty())
    }

    /// Whether the guest has nothing more to say, so that there is nothing to cancel.
    pub(crate) fn is_over(&self) -> bool {
        let has_ended = self
            .inbound
            .iter()
            .all(|inbound| inbound.window.has_ended());
        match self.purpose {
            Purpose::Exec(_) => has_ended && self.outcome.is_some(),
            Purpose::Read | Purpose::Socket => has_ended || self.outcome.is_some(),
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
            may_have_gaps: false,
            gaps: VecDeque::new(),
        }
    }

    /// A stream that is read from a log, which may have dropped some of it.
    fn log(stream: StreamKind, offset: u64) -> Self {
        Self {
            window: ReceiveWindow::starting_at(offset),
            may_have_gaps: true,
            ..Self::new(stream)
        }
    }

    fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.gaps.is_empty()
    }

    pub(crate) fn accept(
        &mut self,
        offset: u64,
        bytes: &[u8],
        is_end: bool,
    ) -> Result<(), WindowError> {
        if self.may_have_gaps {
            let expected = self.window.next_offset();
            let gap = self.window.accept_after_gap(offset, bytes.len(), is_end)?;
            if gap > 0 {
                if self.gaps.len() >= GAPS_MAX {
                    return Err(WindowError::Offset { offset, expected });
                }
                self.gaps.push_back((self.buffer.len(), gap));
            }
        } else {
            self.window.accept(offset, bytes.len(), is_end)?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes what comes before the next gap, or the gap and what comes after it.
    fn take(&mut self) -> Taken {
        let gap = match self.gaps.front() {
            Some((0, gap)) => *gap,
            _ => 0,
        };
        if gap > 0 {
            self.gaps.pop_front();
        }
        let until = self.gaps.front().map_or(self.buffer.len(), |(at, _)| *at);
        let bytes = self.buffer.split_to(until).freeze();
        for (at, _) in &mut self.gaps {
            *at -= until;
        }
        let credit = self.window.take(bytes.len());
        Taken {
            stream: self.stream,
            gap,
            bytes,
            credit,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_come_out_where_they_were() {
        let mut inbound = Inbound::log(StreamKind::Stdout, 10);
        inbound.accept(10, b"ab", false).unwrap();
        inbound.accept(12, b"c", false).unwrap();
        inbound.accept(20, b"de", false).unwrap();
        inbound.accept(30, b"", true).unwrap();
        let first = inbound.take();
        assert_eq!((first.gap, &first.bytes[..]), (0, &b"abc"[..]));
        let second = inbound.take();
        assert_eq!((second.gap, &second.bytes[..]), (7, &b"de"[..]));
        assert!(!inbound.is_empty(), "the last gap has nothing behind it");
        let third = inbound.take();
        assert_eq!((third.gap, third.bytes.len()), (8, 0));
        assert!(inbound.is_empty());
    }

    #[test]
    fn overlap_and_a_flood_of_gaps_are_refused() {
        let mut inbound = Inbound::log(StreamKind::Stdout, 10);
        assert!(inbound.accept(9, b"a", false).is_err());
        let mut offset = 10;
        let outcome = loop {
            offset += 2;
            if let Err(error) = inbound.accept(offset, b"", false) {
                assert_eq!(error, WindowError::Empty);
            }
            if let Err(error) = inbound.accept(offset, b"x", false) {
                break error;
            }
            offset += 1;
        };
        assert!(matches!(outcome, WindowError::Offset { .. }));
    }
}
