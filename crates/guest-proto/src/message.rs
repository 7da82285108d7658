//! Control messages. JSON, because they are few, must be readable in a capture, and must tolerate
//! fields that one side does not know. Unknown calls are answered, never a reason to hang up.

use dayfly_types::ExecId;
use serde::{Deserialize, Serialize};

use crate::copy_mark::CopyMark;
use crate::error::{GuestError, GuestErrorCode};
use crate::exec::{ExecPage, StartExec};
use crate::frame::ChannelId;
use crate::identity::{Identified, Identity};
use dayfly_types::exec::{ExecExit, ExecInfo, WindowSize};
use dayfly_types::file::{DirectoryPage, FileStat, OpenedFile};
use dayfly_types::port::Listener;

/// What the host sends: a request with a number that its answer will carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub call: u64,
    pub request: Request,
}

/// What a host may ask of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Request {
    Status,
    /// Makes this guest a sandbox of its own. User code may run only after it and a thaw.
    Identify(Identity),
    /// Lets user processes run. Refused in a quarantined guest that was not identified.
    Thaw {
        /// The host's clock once more: the identity took a while to put in place, and user code is
        /// about to look at the clock.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wall_clock_unix_nanos: Option<u64>,
    },
    /// Freezes user processes and syncs file systems for a capture. The conversation stays: calls
    /// that arrive in between are served after the thaw, which needs no identity in this
    /// conversation. Any other conversation may be the one of a copy, and needs it.
    Quiesce {
        /// After this long without a thaw the guest thaws by itself, unless it is a copy. Needs
        /// the mark.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease_ms: Option<u64>,
        /// What the host finds the guest's [`copy_mark`](crate::copy_mark) by.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mark: Option<CopyMark>,
    },
    StartExec(StartExec),
    /// Sends a signal to the process group of an exec; signal 9 ends all its processes.
    SignalExec {
        channel: ChannelId,
        signal: i32,
    },
    /// Same as an end flag on the stdin stream.
    CloseStdin {
        channel: ChannelId,
    },
    /// Streams a regular file to the host.
    OpenRead {
        channel: ChannelId,
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        #[serde(default)]
        offset: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
    },
    /// Streams a regular file to the guest. It replaces the old file at the end, or not at all.
    OpenWrite {
        channel: ChannelId,
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
        #[serde(default)]
        make_parents: bool,
        /// Adds to the file in place instead of replacing it.
        #[serde(default)]
        append: bool,
        /// Writes into the file in place, from this offset on, instead of replacing it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
    },
    /// Ends whatever the channel does: a read stops, a write is discarded. An exec goes on without
    /// this reader.
    CancelChannel {
        channel: ChannelId,
    },
    Stat {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
    },
    ListDirectory {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        /// Only names that sort behind this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        limit: u32,
        /// How deep to go; 1 is the directory alone. Deeper entries carry a name relative to the
        /// directory, and follow the directory that they are in.
        #[serde(default = "one_level")]
        depth: u32,
    },
    MakeDirectory {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
        #[serde(default)]
        make_parents: bool,
    },
    Remove {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        #[serde(default)]
        recursive: bool,
    },
    /// Mounts the file system of a spare disk. Repeating it is fine.
    MountVolume {
        serial: String,
        /// Made if it is not there; no part of it may be a link.
        path: String,
        #[serde(default)]
        read_only: bool,
        /// How large the disk must be before it is the one that is meant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect_bytes: Option<u64>,
    },
    /// Writes everything back and unmounts. Refused as busy while something uses it; it stays
    /// mounted then. Repeating it is fine.
    UnmountVolume {
        path: String,
    },
    /// Grows the file system of the writable disk to the disk's size.
    GrowDisk {
        /// How large the disk must be before the file system grows.
        expect_bytes: u64,
    },
    /// Asks what the guest is busy with.
    Activity,
    /// Reads the output of an exec, from offsets on. The channel ends as that of the start does.
    AttachExec {
        channel: ChannelId,
        exec_id: ExecId,
        /// Without an offset the channel does not have this stream.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stdout_offset: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stderr_offset: Option<u64>,
        /// Whether the channel may send input.
        #[serde(default)]
        stdin: bool,
    },
    DescribeExec {
        exec_id: ExecId,
    },
    ListExecs {
        /// Only those with a higher number.
        #[serde(default)]
        after: u64,
        limit: u32,
    },
    /// Sends a signal to the process group of an exec; signal 9 ends all its processes.
    SignalProcess {
        exec_id: ExecId,
        signal: i32,
    },
    ResizeTerminal {
        exec_id: ExecId,
        size: WindowSize,
    },
    /// Ends an exec and drops its log. Repeating it is fine.
    ForgetExec {
        exec_id: ExecId,
    },
    Move {
        from: String,
        to: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        /// Whether something that is at the new place may be replaced.
        #[serde(default)]
        replace: bool,
    },
    ChangeMode {
        path: String,
        mode: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
    },
    /// Reports changes of a directory until it is cancelled: lines of JSON, each a
    /// [`WatchEvent`](crate::file::WatchEvent), on the file stream.
    WatchDirectory {
        channel: ChannelId,
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        #[serde(default)]
        recursive: bool,
    },
    /// Streams a tree to the host as a tar archive.
    PackTree {
        channel: ChannelId,
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
    },
    /// Unpacks a tar archive that is streamed to the guest below a directory, which is made if it
    /// is not there. Nothing is written outside of it.
    UnpackTree {
        channel: ChannelId,
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
    },
    /// Streams what changed on the writable disk: lines of JSON, each a
    /// [`ChangedPath`](crate::file::ChangedPath), on the file stream.
    ListChanges {
        channel: ChannelId,
        /// Only what is below this directory.
        path: String,
        /// Since this moment of the guest's clock; since it became this sandbox when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since_unix_nanos: Option<u64>,
    },
    /// Joins the channel with a unix socket of the guest: what the host sends on stdin goes there,
    /// what comes from there is stdout. It ends with `StreamFailed` or with the end of stdout.
    ConnectSocket {
        channel: ChannelId,
        path: String,
    },
    /// The same with a TCP port on which something in the guest listens.
    ConnectPort {
        channel: ChannelId,
        port: u16,
    },
    /// Asks for the TCP ports on which something listens.
    ListPorts,
    /// Answered as [`Request::ListPorts`], with this port alone, as soon as something listens on
    /// it; with none when nothing does until the timeout.
    WaitPort {
        port: u16,
        /// At most [`PORT_WAIT_CALL_MAX`](dayfly_types::limits::PORT_WAIT_CALL_MAX) counts.
        timeout_ms: u64,
    },
    /// Asks how much memory nobody uses.
    FreeMemory,
    /// Asks which page frames are free, and stay so or are written to before anybody reads them.
    /// None are told where the kernel reads pages that it has freed.
    ListFreePages {
        /// Only blocks of so many frames, at a multiple of it, all of which are free.
        block_pages: u32,
        /// Beyond it the smallest are left out.
        ranges_max: u32,
    },
}

