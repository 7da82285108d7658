//! Stands between the guest's socket and the HTTP library, and lets one head through at a time.
//!
//! A head that is refused is not shown to the library. In its place goes a plain one with a mark,
//! so that the refusal is answered in its turn, behind the answers to earlier requests.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use dayfly_types::egress::DenyReason;
use dayfly_types::limits::{EGRESS_PEEK_BYTES_MAX, EGRESS_PEEK_DEADLINE};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::head::{Framing, HeadReader};
use crate::connection::Stream;

const READ_BYTES: usize = 8 << 10;
const IN_PLACE_OF_A_REFUSED_HEAD: &[u8] = b"GET / HTTP/1.1\r\nhost: refused\r\n\r\n";

/// What the gate says about one head, in the order in which the library sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Passed,
    /// Nothing behind it is looked at, so it must be the last one.
    PassedAsLast,
    Refused(DenyReason),
}

/// The marks of heads that the library has not handed over yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks(Arc<Mutex<VecDeque<Mark>>>);

impl Marks {
    fn push(&self, mark: Mark) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(mark);
    }

    /// The mark of the request that the library hands over now.
    pub(super) fn next(&self) -> Mark {
        let mark = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        // The library made a request of something that was no head.
        mark.unwrap_or(Mark::Refused(DenyReason::Protocol))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Collecting a head.
    Head,
    /// So many bytes may pass; then the next head begins.
    Passing(u64),
    /// Everything passes.
    Open,
    /// So many bytes may pass, and nothing ever again.
    Last(u64),
}

#[derive(Debug)]
pub(super) struct Gate {
    stream: Stream,
    /// Read from the guest and not passed on.
    waiting: Vec<u8>,
    reader: HeadReader,
    state: State,
    marks: Marks,
    /// By when the head that has begun must be whole.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Gate {
    pub(super) fn new(stream: Stream, opening: Vec<u8>) -> (Self, Marks) {
        let marks = Marks::default();
        let gate = Self {
            stream,
            waiting: opening,
            reader: HeadReader::default(),
            state: State::Head,
            marks: marks.clone(),
            deadline: None,
        };
        (gate, marks)
    }

    /// Looks for a whole head in what waits. True when the state has changed.
    fn look(&mut self) -> bool {
        // Empty lines in front of a request are dropped, as the standard asks.
        let lines = self.waiting.chunks_exact(2);
        let empty = 2 * lines.take_while(|line| *line == b"\r\n").count();
        if empty > 0 {
            self.waiting.drain(..empty);
            return true;
        }
        match self.reader.look(&self.waiting) {
            Ok(Some(head)) if head.length <= EGRESS_PEEK_BYTES_MAX => {
                let (mark, state) = match head.body {
                    Framing::Last => (Mark::PassedAsLast, State::Open),
                    Framing::Length(body) => {
                        (Mark::Passed, State::Passing(head.length as u64 + body))
                    }
                };
                self.marks.push(mark);
                self.state = state;
            }
            Ok(None) if self.waiting.len() < EGRESS_PEEK_BYTES_MAX => return false,
            Ok(_) | Err(_) => self.refuse(DenyReason::Protocol),
        }
        self.deadline = None;
        true
    }

    fn refuse(&mut self, reason: DenyReason) {
        self.waiting = IN_PLACE_OF_A_REFUSED_HEAD.to_vec();
        self.marks.push(Mark::Refused(reason));
        self.state = State::Last(self.waiting.len() as u64);
        self.deadline = None;
    }

    /// Reads more of a head. Ready when there is more, with false at the end.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if !self.waiting.is_empty() {
            let deadline = self
                .deadline
                .get_or_insert_with(|| Box::pin(sleep(EGRESS_PEEK_DEADLINE)));
            if deadline.as_mut().poll(context).is_ready() {
                self.refuse(DenyReason::Timeout);
                return Poll::Ready(Ok(true));
            }
        }
        let mut bytes = [0; READ_BYTES];
        let mut buffer = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        let read = buffer.filled();
        self.waiting.extend_from_slice(read);
        Poll::Ready(Ok(!read.is_empty()))
    }

    /// Passes on at most `most` bytes and says how many.
    fn poll_pass(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        most: u64,
    ) -> Poll<io::Result<u64>> {
        let most = usize::try_from(most)
            .unwrap_or(usize::MAX)
            .min(buffer.remaining());
        if !self.waiting.is_empty() {
            let count = most.min(self.waiting.len());
            buffer.put_slice(&self.waiting[..count]);
            self.waiting.drain(..count);
            return Poll::Ready(Ok(count as u64));
        }
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut part))?;
        let count = part.filled().len();
        buffer.advance(count);
        Poll::Ready(Ok(count as u64))
    }
}

impl AsyncRead for Gate {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let gate = &mut *self;
        loop {
            match gate.state {
                State::Head => {
                    if !gate.look() && !ready!(gate.poll_more(context))? {
                        return Poll::Ready(Ok(()));
                    }
                }
                State::Passing(0) => {
                    gate.waiting.shrink_to(READ_BYTES);
                    gate.state = State::Head;
                }
                // The answer ends the connection; the library has nothing to read until then.
                State::Last(0) => return Poll::Pending,
                State::Passing(left) => {
                    let count = ready!(gate.poll_pass(context, buffer, left))?;
                    gate.state = State::Passing(left - count);
                    return Poll::Ready(Ok(()));
                }
                State::Last(left) => {
                    let count = ready!(gate.poll_pass(context, buffer, left))?;
                    gate.state = State::Last(left - count);
                    return Poll::Ready(Ok(()));
                }
                State::Open => {
                    ready!(gate.poll_pass(context, buffer, u64::MAX))?;
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for Gate {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
