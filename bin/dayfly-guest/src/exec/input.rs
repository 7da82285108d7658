//! What a process reads. Bytes that were accepted stay accepted, whatever becomes of the channel
//! that sent them.

use std::collections::VecDeque;

use dayfly_guest_proto::{ChannelId, DataHeader, ReceiveWindow, WindowError};
use dayfly_types::limits::{EXEC_READERS_MAX, STREAM_CREDIT_BYTES};

use super::output::Mouth;
use super::reader::Reader;
use super::terminal;
use crate::poller::Source;

/// What may wait for a process that does not read: a window of each channel it can have.
const WAITING_BYTES_MAX: usize = EXEC_READERS_MAX * STREAM_CREDIT_BYTES as usize;
/// Closed channels whose last bytes may still be on their way.
const CLOSED_CHANNELS_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Input {
    mouth: Mouth,
    /// `None` when there never was one, or the process closed its end, or everything was said.
    sink: Option<Source>,
    waiting: VecDeque<Piece>,
    waiting_bytes: usize,
    /// How much of the first waiting piece the process has taken.
    written: usize,
    accepted_bytes: u64,
    last_byte: Option<u8>,
    /// Nothing more is accepted.
    is_closed: bool,
    /// Channels that the host has closed. A close and the bytes before it come on different ports,
    /// so the bytes may be behind.
    closed_channels: VecDeque<(ChannelId, ReceiveWindow)>,
}

#[derive(Debug)]
struct Piece {
    /// Who gets the credit back.
    channel: Option<ChannelId>,
    bytes: Vec<u8>,
}

impl Input {
    pub(super) fn new(mouth: Mouth, sink: Option<Source>) -> Self {
        Self {
            mouth,
            is_closed: sink.is_none(),
            sink,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            written: 0,
            accepted_bytes: 0,
            last_byte: None,
            closed_channels: VecDeque::new(),
        }
    }

    /// Whether bytes that come now would reach the process.
    pub(super) const fn is_open(&self) -> bool {
        !self.is_closed && self.sink.is_some()
    }

    pub(super) const fn accepted_bytes(&self) -> u64 {
        self.accepted_bytes
    }

    /// Whether one more channel may send, for all that it may send before the process reads.
    pub(super) fn has_room(&self, readers: &[Reader]) -> bool {
        let senders = readers.iter().filter(|reader| reader.stdin.is_some());
        let window = STREAM_CREDIT_BYTES as usize;
        self.waiting_bytes + (senders.count() + 1) * window <= WAITING_BYTES_MAX
    }

    /// Takes one data frame of a channel.
    pub(super) fn accept(
        &mut self,
        reader: &mut Reader,
        header: DataHeader,
        bytes: Vec<u8>,
    ) -> Result<(), WindowError> {
        let Some(upstream) = &mut reader.stdin else {
            return Ok(());
        };
        let count = bytes.len();
        upstream
            .window
            .accept(header.offset, count, header.is_end)?;
        if self.is_closed {
            // Nobody will read it, and its sender shall not wait for that.
            upstream.take(count);
            return Ok(());
        }
        self.queue(Some(header.channel), bytes, header.is_end);
        Ok(())
    }

    /// Takes one data frame of a channel that was closed after it was sent. Gives `None` for a
    /// channel that never could send.
    pub(super) fn accept_late(
        &mut self,
        header: DataHeader,
        bytes: Vec<u8>,
    ) -> Option<Result<(), WindowError>> {
        let mut closed = self.closed_channels.iter_mut();
        let (_, window) = closed.find(|(channel, _)| *channel == header.channel)?;
        let accepted = window.accept(header.offset, bytes.len(), header.is_end);
        if accepted.is_ok() && !self.is_closed {
            self.queue(None, bytes, header.is_end);
        }
        Some(accepted)
    }

    fn queue(&mut self, channel: Option<ChannelId>, bytes: Vec<u8>, is_end: bool) {
        self.accepted_bytes += bytes.len() as u64;
        self.waiting_bytes += bytes.len();
        self.last_byte = bytes.last().copied().or(self.last_byte);
        if !bytes.is_empty() {
            self.waiting.push_back(Piece { channel, bytes });
        }
        if is_end {
            self.close();
        }
    }

    /// Ends the input for good, after what was accepted.
    pub(super) fn close(&mut self) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        if self.mouth == Mouth::Terminal
            && let Some(sink) = &self.sink
        {
            let bytes = terminal::end_of_input(sink.as_fd(), self.last_byte);
            self.waiting_bytes += bytes.len();
            self.waiting.push_back(Piece {
                channel: None,
                bytes,
            });
        }
    }

    /// The process is over. Whoever waits to send it more shall not wait for ever.
    pub(super) fn abandon(&mut self, readers: &mut [Reader]) {
        self.is_closed = true;
        self.sink = None;
        self.pump(readers);
    }

    /// A channel is gone. Nobody gets credit for its bytes any more.
    pub(super) fn forget_channel(&mut self, channel: ChannelId) {
        for piece in &mut self.waiting {
            piece.channel = piece.channel.filter(|other| *other != channel);
        }
    }

    /// The host closed a channel, from which bytes may still come.
    pub(super) fn keep_closed(&mut self, channel: ChannelId, window: ReceiveWindow) {
        if self.is_closed {
            return;
        }
        if self.closed_channels.len() >= CLOSED_CHANNELS_MAX {
            self.closed_channels.pop_front();
        }
        self.closed_channels.push_back((channel, window));
    }

    pub(super) fn knows_closed(&self, channel: ChannelId) -> bool {
        let mut closed = self.closed_channels.iter();
        closed.any(|(other, _)| *other == channel)
    }

    /// The conversation is over: no byte of it is on its way any more.
    pub(super) fn forget_conversation(&mut self) {
        self.closed_channels.clear();
        for piece in &mut self.waiting {
            piece.channel = None;
        }
    }

    /// Writes to the process. Gives whether it took anything.
    pub(super) fn pump(&mut self, readers: &mut [Reader]) -> bool {
        let mut progressed = false;
        while let Some(piece) = self.waiting.front() {
            let rest = &piece.bytes[self.written..];
            let count = match &mut self.sink {
                None => rest.len(),
                Some(sink) if !sink.may_write => break,
                Some(sink) => match sink.write(rest) {
                    Some(0) => break,
                    Some(count) => count,
                    None => {
                        self.sink = None;
                        rest.len()
                    }
                },
            };
            progressed = true;
            self.written += count;
            self.waiting_bytes -= count;
            let sender = readers
                .iter_mut()
                .find(|reader| Some(reader.channel) == piece.channel);
            if let Some(upstream) = sender.and_then(|reader| reader.stdin.as_mut()) {
                upstream.take(count);
            }
            if self.written == piece.bytes.len() {
                self.waiting.pop_front();
                self.written = 0;
            }
        }
        if self.is_closed && self.waiting.is_empty() {
            self.sink = None;
        }
        progressed
    }

    pub(super) fn wake(&mut self, number: i32) {
        if let Some(sink) = &mut self.sink {
            sink.wake(number);
        }
    }
}
