//! The wire protocol between a host and the agent in its guest.
//!
//! Two byte streams join them: the *control* port carries calls, answers and events as JSON, the
//! *bulk* port carries the bytes of execs and files. Neither stream ever closes by itself, and
//! either end may die in the middle of a frame, so every conversation begins with an
//! [`opening`] that finds its own start in whatever bytes are left over:
//!
//! ```text
//! host                                   guest
//!  |  Opening(nonce, generations) ------>  hunts byte by byte, drops the former conversation
//!  |  <------ OpeningAck(nonce, generation)
//!  |  frames tagged by the nonce <------>  until a frame does not decode: hunt again
//! ```
//!
//! Both ports open with the same nonce. The protocol is append-only: `schema/gen-1.json` is the
//! frozen surface, and a change of it is a decision, not an accident.
//!
//! This crate must not know sockets, processes, clocks or randomness: it is linked into the guest
//! agent and into the host, and everything in it can be tested with plain bytes. Start reading at
//! [`frame`], then [`opening`], then [`message`].
#![forbid(unsafe_code)]

pub mod assemble;
pub mod copy_mark;
pub mod decode;
pub mod error;
pub mod exec;
pub mod frame;
pub mod identity;
pub mod message;
pub mod opening;
pub mod pair;
pub mod port;
pub mod window;

pub use assemble::{AssembleError, MessageAssembler};
pub use copy_mark::CopyMark;
pub use decode::{DecodeError, Decoder};
pub use error::{GuestError, GuestErrorCode};
pub use exec::{ExecPage, StartExec};
pub use frame::{ChannelId, DataHeader, Frame, FrameEncoder, SessionTag, StreamKind};
pub use identity::{
    AgentToken, Entropy, HookResult, Identified, Identity, IdentityEvent, MachineId,
};
pub use message::{
    Activity, Answer, AnswerResult, Call, Event, FreePages, GuestMessage, GuestState, MessageError,
    Request, Response, Status,
};
pub use opening::{Nonce, Opening, OpeningAck};
pub use pair::{Pairing, PortRole};
pub use port::{GuestPort, HostPort, HostPortError, Received};
pub use window::{ReceiveWindow, SendWindow, WindowError};

/// The newest generation of the protocol that this crate speaks.
pub const GENERATION_MAX: u16 = 1;
/// The oldest generation of the protocol that this crate speaks.
pub const GENERATION_MIN: u16 = 1;

/// The name of the control port, as the guest sees it.
pub const CONTROL_PORT_NAME: &str = "dayfly.control";
/// The name of the bulk port, as the guest sees it.
pub const BULK_PORT_NAME: &str = "dayfly.bulk";
