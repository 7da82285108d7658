//! Every limit of the client, with the reason.

use std::time::Duration;

/// A host that does not answer the handshake in this time is not there.
pub(crate) const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// Bytes that the other side has not acknowledged for so long are on a dead connection.
pub(crate) const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(60);
/// When to ask an idle peer whether it is still there.
pub(crate) const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(30);
/// The server answers ordinary calls within 30 s; twice that leaves room for the network.
pub(crate) const CALL_DEADLINE: Duration = Duration::from_secs(60);
/// A create whose machine boots: the server gives up before.
pub(crate) const BOOT_DEADLINE: Duration = Duration::from_secs(180);
const _: () =
    assert!(BOOT_DEADLINE.as_secs() > dayfly_types::limits::DISK_BOOT_ANSWER_DEADLINE.as_secs());
/// A capture, a write to disk and a restore, one after the other.
pub(crate) const STATE_DEADLINE: Duration = Duration::from_secs(180);
/// A capture and as many restores as a fork may have.
pub(crate) const FORK_DEADLINE: Duration = Duration::from_secs(360);
/// Many captures or deletes, one after the other; the server goes on when nobody waits.
pub(crate) const PROJECT_DEADLINE: Duration = Duration::from_secs(15 * 60);
/// A stream says something at least every 10 s; six times that is a dead connection.
pub(crate) const STREAM_SILENCE_MAX: Duration = Duration::from_secs(60);
/// A plain exec without a limit of its own ends with the longest that the server allows.
pub(crate) const EXEC_DEADLINE: Duration =
    Duration::from_secs(dayfly_types::limits::EXEC_TIMEOUT_SECONDS_MAX);
/// From the last event of a stream to the end of its body, to keep the connection for reuse.
pub(crate) const STREAM_END_DEADLINE: Duration = Duration::from_millis(100);
/// An answer that is read whole. A plain exec may carry two streams of 8 MiB, escaped.
pub(crate) const ANSWER_BYTES_MAX: usize = 128 << 20;
/// One event of a stream. The server keeps to 64 KiB.
pub(crate) const EVENT_BYTES_MAX: usize = 1 << 20;
/// Sandboxes that are read at once.
pub(crate) const LIST_PAGE_LENGTH: usize = 500;
/// A whole upload, whose source may be slow.
pub(crate) const UPLOAD_DEADLINE: Duration = Duration::from_secs(24 * 3600);
/// An upload is read in pieces of this size.
pub(crate) const UPLOAD_PIECE_BYTES: usize = 64 << 10;
/// Pauses between the attempts of a call that may be repeated.
pub(crate) const RETRY_PAUSES: [Duration; 2] =
    [Duration::from_millis(100), Duration::from_millis(400)];

/// How often a refused create is tried again, whatever the server says.
pub(crate) const WAIT_PAUSE_MIN: Duration = Duration::from_millis(100);
pub(crate) const WAIT_PAUSE_MAX: Duration = Duration::from_secs(5);
pub(crate) const WAIT_PAUSE_DEFAULT: Duration = Duration::from_secs(1);
/// A bake under emulation takes minutes; one that takes this long is stuck.
pub(crate) const BAKING_WAIT_MAX: Duration = Duration::from_secs(30 * 60);
/// Room comes back when other sandboxes end, which nobody promises.
pub(crate) const CAPACITY_WAIT_MAX: Duration = Duration::from_secs(60);
/// The first start of a node looks for an accelerator, which takes seconds, on a busy host more.
pub(crate) const NODE_WAIT_MAX: Duration = Duration::from_secs(30);

/// Opening a socket, which may wake a sandbox first.
pub(crate) const SOCKET_DEADLINE: Duration = Duration::from_secs(90);
/// One message of a socket.
pub(crate) const SOCKET_MESSAGE_BYTES_MAX: usize = 4 << 20;
/// How long a lost connection is tried again.
pub(crate) const REATTACH_PATIENCE: Duration = Duration::from_secs(60);
/// Input that waits to be sent.
pub(crate) const FOLLOW_INPUT_QUEUE: usize = 16;
/// Input that is kept in case the guest did not get it: more than can be on its way.
pub(crate) const FOLLOW_INPUT_BYTES_MAX: usize = 2 << 20;
