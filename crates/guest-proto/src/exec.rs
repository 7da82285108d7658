//! Calls about execs.
//!
//! An exec belongs to the guest, not to a conversation: its output is a log for each stream,
//! addressed by byte, and any number of channels may read it from any offset. A data frame of
//! stdout or stderr carries the offset in the log; one that begins behind the end of the frame
//! before it says that the log has dropped the bytes in between.

use dayfly_types::exec::{ExecInfo, ExecSpec};
use serde::{Deserialize, Serialize};

use crate::frame::ChannelId;

/// A process to start, with a channel that reads its output from the first byte. Repeating it with
/// the id of an exec that was started from the same words attaches to that one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartExec {
    pub channel: ChannelId,
    #[serde(flatten)]
    pub spec: ExecSpec,
}

/// A piece of the list of execs, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecPage {
    pub execs: Vec<ExecInfo>,
    /// More follow the last one: ask again with its number as `after`.
    pub has_more: bool,
}
