//! The state of one conversation, shared by its tasks and handles behind one short lock.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_guest_proto::{
    Call, ChannelId, FrameEncoder, GuestError, PortRole, Request, Response, StreamKind,
};
use dayfly_types::limits::{
    AGENT_CALL_DEADLINE, AGENT_CALLS_MAX, AGENT_CHANNELS_MAX, CONTROL_MESSAGE_BYTES_MAX,
    STREAM_CREDIT_BYTES,
};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::channel::{Channel, ChannelNumbers, Purpose};
use crate::error::{CallError, ConversationLost};
use crate::handle::ChannelHandle;

/// Messages that wait for the control port.
pub(crate) const CONTROL_QUEUE_LENGTH: usize = 16;
/// Data frames that wait for the bulk port.
pub(crate) const BULK_QUEUE_LENGTH: usize = 16;
/// What may still be on its way for a channel that was closed: a window of each of its streams,
/// counted in bytes, and a few events.
pub(crate) const LATE_ALLOWANCE: u64 = 3 * STREAM_CREDIT_BYTES as u64 + 16;

type Waiter = oneshot::Sender<Result<Response, GuestError>>;

pub(crate) struct Conversation {
    state: Mutex<State>,
    pub(crate) encoder: FrameEncoder,
    control_queue: mpsc::Sender<Vec<u8>>,
    pub(crate) bulk_queue: mpsc::Sender<Vec<u8>>,
    /// Wakes the writers for what does not go through a queue.
    pub(crate) control_nudge: Notify,
    pub(crate) bulk_nudge: Notify,
    lost: watch::Sender<Option<ConversationLost>>,
}

#[derive(Default)]
pub(crate) struct State {
    calls_made: u64,
    pub(crate) calls: HashMap<u64, Waiter>,
    pub(crate) numbers: ChannelNumbers,
    pub(crate) channels: HashMap<ChannelId, Channel>,
    /// Channels to cancel in the guest. Counted with the open ones, so it is bounded.
    pub(crate) cancels: Vec<ChannelId>,
    /// Credit to give back: at most one entry for each stream.
    pub(crate) credits: BTreeMap<(ChannelId, StreamKind), u32>,
    /// How much late traffic is still believable.
    pub(crate) late_allowance: u64,
    pub(crate) unknown_events: u32,
}

// By hand, so that no byte of a guest reaches a log through a handle.
impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").finish_non_exhaustive()
    }
}

impl State {
    pub(crate) const fn was_called(&self, call: u64) -> bool {
        call != 0 && call <= self.calls_made
    }

    fn next_call(&mut self) -> u64 {
        self.calls_made += 1;
        self.calls_made
    }
}

/// Removes a call that nobody waits for any more.
struct CallGuard<'a> {
    conversation: &'a Conversation,
    call: u64,
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.conversation.lock();
        if state.calls.remove(&self.call).is_some() {
            state.late_allowance = state.late_allowance.saturating_add(1);
        }
    }
}

