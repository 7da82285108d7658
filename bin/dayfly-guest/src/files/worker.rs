//! The agent's side of a file operation.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use dayfly_guest_proto::message::AnswerResult;
use dayfly_guest_proto::{
    Answer, ChannelId, DataHeader, Event, FrameEncoder, GuestError, GuestErrorCode, GuestMessage,
    ReceiveWindow, SendWindow, StreamKind, WindowError,
};
use dayfly_types::limits::{AGENT_CALL_DEADLINE, CONTROL_MESSAGE_BYTES_MAX};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, kill_process};

use super::job::Flow;
use super::{
    CHUNK_BYTES, Job, TAG_ANSWER, TAG_ANSWER_PART, TAG_COMMIT, TAG_DATA, TAG_END, TAG_VERDICT,
};
use crate::clock::monotonic_ms;
use crate::poller::{Poller, ReadOutcome, Source};
use crate::port::OUTPUT_BYTES_MAX;
use crate::sys;

/// Where the words and bytes of a worker go.
#[derive(Debug)]
pub(crate) struct Outlets<'a> {
    pub(crate) encoder: FrameEncoder,
    pub(crate) control: &'a mut Vec<u8>,
    pub(crate) bulk: &'a mut Vec<u8>,
}

impl Outlets<'_> {
    pub(crate) fn send(&mut self, message: &GuestMessage) {
        // Messages are plain data with text keys, which always serialise.
        let bytes = serde_json::to_vec(message).unwrap_or_default();
        self.encoder.control(&bytes, self.control);
    }
}

/// One operation under way.
#[derive(Debug)]
pub(crate) struct Worker {
    pid: Pid,
    socket: Source,
    call: u64,
    is_answered: bool,
    answer: Vec<u8>,
    transfer: Transfer,
    is_watch: bool,
    deadline_ms: Option<u64>,
    is_over: bool,
}

#[derive(Debug)]
enum Transfer {
    None,
    Read {
        channel: ChannelId,
        window: SendWindow,
    },
    Write {
        channel: ChannelId,
        window: ReceiveWindow,
        waiting: VecDeque<Vec<u8>>,
    },
}