const fn one_level() -> u32 {
    1
}

impl Request {
    /// Whether a guest that is frozen for a capture serves this at once. It keeps everything else
    /// until the thaw.
    #[must_use]
    pub const fn is_served_while_quiesced(&self) -> bool {
        matches!(
            self,
            Self::Status
                | Self::Identify(_)
                | Self::Thaw { .. }
                | Self::Quiesce { .. }
                | Self::MountVolume { .. }
                | Self::UnmountVolume { .. }
                | Self::GrowDisk { .. }
                | Self::Activity
        )
    }
}

/// What a guest sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestMessage {
    Answer(Answer),
    Event(Event),
}

/// The one answer to a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub call: u64,
    pub result: AnswerResult,
}

/// An answer's content. Not `Result`, whose words on the wire would not be ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerResult {
    Ok(Response),
    Error(GuestError),
}

impl From<Result<Response, GuestError>> for AnswerResult {
    fn from(result: Result<Response, GuestError>) -> Self {
        match result {
            Ok(response) => Self::Ok(response),
            Err(error) => Self::Error(error),
        }
    }
}

impl From<AnswerResult> for Result<Response, GuestError> {
    fn from(result: AnswerResult) -> Self {
        match result {
            AnswerResult::Ok(response) => Ok(response),
            AnswerResult::Error(error) => Err(error),
        }
    }
}

/// What a successful call gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Response {
    /// Nothing to say beyond success.
    Done,
    Status(Status),
    Identified(Identified),
    ExecStarted {
        pid: u32,
    },
    /// An exec, as it was asked for or attached to.
    Exec(ExecInfo),
    Execs(ExecPage),
    /// A file is open for reading; its bytes are on the bulk port.
    FileOpened(OpenedFile),
    Entry(FileStat),
    Directory(DirectoryPage),
    Activity(Activity),
    Ports {
        ports: Vec<Listener>,
    },
    FreeMemory {
        bytes: u64,
    },
    FreePages {
        /// In order.
        ranges: Vec<FreePages>,
    },
}

/// Neighbouring free page frames, as the guest's kernel numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64)", into = "(u64, u64)")]
pub struct FreePages {
    pub first: u64,
    pub count: u64,
}

// There are thousands in one message.
impl From<(u64, u64)> for FreePages {
    fn from((first, count): (u64, u64)) -> Self {
        Self { first, count }
    }
}

impl From<FreePages> for (u64, u64) {
    fn from(range: FreePages) -> Self {
        (range.first, range.count)
    }
}

/// What keeps a guest busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Execs whose process runs, those without a reader included, services excepted.
    pub execs: u32,
    /// How much longer code in the guest wants to count as busy.
    pub busy_ms: u64,
}

