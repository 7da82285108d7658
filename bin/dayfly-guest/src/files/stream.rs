//! The two directions of a stream, as the child sees them.

use std::io::{self, Read, Write};

use dayfly_guest_proto::{ChannelId, Event, GuestError, GuestMessage};
use dayfly_types::limits::FILE_BYTES_MAX;

use super::line::Line;
use super::{CHUNK_BYTES, PACKET_BYTES_MAX, TAG_COMMIT, TAG_DATA, TAG_END, TAG_VERDICT};

/// The last word about a stream that broke.
pub(super) fn fail(line: &Line<'_>, channel: ChannelId, error: GuestError) -> io::Result<()> {
    say(line, Event::StreamFailed { channel, error })
}

/// The last word about a stream to the guest that arrived.
pub(super) fn written(line: &Line<'_>, channel: ChannelId, bytes: u64) -> io::Result<()> {
    say(line, Event::WriteDone { channel, bytes })
}

fn say(line: &Line<'_>, event: Event) -> io::Result<()> {
    let bytes = serde_json::to_vec(&GuestMessage::Event(event)).map_err(io::Error::other)?;
    line.send(TAG_VERDICT, &bytes)
}

/// Bytes on their way to the host, in packets as large as they may be.
#[derive(Debug)]
pub(super) struct ToHost<'a> {
    line: &'a Line<'a>,
    packet: Vec<u8>,
    total: u64,
}

impl<'a> ToHost<'a> {
    pub(super) fn new(line: &'a Line<'a>) -> Self {
        Self {
            line,
            packet: Vec::with_capacity(CHUNK_BYTES),
            total: 0,
        }
    }

    /// How many bytes were written so far.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Sends what is left, and the end.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.flush()?;
        self.line.send(TAG_END, &[])
    }
}

impl Write for ToHost<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.packet.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        let count = bytes.len().min(CHUNK_BYTES - self.packet.len());
        self.packet.extend_from_slice(&bytes[..count]);
        self.total += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.packet.is_empty() {
            self.line.send(TAG_DATA, &self.packet)?;
            self.packet.clear();
        }
        Ok(())
    }
}

/// Bytes that come from the host, to the end that the host says.
#[derive(Debug)]
pub(super) struct FromHost<'a> {
    line: &'a Line<'a>,
    packet: Vec<u8>,
    /// What of the packet is still to be read.
    rest: std::ops::Range<usize>,
    total: u64,
    state: FromHostState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FromHostState {
    Open,
    /// The host said that this is all.
    Complete,
    /// Nobody wants it any more.
    Dropped,
    /// More than may be sent.
    TooLong,
}

impl<'a> FromHost<'a> {
    pub(super) fn new(line: &'a Line<'a>) -> Self {
        Self {
            line,
            packet: vec![0; PACKET_BYTES_MAX],
            rest: 0..0,
            total: 0,
            state: FromHostState::Open,
        }
    }

    /// How many bytes came so far.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn was_dropped(&self) -> bool {
        self.state == FromHostState::Dropped
    }

    pub(super) fn was_too_long(&self) -> bool {
        self.state == FromHostState::TooLong
    }

    fn fill(&mut self) -> io::Result<()> {
        let count = self.line.receive(&mut self.packet).unwrap_or(0);
        match self.packet[..count].first() {
            Some(&TAG_DATA) => {
                self.rest = 1..count;
                self.total += (count - 1) as u64;
                if self.total > FILE_BYTES_MAX {
                    self.state = FromHostState::TooLong;
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
            }
            Some(&TAG_COMMIT) => self.state = FromHostState::Complete,
            _ => {
                self.state = FromHostState::Dropped;
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        Ok(())
    }
}

impl Read for FromHost<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() && self.state == FromHostState::Open {
            self.fill()?;
        }
        match self.state {
            FromHostState::Open | FromHostState::Complete => {}
            FromHostState::Dropped => return Err(io::ErrorKind::BrokenPipe.into()),
            FromHostState::TooLong => return Err(io::ErrorKind::FileTooLarge.into()),
        }
        let count = into.len().min(self.rest.len());
        let end = self.rest.start + count;
        into[..count].copy_from_slice(&self.packet[self.rest.start..end]);
        self.rest.start = end;
        Ok(count)
    }
}
