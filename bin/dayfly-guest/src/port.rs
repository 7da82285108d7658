//! One virtio port: where its device is, what came in, what waits to go out.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use dayfly_guest_proto::{GuestPort, PortRole};
use rustix::fs::{Mode, OFlags};

use crate::clock::monotonic_ms;
use crate::devices;
use crate::poller::{Poller, ReadOutcome, Source};

/// Output that waits for the host before the agent stops producing more.
pub(crate) const OUTPUT_BYTES_MAX: usize = 512 << 10;

/// How long a port may be without a host before its conversation counts as lost. News of a host
/// that left may arrive after the first bytes of the host that followed it.
const HANG_UP_PATIENCE_MS: u64 = 1000;

#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) parser: GuestPort,
    source: Source,
    /// Since when no host is connected.
    hung_up_ms: Option<u64>,
    output: Vec<u8>,
    written: usize,
}

/// What a try to read gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Intake {
    /// Bytes went to the parser.
    Some,
    Nothing,
    /// No host is connected.
    HangUp,
}

impl Port {
    pub(crate) fn new(role: PortRole, descriptor: OwnedFd, poller: &Poller) -> io::Result<Self> {
        Ok(Self {
            parser: GuestPort::new(role),
            source: poller.watch(descriptor)?,
            hung_up_ms: None,
            output: Vec::new(),
            written: 0,
        })
    }

    pub(crate) fn wake(&mut self, number: i32) {
        self.source.wake(number);
    }

    /// Reads once into the parser.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) -> Intake {
        if !self.source.may_read {
            return Intake::Nothing;
        }
        match self.source.read(scratch) {
            ReadOutcome::Bytes(count) => {
                self.hung_up_ms = None;
                self.parser.push(&scratch[..count]);
                Intake::Some
            }
            ReadOutcome::Blocked => {
                self.hung_up_ms = None;
                Intake::Nothing
            }
            ReadOutcome::Ended => {
                self.hung_up_ms.get_or_insert_with(monotonic_ms);
                Intake::HangUp
            }
        }
    }

    /// When an absent host counts as gone for good.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.hung_up_ms.map(|since| since + HANG_UP_PATIENCE_MS)
    }

    /// Whether the host has just been away for too long. Says so once.
    pub(crate) fn expire(&mut self, now_ms: u64) -> bool {
        let is_gone = self
            .deadline_ms()
            .is_some_and(|deadline| deadline <= now_ms);
        if is_gone {
            self.hung_up_ms = None;
        }
        is_gone
    }

    /// Where frames are appended. [`Port::has_room`] says when it is time to stop.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    pub(crate) fn has_room(&self) -> bool {
        self.output.len() < OUTPUT_BYTES_MAX
    }

    /// Writes what the device takes. Gives whether it took anything.
    pub(crate) fn flush(&mut self) -> bool {
        let mut progressed = false;
        while self.source.may_write && self.written < self.output.len() {
            // With nobody there the source turns quiet as well: a host that comes back opens a
            // new conversation, for which this output is void.
            let count = self.source.write(&self.output[self.written..]).unwrap_or(0);
            self.source.may_write &= count > 0;
            self.written += count;
            progressed |= count > 0;
        }
        if progressed {
            self.output.drain(..self.written);
            self.written = 0;
        }
        progressed
    }

    /// Drops what was not written: it belongs to a conversation that is over.
    pub(crate) fn discard_output(&mut self) {
        self.output.clear();
        self.written = 0;
    }
}

/// Opens the port that the host gave this name. Waits for the device to appear.
pub(crate) fn open_named(name: &str) -> io::Result<OwnedFd> {
    let is_named = |path: &PathBuf| {
        fs::read_to_string(path.join("name")).is_ok_and(|text| text.trim_end() == name)
    };
    let device = devices::wait_for(|| {
        let entries = fs::read_dir("/sys/class/virtio-ports").ok()?;
        let port = entries.flatten().map(|entry| entry.path()).find(is_named)?;
        Some(PathBuf::from("/dev").join(port.file_name()?))
    })?;
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(rustix::fs::open(device, flags, Mode::empty())?)
}
