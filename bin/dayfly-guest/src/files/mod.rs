//! File operations, each in a forked child that has become the user.
//!
//! The child may block on whatever a path leads to (a pipe, a hung file system), be refused what
//! its user may not do, and be killed; the agent itself only moves packets. The two speak over a
//! socket that keeps packet borders: one tag byte, then bytes.
//!
//! Start reading at [`requests`], then [`job`] and [`worker`]. Streams to the host are in
//! [`transfer`], [`pack`], [`watch`] and [`changes`], those from it in [`transfer`] and [`unpack`].

mod archive;
mod changes;
mod directory;
mod job;
mod line;
mod names;
mod operate;
mod pack;
mod requests;
mod stream;
mod transfer;
mod unpack;
mod walk;
mod watch;
mod watch_tree;
mod worker;

use dayfly_guest_proto::{GuestError, GuestErrorCode};

pub(crate) use changes::ChangedSince;
pub(crate) use job::{Job, Operation};
pub(crate) use names::path;
pub(crate) use requests::operation;
pub(crate) use worker::{Outlets, Worker};

use crate::refusal::guest_error;

/// A piece of an answer that is too long for one packet.
const TAG_ANSWER_PART: u8 = b'a';
/// The last piece of the answer to the call, a whole control message together with its parts.
const TAG_ANSWER: u8 = b'A';
/// Bytes of the file, in either direction.
const TAG_DATA: u8 = b'D';
/// The end of a file that is read.
const TAG_END: u8 = b'E';
/// The last word about a transfer, a whole control message.
const TAG_VERDICT: u8 = b'V';
/// From the agent: the file is complete, put it in its place.
const TAG_COMMIT: u8 = b'C';

/// File bytes of one packet.
const CHUNK_BYTES: usize = 32 << 10;
/// The tag and the bytes of the longest packet.
const PACKET_BYTES_MAX: usize = 1 + CHUNK_BYTES;

/// A refusal of something that no user may do.
fn invalid(text: impl Into<String>) -> GuestError {
    GuestError::new(GuestErrorCode::Invalid, text)
}
