//! The pipes of an exec. Bytes are read only while the host has given credit for them, so a
//! process that writes faster than its reader reads is stopped by its own full pipe.

use std::collections::VecDeque;

use dayfly_guest_proto::{
    ChannelId, DataHeader, FrameEncoder, ReceiveWindow, SendWindow, StreamKind, WindowError,
};
use dayfly_types::limits::FRAME_PAYLOAD_BYTES_MAX;

use crate::poller::{ReadOutcome, Source};
use crate::port::OUTPUT_BYTES_MAX;

/// What a process writes.
#[derive(Debug)]
pub(crate) struct Output {
    stream: StreamKind,
    pipe: Option<Source>,
    window: SendWindow,
    /// After the process has ended: how many bytes of it are still in the pipe.
    drain_bytes: Option<u64>,
}

impl Output {
    pub(crate) fn new(stream: StreamKind, pipe: Source) -> Self {
        Self {
            stream,
            pipe: Some(pipe),
            window: SendWindow::default(),
            drain_bytes: None,
        }
    }

    pub(crate) fn grant(&mut self, bytes: u32) -> Result<(), WindowError> {
        self.window.grant(bytes)
    }

    /// From now on only what is in the pipe already counts: background children may go on
    /// writing for ever, and the exec must not wait for them.
    pub(crate) fn drain(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        pipe.may_read = true;
        self.drain_bytes = Some(rustix::io::ioctl_fionread(pipe.as_fd()).unwrap_or(0));
    }

    pub(crate) fn is_over(&self) -> bool {
        self.window.has_ended()
    }

    /// Reads from the pipe into frames while there is credit and room.
    pub(crate) fn pump(
        &mut self,
        channel: ChannelId,
        encoder: FrameEncoder,
        out: &mut Vec<u8>,
        scratch: &mut [u8],
    ) -> bool {
        let mut progressed = false;
        while !self.window.has_ended() && out.len() < OUTPUT_BYTES_MAX {
            let wanted = self.wanted_bytes();
            let outcome = match &mut self.pipe {
                None => ReadOutcome::Ended,
                Some(_) if self.drain_bytes == Some(0) => ReadOutcome::Ended,
                Some(pipe) if pipe.may_read && wanted > 0 => pipe.read(&mut scratch[..wanted]),
                Some(_) => return progressed,
            };
            let (count, is_end) = match outcome {
                ReadOutcome::Bytes(count) => (count, false),
                ReadOutcome::Blocked if self.drain_bytes.is_none() => return progressed,
                ReadOutcome::Blocked => (0, true),
                ReadOutcome::Ended => {
                    if self.drain_bytes != Some(0) {
                        self.pipe = None;
                    }
                    (0, true)
                }
            };
            if let Some(left) = &mut self.drain_bytes {
                *left = left.saturating_sub(count as u64);
            }
            // Within credit by construction, so there is no error to handle.
            let Ok(offset) = self.window.send(count, is_end) else {
                return progressed;
            };
            let header = DataHeader {
                channel,
                stream: self.stream,
                offset,
                is_end,
            };
            encoder.data(header, &scratch[..count], out);
            progressed = true;
        }
        progressed
    }

    fn wanted_bytes(&self) -> usize {
        let left = self
            .drain_bytes
            .map_or(usize::MAX, |left| left.try_into().unwrap_or(usize::MAX));
        self.window.credit().min(FRAME_PAYLOAD_BYTES_MAX).min(left)
    }

    pub(crate) fn wake(&mut self, number: i32) {
        if let Some(pipe) = &mut self.pipe {
            pipe.wake(number);
        }
    }

    pub(crate) fn take_pipe(&mut self) -> Option<Source> {
        self.pipe.take()
    }

    pub(crate) fn into_pipe(mut self) -> Option<Source> {
        self.pipe.take()
    }
}

/// What a process reads. Holds at most one window of bytes.
#[derive(Debug)]
pub(crate) struct Input {
    /// `None` when the process closed its end: bytes are then taken and dropped.
    pipe: Option<Source>,
    window: ReceiveWindow,
    waiting: VecDeque<Vec<u8>>,
    /// How much of the first waiting piece the pipe has taken.
    written: usize,
    has_ended: bool,
}

impl Input {
    pub(crate) fn new(pipe: Source) -> Self {
        Self {
            pipe: Some(pipe),
            window: ReceiveWindow::default(),
            waiting: VecDeque::new(),
            written: 0,
            has_ended: false,
        }
    }

    /// Takes one data frame of the host.
    pub(crate) fn accept(&mut self, header: DataHeader, bytes: Vec<u8>) -> Result<(), WindowError> {
        self.window
            .accept(header.offset, bytes.len(), header.is_end)?;
        if !bytes.is_empty() {
            self.waiting.push_back(bytes);
        }
        self.has_ended |= header.is_end;
        Ok(())
    }

    pub(crate) fn close(&mut self) {
        self.has_ended = true;
    }

    /// Everything was written and nothing more comes: the pipe can be closed.
    pub(crate) fn is_done(&self) -> bool {
        self.has_ended && self.waiting.is_empty()
    }

    /// Writes to the pipe and gives credit back for what it took.
    pub(crate) fn pump(
        &mut self,
        channel: ChannelId,
        encoder: FrameEncoder,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut progressed = false;
        while let Some(piece) = self.waiting.front() {
            let rest = &piece[self.written..];
            let count = match &mut self.pipe {
                None => rest.len(),
                Some(pipe) if !pipe.may_write => break,
                Some(pipe) => match pipe.write(rest) {
                    Some(0) => break,
                    Some(count) => count,
                    None => {
                        self.pipe = None;
                        rest.len()
                    }
                },
            };
            self.written += count;
            progressed = true;
            if self.written == piece.len() {
                self.waiting.pop_front();
                self.written = 0;
            }
            if let Some(credit) = self.window.take(count) {
                encoder.credit(channel, StreamKind::Stdin, credit, out);
            }
        }
        progressed
    }

    pub(crate) fn wake(&mut self, number: i32) {
        if let Some(pipe) = &mut self.pipe {
            pipe.wake(number);
        }
    }
}