impl Conversation {
    pub(crate) fn new(
        encoder: FrameEncoder,
        control_queue: mpsc::Sender<Vec<u8>>,
        bulk_queue: mpsc::Sender<Vec<u8>>,
    ) -> Self {
        Self {
            state: Mutex::default(),
            encoder,
            control_queue,
            bulk_queue,
            control_nudge: Notify::new(),
            bulk_nudge: Notify::new(),
            lost: watch::Sender::new(None),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock was held leaves plain data behind, nothing half-done that matters.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the conversation for everybody in it. The first reason stays.
    pub(crate) fn lose(&self, reason: ConversationLost) {
        self.lost.send_if_modified(|lost| {
            let is_first = lost.is_none();
            lost.get_or_insert(reason);
            is_first
        });
        let mut state = self.lock();
        state.calls.clear();
        state.credits.clear();
        state.cancels.clear();
        for (_, channel) in state.channels.drain() {
            channel.news.notify_one();
            channel.credit.notify_waiters();
            channel.credit.notify_one();
        }
    }

    pub(crate) fn lost(&self) -> Option<ConversationLost> {
        self.lost.borrow().clone()
    }

    /// Resolves with the reason when the conversation is over. Cancel safe.
    pub(crate) async fn closed(&self) -> ConversationLost {
        let mut lost = self.lost.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail; the value is there then.
        let reason = lost
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|reason| reason.clone());
        reason.unwrap_or(ConversationLost::PortClosed {
            port: PortRole::Control,
        })
    }

    pub(crate) fn lost_reason(&self) -> ConversationLost {
        self.lost().unwrap_or(ConversationLost::PortClosed {
            port: PortRole::Control,
        })
    }

    /// Makes a call and waits for its answer, within the deadline of calls.
    pub(crate) async fn call(&self, request: Request) -> Result<Response, CallError> {
        let limit = AGENT_CALL_DEADLINE;
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let answer = timeout(limit, self.call_unbounded(request)).await;
        answer.unwrap_or(Err(CallError::TimedOut { limit_ms }))
    }

    async fn call_unbounded(&self, request: Request) -> Result<Response, CallError> {
        let lost = |_| CallError::Lost(self.lost_reason());
        let place = tokio::select! {
            place = self.control_queue.reserve() => place.map_err(lost)?,
            reason = self.closed() => return Err(CallError::Lost(reason)),
        };
        let (waiter, answer) = oneshot::channel();
        let guard = {
            let mut state = self.lock();
            if state.calls.len() >= AGENT_CALLS_MAX {
                return Err(CallError::TooMany { what: "calls" });
            }
            let call = state.next_call();
            let bytes = self.encode(&Call { call, request })?;
            state.calls.insert(call, waiter);
            place.send(bytes);
            CallGuard {
                conversation: self,
                call,
            }
        };
        // The conversation may have been lost before the waiter was put in its place.
        let result = tokio::select! {
            result = answer => result.map_err(|_| CallError::Lost(self.lost_reason())),
            reason = self.closed() => Err(CallError::Lost(reason)),
        };
        drop(guard);
        result?.map_err(CallError::Refused)
    }

    fn encode(&self, call: &Call) -> Result<Vec<u8>, CallError> {
        let message = serde_json::to_vec(call).map_err(|_| CallError::TooLong)?;
        if message.len() > CONTROL_MESSAGE_BYTES_MAX {
            return Err(CallError::TooLong);
        }
        let mut bytes = Vec::new();
        self.encoder.control(&message, &mut bytes);
        Ok(bytes)
    }

    /// Makes a channel before the guest hears of it, so that no early byte is a stranger.
    pub(crate) fn open_channel(
        self: &Arc<Self>,
        purpose: Purpose,
    ) -> Result<ChannelHandle, CallError> {
        let mut state = self.lock();
        if let Some(reason) = self.lost() {
            return Err(CallError::Lost(reason));
        }
        let is_full = state.channels.len() + state.cancels.len() >= AGENT_CHANNELS_MAX;
        let id = (!is_full).then(|| state.numbers.next()).flatten();
        let id = id.ok_or(CallError::TooMany { what: "channels" })?;
        let channel = Channel::new(purpose);
        let (news, credit) = (Arc::clone(&channel.news), Arc::clone(&channel.credit));
        state.channels.insert(id, channel);
        Ok(ChannelHandle {
            conversation: Arc::clone(self),
            id,
            news,
            credit,
        })
    }

    /// What the writer of a port must send before anything from its queue.
    pub(crate) fn take_urgent(&self, port: PortRole, out: &mut Vec<u8>) {
        let mut state = self.lock();
        match port {
            PortRole::Control => {
                for channel in std::mem::take(&mut state.cancels) {
                    let call = state.next_call();
                    let request = Request::CancelChannel { channel };
                    if let Ok(bytes) = self.encode(&Call { call, request }) {
                        out.extend_from_slice(&bytes);
                    }
                }
            }
            PortRole::Bulk => {
                for ((channel, stream), bytes) in std::mem::take(&mut state.credits) {
                    self.encoder.credit(channel, stream, bytes, out);
                }
            }
        }
    }
}
