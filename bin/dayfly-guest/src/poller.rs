//! Waiting for descriptors.
//!
//! Everything is registered once and edge-triggered: a [`Source`] remembers that it is ready until
//! a call says otherwise. A virtio port needs this, because it reports a hang-up for as long as no
//! host is connected, and a level-triggered loop would spin on it for ever.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

const EVENTS_AT_ONCE: usize = 64;

#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

/// One descriptor and what may be worth a try on it.
#[derive(Debug)]
pub(crate) struct Source {
    descriptor: OwnedFd,
    pub(crate) may_read: bool,
    pub(crate) may_write: bool,
}

impl Poller {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        })
    }

    /// Watches a descriptor until it is closed. It must be non-blocking.
    pub(crate) fn watch(&self, descriptor: OwnedFd) -> io::Result<Source> {
        self.watch_borrowed(descriptor.as_fd())?;
        // Ready until proven otherwise: the first try is cheap and an early edge is not lost.
        Ok(Source {
            descriptor,
            may_read: true,
            may_write: true,
        })
    }

    pub(crate) fn watch_borrowed(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let number = u64::from(descriptor.as_raw_fd().unsigned_abs());
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        epoll::add(
            &self.epoll,
            descriptor,
            epoll::EventData::new_u64(number),
            flags,
        )?;
        Ok(())
    }

    /// Waits and tells each descriptor that has news.
    pub(crate) fn wait(
        &self,
        timeout_ms: Option<u64>,
        mut wake: impl FnMut(RawFd),
    ) -> io::Result<()> {
        let timeout = timeout_ms.map(|ms| Timespec {
            tv_sec: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(ms % 1000 * 1_000_000).unwrap_or(0),
        });
        let mut buffer = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_AT_ONCE];
        match epoll::wait(&self.epoll, &mut buffer, timeout.as_ref()) {
            Ok((events, _)) => {
                for event in events {
                    wake(RawFd::try_from(event.data.u64()).unwrap_or(-1));
                }
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// What a non-blocking read gave.
#[derive(Debug)]
pub(crate) enum ReadOutcome {
    Bytes(usize),
    Blocked,
    Ended,
}

impl Source {
    /// Takes note of news, if the number is the one of this descriptor.
    pub(crate) fn wake(&mut self, number: RawFd) {
        if self.descriptor.as_raw_fd() == number {
            self.may_read = true;
            self.may_write = true;
        }
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Reads once; any failure counts as the end, because nothing better can be done about it.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> ReadOutcome {
        loop {
            match rustix::io::read(&self.descriptor, &mut *buffer) {
                Ok(0) => return self.quiet(ReadOutcome::Ended),
                Ok(count) => return ReadOutcome::Bytes(count),
                // A socket reports once that its peer left without reading everything, before it
                // gives out what the peer had still said.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(Errno::AGAIN) => return self.quiet(ReadOutcome::Blocked),
                Err(_) => return self.quiet(ReadOutcome::Ended),
            }
        }
    }

    /// Writes once. `None` when the other end is gone, zero when it takes nothing now.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Option<usize> {
        loop {
            match rustix::io::write(&self.descriptor, bytes) {
                Ok(count) => return Some(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.may_write = false;
                    return Some(0);
                }
                Err(_) => return None,
            }
        }
    }

    fn quiet(&mut self, outcome: ReadOutcome) -> ReadOutcome {
        self.may_read = false;
        outcome
    }
}