/// What a guest says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub agent_version: String,
    pub generation: u16,
    pub boot_id: String,
    /// Milliseconds since the guest's kernel started, suspends included.
    pub uptime_ms: u64,
    pub state: GuestState,
}

/// ```text
/// running --Quiesce--> quiesced --Thaw, or end of the lease--> running
///                      quiesced --any opening--> quarantined --Identify, Thaw--> running
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuestState {
    /// User processes are frozen; whoever opened this conversation must hand over an identity.
    Quarantined,
    Running,
    /// User processes are frozen for a capture.
    Quiesced,
    /// A word that this side does not know yet.
    #[serde(other)]
    Unknown,
}

/// What a guest reports without being asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// All output up to the end of the process was sent before this. What children of it write
    /// later goes to its log.
    ExecExited {
        channel: ChannelId,
        exit: ExecExit,
        duration_ms: u64,
    },
    /// The file is complete and in its place.
    WriteDone { channel: ChannelId, bytes: u64 },
    /// An open file broke. Nothing more comes on this channel.
    StreamFailed {
        channel: ChannelId,
        error: GuestError,
    },
}

/// The kinds that [`Request`] knows, to tell an unknown call from a malformed one.
pub const REQUEST_KINDS: &[&str] = &[
    "status",
    "identify",
    "thaw",
    "quiesce",
    "start_exec",
    "signal_exec",
    "close_stdin",
    "open_read",
    "open_write",
    "cancel_channel",
    "stat",
    "list_directory",
    "make_directory",
    "remove",
    "mount_volume",
    "unmount_volume",
    "grow_disk",
    "activity",
    "attach_exec",
    "describe_exec",
    "list_execs",
    "signal_process",
    "resize_terminal",
    "forget_exec",
    "move",
    "change_mode",
    "watch_directory",
    "pack_tree",
    "unpack_tree",
    "list_changes",
    "connect_socket",
    "connect_port",
    "list_ports",
    "wait_port",
    "free_memory",
    "list_free_pages",
];

/// The kinds that [`Event`] knows.
pub const EVENT_KINDS: &[&str] = &["exec_exited", "write_done", "stream_failed"];

/// Why a control message cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The message names its call, so the error can be its answer.
    #[error("call {call} cannot be served")]
    Refused { call: u64, error: GuestError },
    #[error("event of an unknown kind")]
    UnknownEvent,
    #[error("answer to call {call} is not understood")]
    UnknownAnswer { call: u64 },
    #[error("control message is no JSON of the protocol")]
    Malformed(#[source] serde_json::Error),
}

impl Call {
    /// Parses what a host sent.
    ///
    /// # Errors
    /// [`MessageError::Refused`] when there is a call to answer, else [`MessageError::Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<Self, MessageError> {
        serde_json::from_slice(bytes).map_err(|error| explain_call(bytes, error))
    }
}

impl GuestMessage {
    /// Parses what a guest sent.
    ///
    /// # Errors
    /// [`MessageError`]; only [`MessageError::Malformed`] breaks the protocol.
    pub fn parse(bytes: &[u8]) -> Result<Self, MessageError> {
        serde_json::from_slice(bytes).map_err(|error| explain_guest_message(bytes, error))
    }
}

#[derive(Deserialize)]
struct AnyKind {
    kind: String,
}

fn explain_call(bytes: &[u8], error: serde_json::Error) -> MessageError {
    #[derive(Deserialize)]
    struct AnyCall {
        call: u64,
        request: AnyKind,
    }
    let Ok(any) = serde_json::from_slice::<AnyCall>(bytes) else {
        return MessageError::Malformed(error);
    };
    let kind = any.request.kind;
    let error = if REQUEST_KINDS.contains(&kind.as_str()) {
        GuestError::new(
            GuestErrorCode::Invalid,
            format!("malformed request: {error}"),
        )
    } else {
        GuestError::new(
            GuestErrorCode::Unsupported,
            "this guest does not know the request",
        )
    };
    MessageError::Refused {
        call: any.call,
        error,
    }
}

fn explain_guest_message(bytes: &[u8], error: serde_json::Error) -> MessageError {
    #[derive(Deserialize)]
    struct AnyAnswer {
        call: u64,
    }
    #[derive(Deserialize)]
    struct AnyMessage {
        answer: Option<AnyAnswer>,
        event: Option<AnyKind>,
    }
    match serde_json::from_slice::<AnyMessage>(bytes) {
        Ok(AnyMessage {
            answer: Some(answer),
            ..
        }) => MessageError::UnknownAnswer { call: answer.call },
        Ok(AnyMessage {
            event: Some(event), ..
        }) if !EVENT_KINDS.contains(&event.kind.as_str()) => MessageError::UnknownEvent,
        _ => MessageError::Malformed(error),
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
