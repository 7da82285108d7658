//! What the guest sends, judged and put where it belongs.

use dayfly_guest_proto::{
    ChannelId, DataHeader, Event, Frame, GuestMessage, MessageAssembler, MessageError, PortRole,
    StreamKind,
};

use dayfly_types::exec::ExecEnd;

use crate::channel::Outcome;
use crate::conversation::{Conversation, State};
use crate::error::ProtocolViolation as Violation;

/// Events of kinds that this host does not know. A newer guest may send some.
const UNKNOWN_EVENTS_MAX: u32 = 1024;

/// Judges the frames of one port.
#[derive(Debug)]
pub(crate) struct Intake {
    port: PortRole,
    assembler: MessageAssembler,
}

impl Intake {
    pub(crate) fn new(port: PortRole) -> Self {
        Self {
            port,
            assembler: MessageAssembler::default(),
        }
    }

    /// Takes one frame. An error must end the conversation.
    pub(crate) fn take(&mut self, frame: Frame, into: &Conversation) -> Result<(), Violation> {
        match (self.port, frame) {
            (PortRole::Control, Frame::Control { is_last, bytes }) => {
                let message = self
                    .assembler
                    .push(is_last, bytes)
                    .map_err(Violation::Message)?;
                message.map_or(Ok(()), |message| take_message(&message, into))
            }
            (PortRole::Bulk, Frame::Data { header, bytes }) => {
                take_data(&mut into.lock(), header, &bytes)
            }
            (
                PortRole::Bulk,
                Frame::Credit {
                    channel,
                    stream,
                    bytes,
                },
            ) => take_credit(&mut into.lock(), channel, stream, bytes),
            (PortRole::Control, Frame::Data { .. } | Frame::Credit { .. })
            | (PortRole::Bulk, Frame::Control { .. }) => Err(Violation::WrongPort),
        }
    }
}

fn take_message(message: &[u8], into: &Conversation) -> Result<(), Violation> {
    let parsed = GuestMessage::parse(message);
    let mut state = into.lock();
    match parsed {
        Ok(GuestMessage::Answer(answer)) => match state.calls.remove(&answer.call) {
            // The caller may have just given up; then nobody misses the answer.
            Some(waiter) => {
                let _ = waiter.send(answer.result.into());
                Ok(())
            }
            None => late_answer(&mut state, answer.call),
        },
        Ok(GuestMessage::Event(event)) => take_event(&mut state, event),
        // Dropping the waiter fails the call; the conversation goes on.
        Err(MessageError::UnknownAnswer { call }) => match state.calls.remove(&call) {
            Some(waiter) => {
                let error = dayfly_guest_proto::GuestError::new(
                    dayfly_guest_proto::GuestErrorCode::Unknown,
                    "the answer of the guest is of a kind that this host does not know",
                );
                let _ = waiter.send(Err(error));
                Ok(())
            }
            None => late_answer(&mut state, call),
        },
        Err(MessageError::UnknownEvent) => {
            state.unknown_events += 1;
            let is_fine = state.unknown_events <= UNKNOWN_EVENTS_MAX;
            is_fine.then_some(()).ok_or(Violation::TooManyUnknownEvents)
        }
        Err(MessageError::Malformed(_) | MessageError::Refused { .. }) => Err(Violation::Malformed),
    }
}

/// An answer that nobody waits for: to a call that was given up or to a cancel, or a lie.
fn late_answer(state: &mut State, call: u64) -> Result<(), Violation> {
    if state.was_called(call) {
        late(state, 1)
    } else {
        Err(Violation::UnknownCall { call })
    }
}

fn take_event(state: &mut State, event: Event) -> Result<(), Violation> {
    let (id, outcome) = match event {
        Event::ExecExited {
            channel,
            exit,
            duration_ms,
        } => (channel, Outcome::Exited(ExecEnd { exit, duration_ms })),
        Event::WriteDone { channel, bytes } => (channel, Outcome::Written { bytes }),
        Event::StreamFailed { channel, error } => (channel, Outcome::Failed(error)),
        _ => return Ok(()),
    };
    let Some(channel) = state.channels.get_mut(&id) else {
        return late_for(state, id, 1);
    };
    if !channel.may_end_with(&outcome) {
        return Err(Violation::WrongChannel { channel: id });
    }
    channel.outcome = Some(outcome);
    channel.news.notify_one();
    // A sender that waits for credit learns of a failure here.
    channel.credit.notify_waiters();
    channel.credit.notify_one();
    Ok(())
}

fn take_data(state: &mut State, header: DataHeader, bytes: &[u8]) -> Result<(), Violation> {
    let id = header.channel;
    let Some(channel) = state.channels.get_mut(&id) else {
        return late_for(state, id, bytes.len() as u64 + 1);
    };
    let inbound = channel
        .inbound(header.stream)
        .ok_or(Violation::WrongChannel { channel: id })?;
    inbound
        .accept(header.offset, bytes, header.is_end)
        .map_err(|source| Violation::Window {
            channel: id,
            source,
        })?;
    channel.news.notify_one();
    Ok(())
}

fn take_credit(
    state: &mut State,
    id: ChannelId,
    stream: StreamKind,
    bytes: u32,
) -> Result<(), Violation> {
    let Some(channel) = state.channels.get_mut(&id) else {
        return late_for(state, id, 1);
    };
    let is_ours = channel.outbound_stream() == stream;
    let window = channel.outbound.as_mut().filter(|_| is_ours);
    let window = window.ok_or(Violation::WrongChannel { channel: id })?;
    window.grant(bytes).map_err(|source| Violation::Window {
        channel: id,
        source,
    })?;
    channel.credit.notify_waiters();
    channel.credit.notify_one();
    Ok(())
}

/// Something for a channel that is not open: late if it once was, a lie otherwise.
fn late_for(state: &mut State, channel: ChannelId, cost: u64) -> Result<(), Violation> {
    if !state.numbers.was_given(channel) {
        return Err(Violation::UnknownChannel { channel });
    }
    late(state, cost)
}

fn late(state: &mut State, cost: u64) -> Result<(), Violation> {
    state.late_allowance = state
        .late_allowance
        .checked_sub(cost)
        .ok_or(Violation::TooMuchLate)?;
    Ok(())
}
