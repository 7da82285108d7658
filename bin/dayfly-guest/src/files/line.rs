//! What a child says to the agent that forked it.

use std::io;
use std::os::fd::BorrowedFd;

use dayfly_guest_proto::message::AnswerResult;
use dayfly_guest_proto::{Answer, GuestError, GuestMessage, Response};

use super::{CHUNK_BYTES, TAG_ANSWER, TAG_ANSWER_PART};

/// The child's end of the socket. An error means that the agent is no longer interested.
#[derive(Debug)]
pub(super) struct Line<'a> {
    socket: BorrowedFd<'a>,
    call: u64,
}

impl<'a> Line<'a> {
    pub(super) const fn new(socket: BorrowedFd<'a>, call: u64) -> Self {
        Self { socket, call }
    }
}

impl Line<'_> {
    pub(super) const fn socket(&self) -> BorrowedFd<'_> {
        self.socket
    }

    pub(super) fn send(&self, tag: u8, bytes: &[u8]) -> io::Result<()> {
        rustix::io::retry_on_intr(|| rustix::io::write(self.socket, &[&[tag], bytes].concat()))?;
        Ok(())
    }

    pub(super) fn receive(&self, packet: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| {
            rustix::io::read(self.socket, &mut *packet)
        })?)
    }

    pub(super) fn answer(&self, result: Result<Response, GuestError>) -> io::Result<()> {
        let answer = Answer {
            call: self.call,
            result: AnswerResult::from(result),
        };
        let bytes = serde_json::to_vec(&GuestMessage::Answer(answer)).map_err(io::Error::other)?;
        let mut pieces = bytes.chunks(CHUNK_BYTES).peekable();
        while let Some(piece) = pieces.next() {
            let tag = if pieces.peek().is_some() {
                TAG_ANSWER_PART
            } else {
                TAG_ANSWER
            };
            self.send(tag, piece)?;
        }
        Ok(())
    }
}
