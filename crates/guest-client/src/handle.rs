//! The two ends of a channel that a session holds: the one that reads and the one that sends.

use std::sync::Arc;

use dayfly_guest_proto::{ChannelId, DataHeader, StreamKind};
use dayfly_types::limits::FRAME_PAYLOAD_BYTES_MAX;
use tokio::sync::Notify;

use crate::channel::{Outcome, Taken};
use crate::conversation::{Conversation, LATE_ALLOWANCE};
use crate::error::{ConversationLost, StreamError};

/// The owner of a channel. Dropping it closes the channel and cancels what runs on it.
#[derive(Debug)]
pub(crate) struct ChannelHandle {
    pub(crate) conversation: Arc<Conversation>,
    pub(crate) id: ChannelId,
    pub(crate) news: Arc<Notify>,
    pub(crate) credit: Arc<Notify>,
}

/// What a channel gives to the one who reads it.
#[derive(Debug)]
pub(crate) enum News {
    Bytes(Piece),
    Drained(Option<Outcome>),
}

/// A piece of a stream.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) stream: StreamKind,
    /// Bytes before this piece that the guest no longer has.
    pub(crate) gap: u64,
    pub(crate) bytes: bytes::Bytes,
}

impl ChannelHandle {
    /// Waits for bytes or the end. Cancel safe: bytes are taken only when they are given.
    pub(crate) async fn next(&self, needs_outcome: bool) -> Result<News, ConversationLost> {
        loop {
            if let Some(reason) = self.conversation.lost() {
                return Err(reason);
            }
            if let Some(news) = self.take(needs_outcome) {
                return Ok(news);
            }
            self.news.notified().await;
        }
    }

    fn take(&self, needs_outcome: bool) -> Option<News> {
        let mut state = self.conversation.lock();
        let channel = state.channels.get_mut(&self.id)?;
        if let Some(taken) = channel.take() {
            let Taken {
                stream,
                gap,
                bytes,
                credit,
            } = taken;
            if let Some(credit) = credit {
                *state.credits.entry((self.id, stream)).or_default() += credit;
                self.conversation.bulk_nudge.notify_one();
            }
            return Some(News::Bytes(Piece { stream, gap, bytes }));
        }
        let has_failed = matches!(channel.outcome, Some(Outcome::Failed(_)));
        let has_outcome = !needs_outcome || channel.outcome.is_some();
        let is_done = has_failed || (channel.is_drained() && has_outcome);
        is_done.then(|| News::Drained(channel.outcome.clone()))
    }

    /// The guest refused to open the channel, so there is nothing to cancel.
    pub(crate) fn forget(&self) {
        let mut state = self.conversation.lock();
        if state.channels.remove(&self.id).is_some() {
            state.late_allowance = state.late_allowance.saturating_add(LATE_ALLOWANCE);
        }
    }
}

impl Drop for ChannelHandle {
    fn drop(&mut self) {
        let mut state = self.conversation.lock();
        state.credits.retain(|(channel, _), _| *channel != self.id);
        let Some(channel) = state.channels.remove(&self.id) else {
            return;
        };
        state.late_allowance = state.late_allowance.saturating_add(LATE_ALLOWANCE);
        if !channel.is_over() {
            state.cancels.push(self.id);
            self.conversation.control_nudge.notify_one();
        }
        // Whoever waits for credit of this channel must learn that it is gone.
        channel.credit.notify_waiters();
        channel.credit.notify_one();
    }
}

/// The sending side of a channel. May outlive its owner; sending fails then.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) conversation: Arc<Conversation>,
    pub(crate) id: ChannelId,
    pub(crate) credit: Arc<Notify>,
}

enum SendStep {
    Sent(usize),
    NoCredit,
}

impl Sender {
    /// Sends all bytes, as fast as the guest gives credit. If the future is dropped, some prefix
    /// of them was sent.
    pub(crate) async fn send(&self, mut bytes: bytes::Bytes) -> Result<(), StreamError> {
        while !bytes.is_empty() {
            let noticed = self.credit.notified();
            match self.send_some(&bytes, false).await? {
                SendStep::Sent(count) => drop(bytes.split_to(count)),
                SendStep::NoCredit => noticed.await,
            }
        }
        Ok(())
    }

    /// Ends the stream. Repeating it does nothing.
    pub(crate) async fn end(&self) -> Result<(), StreamError> {
        match self.send_some(&[], true).await {
            Ok(_) | Err(StreamError::Ended) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn send_some(&self, bytes: &[u8], is_end: bool) -> Result<SendStep, StreamError> {
        let lost = || StreamError::Lost(self.conversation.lost_reason());
        // The place in the queue first: once credit is spent the frame must go out.
        let place = tokio::select! {
            place = self.conversation.bulk_queue.reserve() => place.map_err(|_| lost())?,
            reason = self.conversation.closed() => return Err(StreamError::Lost(reason)),
        };
        let mut state = self.conversation.lock();
        let Some(channel) = state.channels.get_mut(&self.id) else {
            return Err(self
                .conversation
                .lost()
                .map_or(StreamError::Ended, StreamError::Lost));
        };
        match &channel.outcome {
            Some(Outcome::Failed(error)) => return Err(StreamError::Failed(error.clone())),
            Some(Outcome::Exited(_) | Outcome::Written { .. }) => {
                return Err(StreamError::Ended);
            }
            None => {}
        }
        let stream = channel.outbound_stream();
        let window = channel.outbound.as_mut().ok_or(StreamError::Ended)?;
        let count = bytes
            .len()
            .min(window.credit())
            .min(FRAME_PAYLOAD_BYTES_MAX);
        if count == 0 && !is_end && !window.has_ended() {
            return Ok(SendStep::NoCredit);
        }
        let offset = window.send(count, is_end).map_err(|_| StreamError::Ended)?;
        let header = DataHeader {
            channel: self.id,
            stream,
            offset,
            is_end,
        };
        let mut frame = Vec::new();
        self.conversation
            .encoder
            .data(header, &bytes[..count], &mut frame);
        // Under the lock, so that frames of one stream keep their order.
        place.send(frame);
        Ok(SendStep::Sent(count))
    }
}
