//! What a process writes: from its pipe or terminal into the log, and from the log to readers.
//!
//! The log comes first. A reader without credit falls behind and reads what it missed from the
//! log later; it stops neither the process nor another reader.

use std::os::fd::BorrowedFd;

use dayfly_guest_proto::{StreamKind, WindowError};
use dayfly_types::exec::LogExtent;

use super::log::Log;
use super::reader::{Position, Reader};
use super::ring::clamp;
use crate::files::Outlets;
use crate::poller::{ReadOutcome, Source};
use crate::port::OUTPUT_BYTES_MAX;

/// What the process writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mouth {
    Pipe,
    Terminal,
}

#[derive(Debug)]
pub(super) struct Output {
    stream: StreamKind,
    mouth: Mouth,
    source: Option<Source>,
    log: Log,
    has_process_ended: bool,
    /// Where the output of the process itself ends. Known at some moment after its end.
    process_end: Option<u64>,
}

impl Output {
    /// Without a source the stream is empty: a process with a terminal has no stderr of its own.
    pub(super) fn new(stream: StreamKind, mouth: Mouth, source: Option<Source>, log: Log) -> Self {
        Self {
            stream,
            mouth,
            source,
            log,
            has_process_ended: false,
            process_end: None,
        }
    }

    pub(super) const fn extent(&self) -> LogExtent {
        self.log.extent()
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.log.disk_bytes()
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(Source::as_fd)
    }

    /// A place in the log for a new reader.
    pub(super) fn position(&mut self, offset: u64) -> Position {
        // Who begins here has what comes before.
        self.log.note_delivered(offset);
        Position::new(offset, self.log.extent().end)
    }

    /// Takes credit of a reader.
    pub(super) fn grant(&mut self, position: &mut Position, bytes: u32) -> Result<(), WindowError> {
        position.grant(bytes)?;
        self.log.note_delivered(position.delivered());
        Ok(())
    }

    /// The main process is over. What is in the pipe now still belongs to it; children may go on
    /// writing for ever, and nobody must wait for them.
    pub(super) fn note_process_end(&mut self) {
        self.has_process_ended = true;
        let end = self.log.extent().end;
        self.process_end = match (&mut self.source, self.mouth) {
            (None, _) => Some(end),
            (Some(pipe), Mouth::Pipe) => {
                pipe.may_read = true;
                let left = rustix::io::ioctl_fionread(pipe.as_fd()).unwrap_or(0);
                Some(end + left)
            }
            // Bytes may still be between the two sides of a terminal, where no count sees them.
            // Its last process was hung up, so a read finds all of them and then the end.
            (Some(terminal), Mouth::Terminal) => {
                terminal.may_read = true;
                None
            }
        };
    }

    /// Moves bytes into the log and to readers. Gives whether any moved.
    pub(super) fn pump(
        &mut self,
        readers: &mut [Reader],
        mut outlets: Option<&mut Outlets<'_>>,
        buffer: &mut [u8],
    ) -> bool {
        let mut is_busy = false;
        if let Some(outlets) = outlets.as_deref_mut() {
            for reader in readers.iter_mut() {
                is_busy |= self.send_stored(reader, outlets, buffer);
            }
        }
        is_busy |= self.take_in(readers, outlets.as_deref_mut(), buffer);
        if let Some(outlets) = outlets {
            for reader in readers {
                is_busy |= self.end_stream(reader, outlets);
            }
        }
        is_busy
    }

    /// Sends a reader one buffer of what it has missed.
    fn send_stored(
        &mut self,
        reader: &mut Reader,
        outlets: &mut Outlets<'_>,
        buffer: &mut [u8],
    ) -> bool {
        let channel = reader.channel;
        let Some(position) = reader.position(self.stream) else {
            return false;
        };
        if position.has_ended() || outlets.bulk.len() >= OUTPUT_BYTES_MAX {
            return false;
        }
        let LogExtent { start, end } = self.log.extent();
        let from = position.offset().max(start);
        let until = self.end_for(position).map_or(end, |last| last.min(end));
        let most = buffer.len().min(position.credit());
        let wanted = clamp(until.saturating_sub(from), most);
        if wanted == 0 {
            return false;
        }
        let count = self.log.read(from, &mut buffer[..wanted]);
        if count > 0 {
            position.skip_to(from);
            let place = (channel, self.stream);
            position.send(place, &buffer[..count], outlets.encoder, outlets.bulk);
        }
        true
    }

