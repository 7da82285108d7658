//! Why things did not work, one enum for each kind of operation.

use std::io;
use std::sync::Arc;

use dayfly_guest_proto::{
    AssembleError, ChannelId, GuestError, HostPortError, PortRole, WindowError,
};

/// Why no conversation came about. Both sockets are closed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the guest did not answer within {limit_ms} ms")]
    NoAnswer { limit_ms: u64 },
    #[error("the guest speaks no protocol generation of this host")]
    NoCommonGeneration,
    #[error("the {} port was closed", .port.name())]
    PortClosed { port: PortRole },
    #[error("the {} port failed", .port.name())]
    PortFailed {
        port: PortRole,
        #[source]
        source: io::Error,
    },
    #[error("the {} port never stopped sending other bytes", .port.name())]
    Stale {
        port: PortRole,
        #[source]
        source: HostPortError,
    },
    #[error("no randomness for a nonce")]
    Randomness(#[source] io::Error),
}

/// Why a conversation is over. Everything that was open in it is gone.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConversationLost {
    #[error("the {} port was closed", .port.name())]
    PortClosed { port: PortRole },
    #[error("the {} port failed", .port.name())]
    PortFailed {
        port: PortRole,
        #[source]
        source: Arc<io::Error>,
    },
    #[error("the guest broke the protocol")]
    Protocol(#[source] ProtocolViolation),
}

/// What a guest did that no honest agent does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolViolation {
    #[error("bytes that are no frames")]
    Frame(#[source] HostPortError),
    #[error("control frames that make no message")]
    Message(#[source] AssembleError),
    #[error("a control message that is not of the protocol")]
    Malformed,
    #[error("a frame on the wrong port")]
    WrongPort,
    #[error("a stream of channel {channel} broke its rules")]
    Window {
        channel: ChannelId,
        #[source]
        source: WindowError,
    },
    #[error("channel {channel} was never opened")]
    UnknownChannel { channel: ChannelId },
    #[error("channel {channel} has no such stream or event")]
    WrongChannel { channel: ChannelId },
    #[error("an answer to call {call}, which was never made")]
    UnknownCall { call: u64 },
    #[error("more for closed channels than could have been on its way")]
    TooMuchLate,
    #[error("too many events of unknown kinds")]
    TooManyUnknownEvents,
}

/// Why a call gave no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("the guest refused")]
    Refused(#[source] GuestError),
    #[error("the conversation with the guest is over")]
    Lost(#[source] ConversationLost),
    #[error("the guest did not answer within {limit_ms} ms")]
    TimedOut { limit_ms: u64 },
    #[error("the guest answered something else than it was asked")]
    UnexpectedAnswer,
    #[error("the request is longer than a control message may be")]
    TooLong,
    #[error("too many {what} at once")]
    TooMany { what: &'static str },
}

/// Why a file stopped.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error("the guest gave up on the file")]
    Failed(#[source] GuestError),
    #[error("the conversation with the guest is over")]
    Lost(#[source] ConversationLost),
    #[error("the guest did not finish the file within {limit_ms} ms")]
    TimedOut { limit_ms: u64 },
    #[error("the stream was already ended")]
    Ended,
    #[error("the guest sent something else than it was asked for")]
    Malformed,
}