impl Worker {
    /// Forks a child for the job.
    pub(crate) fn start(job: Job, poller: &Poller) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let pid = match sys::fork()? {
            sys::Fork::Parent(pid) => pid,
            sys::Fork::Child => job.run(theirs),
        };
        Self::watch(pid, ours, &job, poller)
    }

    fn watch(pid: Pid, socket: OwnedFd, job: &Job, poller: &Poller) -> io::Result<Self> {
        let transfer = match job.operation.flow() {
            Flow::ToHost(channel) => Transfer::Read {
                channel,
                window: SendWindow::default(),
            },
            Flow::ToGuest(channel) => Transfer::Write {
                channel,
                window: ReceiveWindow::default(),
                waiting: VecDeque::new(),
            },
            Flow::None => Transfer::None,
        };
        let patience_ms = u64::try_from(AGENT_CALL_DEADLINE.as_millis()).unwrap_or(u64::MAX);
        Ok(Self {
            pid,
            socket: poller.watch(socket)?,
            call: job.call,
            is_answered: false,
            answer: Vec::new(),
            transfer,
            is_watch: job.operation.is_watch(),
            deadline_ms: Some(monotonic_ms() + patience_ms),
            is_over: false,
        })
    }

    pub(crate) fn channel(&self) -> Option<ChannelId> {
        match &self.transfer {
            Transfer::None => None,
            Transfer::Read { channel, .. } | Transfer::Write { channel, .. } => Some(*channel),
        }
    }

    pub(crate) const fn is_watch(&self) -> bool {
        self.is_watch
    }

    /// Until when the child must have answered the call.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.deadline_ms
            .filter(|_| !self.is_answered && !self.is_over)
    }

    /// Gives up on a child that hangs in a path.
    pub(crate) fn expire(&mut self, now_ms: u64) {
        if self
            .deadline_ms()
            .is_some_and(|deadline| deadline <= now_ms)
        {
            self.deadline_ms = None;
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(crate) fn grant(&mut self, bytes: u32) -> Result<(), WindowError> {
        match &mut self.transfer {
            Transfer::Read { window, .. } => window.grant(bytes),
            Transfer::None | Transfer::Write { .. } => Ok(()),
        }
    }

    /// Takes one data frame of the host.
    pub(crate) fn accept(&mut self, header: DataHeader, bytes: &[u8]) -> Result<(), WindowError> {
        let Transfer::Write {
            window, waiting, ..
        } = &mut self.transfer
        else {
            return Ok(());
        };
        window.accept(header.offset, bytes.len(), header.is_end)?;
        for chunk in bytes.chunks(CHUNK_BYTES) {
            waiting.push_back([&[TAG_DATA], chunk].concat());
        }
        if header.is_end {
            waiting.push_back(vec![TAG_COMMIT]);
        }
        Ok(())
    }

    /// Moves packets both ways. Gives whether any moved.
    pub(crate) fn pump(&mut self, outlets: &mut Outlets<'_>, scratch: &mut [u8]) -> bool {
        let sent = self.pump_out(outlets);
        let mut received = false;
        while !self.is_over && self.may_receive(outlets) {
            match self.socket.read(scratch) {
                ReadOutcome::Bytes(count) => self.receive(&scratch[..count], outlets),
                ReadOutcome::Blocked => break,
                ReadOutcome::Ended => self.close(outlets),
            }
            received = true;
        }
        sent | received
    }

    fn may_receive(&self, outlets: &Outlets<'_>) -> bool {
        // A packet is taken whole, so there must be credit for the longest.
        let has_credit = match &self.transfer {
            Transfer::Read { window, .. } => window.credit() >= CHUNK_BYTES,
            Transfer::None | Transfer::Write { .. } => true,
        };
        let has_room = outlets.bulk.len() < OUTPUT_BYTES_MAX;
        self.socket.may_read && has_credit && has_room
    }

    fn receive(&mut self, packet: &[u8], outlets: &mut Outlets<'_>) {
        let Some((tag, bytes)) = packet.split_first() else {
            return;
        };
        match *tag {
            TAG_ANSWER_PART => self.collect(bytes),
            TAG_ANSWER => {
                self.collect(bytes);
                self.is_answered = true;
                outlets
                    .encoder
                    .control(&std::mem::take(&mut self.answer), outlets.control);
            }
            TAG_DATA | TAG_END => {
                let Transfer::Read { channel, window } = &mut self.transfer else {
                    return;
                };
                let is_end = *tag == TAG_END;
                let Ok(offset) = window.send(bytes.len(), is_end) else {
                    return;
                };
                let stream = StreamKind::File;
                let header = DataHeader {
                    channel: *channel,
                    stream,
                    offset,
                    is_end,
                };
                outlets.encoder.data(header, bytes, outlets.bulk);
                self.is_over = is_end;
            }
            TAG_VERDICT => {
                outlets.encoder.control(bytes, outlets.control);
                self.is_over = true;
            }
            _ => {}
        }
    }

    fn collect(&mut self, bytes: &[u8]) {
        if self.answer.len() + bytes.len() <= CONTROL_MESSAGE_BYTES_MAX {
            self.answer.extend_from_slice(bytes);
        }
    }

    /// The child is gone. If it did not finish its work, say so in its place.
    fn close(&mut self, outlets: &mut Outlets<'_>) {
        self.is_over = true;
        let error = GuestError::new(GuestErrorCode::Io, "the file operation did not finish");
        if !self.is_answered {
            let result = AnswerResult::Error(error);
            outlets.send(&GuestMessage::Answer(Answer {
                call: self.call,
                result,
            }));
        } else if let Some(channel) = self.channel() {
            outlets.send(&GuestMessage::Event(Event::StreamFailed { channel, error }));
        }
    }

    fn pump_out(&mut self, outlets: &mut Outlets<'_>) -> bool {
        let Transfer::Write {
            channel,
            window,
            waiting,
        } = &mut self.transfer
        else {
            return false;
        };
        let mut progressed = false;
        while let Some(packet) = waiting.front().filter(|_| self.socket.may_write) {
            // A child that is gone takes nothing more; its last word is still to be read.
            let is_sent = self.socket.write(packet).is_none_or(|count| count > 0);
            if !is_sent {
                break;
            }
            if let Some(credit) = window.take(packet.len() - 1) {
                outlets
                    .encoder
                    .credit(*channel, StreamKind::File, credit, outlets.bulk);
            }
            waiting.pop_front();
            progressed = true;
        }
        progressed
    }

    /// Ends the operation. A half-written file is removed by the child, which sees its socket
    /// close; anything else is stopped where it is.
    pub(crate) fn discard(self) {
        if !matches!(self.transfer, Transfer::Write { .. }) {
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }

    pub(crate) fn wake(&mut self, number: i32) {
        self.socket.wake(number);
    }
}