    /// Reads what there is, up to one buffer, and gives it to every reader that had everything
    /// before it: the log need not be read for them.
    fn take_in(
        &mut self,
        readers: &mut [Reader],
        outlets: Option<&mut Outlets<'_>>,
        buffer: &mut [u8],
    ) -> bool {
        let count = self.fill(buffer);
        if count > 0 {
            let bytes = &buffer[..count];
            let offset = self.log.extent().end;
            self.log.append(bytes);
            if let Some(outlets) = outlets {
                for reader in readers {
                    self.send_new(reader, offset, bytes, outlets);
                }
            }
        }
        if self.source.as_ref().is_none_or(|source| !source.may_read) {
            self.note_silence();
        }
        count > 0
    }

    /// Reads until nothing is left or the buffer or the log is full. A terminal gives little at a
    /// time, and every byte costs less in a larger piece.
    fn fill(&mut self, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        let Some(source) = self.source.as_mut().filter(|source| source.may_read) else {
            return filled;
        };
        let wanted = clamp(self.log.room(), buffer.len());
        while filled < wanted && source.may_read {
            match source.read(&mut buffer[filled..wanted]) {
                ReadOutcome::Bytes(count) => filled += count,
                ReadOutcome::Blocked => {}
                ReadOutcome::Ended => {
                    // A terminal that no process has open may be opened again, by its own name;
                    // to close our side would kill the process.
                    if self.mouth == Mouth::Pipe || self.has_process_ended {
                        self.source = None;
                    }
                    break;
                }
            }
        }
        filled
    }

    fn send_new(&self, reader: &mut Reader, offset: u64, bytes: &[u8], outlets: &mut Outlets<'_>) {
        let channel = reader.channel;
        let Some(position) = reader.position(self.stream) else {
            return;
        };
        let is_there = position.offset() == offset && !position.has_ended();
        if !is_there || outlets.bulk.len() >= OUTPUT_BYTES_MAX {
            return;
        }
        let until = self.end_for(position).unwrap_or(u64::MAX);
        let bytes = &bytes[..clamp(until.saturating_sub(offset), bytes.len())];
        let place = (channel, self.stream);
        position.send(place, bytes, outlets.encoder, outlets.bulk);
    }

    fn end_stream(&self, reader: &mut Reader, outlets: &mut Outlets<'_>) -> bool {
        let channel = reader.channel;
        let Some(position) = reader.position(self.stream) else {
            return false;
        };
        let Some(end) = self.end_for(position).filter(|_| !position.has_ended()) else {
            return false;
        };
        // A reader that is too far behind may find nothing left of what it waits for.
        let is_there = position.offset().max(self.log.extent().start) >= end;
        if !is_there || outlets.bulk.len() >= OUTPUT_BYTES_MAX {
            return false;
        }
        position.skip_to(end);
        position.end((channel, self.stream), outlets.encoder, outlets.bulk);
        true
    }

    /// Where the stream of a reader ends, once that is known.
    fn end_for(&self, position: &Position) -> Option<u64> {
        self.process_end.map(|end| end.max(position.attached_end))
    }

    /// There is nothing to read: if the process is over, that was all of it.
    fn note_silence(&mut self) {
        let end = self.log.extent().end;
        if self.has_process_ended {
            self.process_end = Some(self.process_end.map_or(end, |last| last.min(end)));
        }
    }

    /// Drops the log. Readers of an ended process come to the end of their stream at once.
    pub(super) fn forget(&mut self) {
        self.log.clear();
        if self.has_process_ended {
            self.process_end = Some(self.log.extent().end);
        }
    }

    pub(super) fn wake(&mut self, number: i32) {
        if let Some(source) = &mut self.source {
            source.wake(number);
        }
    }

    /// Whether there is nothing to read from the process any more.
    pub(super) const fn is_closed(&self) -> bool {
        self.source.is_none()
    }

    pub(super) fn into_source(self) -> Option<Source> {
        self.source
    }
}
