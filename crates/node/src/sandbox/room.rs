//! A guest's write that waits for room on the node's disk.

use std::time::{Duration, Instant};

use dayfly_node_api::NodeError;
use dayfly_types::{Backoff, ErrorCode, SandboxCondition, limits};

use crate::journal::SandboxRecord;
use crate::parts::Parts;

const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Whether a write of the guest waits for room, and how often that came to nothing.
#[derive(Debug)]
pub(super) struct RoomWait {
    is_waiting: bool,
    backoff: Backoff,
    tried_at: Option<Instant>,
}

impl Default for RoomWait {
    fn default() -> Self {
        Self {
            is_waiting: false,
            backoff: Backoff::new(limits::DISK_WATCH_PERIOD, limits::DISK_RETRY_MAX),
            tried_at: None,
        }
    }
}

impl RoomWait {
    pub(super) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// There is no machine any more, or it goes on.
    pub(super) fn is_over(&mut self) {
        self.is_waiting = false;
    }

    pub(super) fn begin(&mut self) {
        self.is_waiting = true;
        // One that wrote for a while before it stopped again is not the same attempt.
        let long_ago = |at: Instant| at.elapsed() > limits::DISK_RETRY_MAX;
        if self.tried_at.is_some_and(long_ago) {
            self.backoff.reset();
        }
    }

    /// How long to wait before the next try.
    pub(super) fn pause(&self) -> Duration {
        self.backoff.peek()
    }

    /// The next pause is longer.
    pub(super) fn note_try(&mut self) {
        let _ = self.backoff.pause();
        self.tried_at = Some(Instant::now());
    }
}

/// Resolves when it is time to let a guest try again.
pub(super) async fn wait_for_room(parts: &Parts, pause: Duration) {
    tokio::time::sleep(pause).await;
    let mut seen = parts.disk_available_mib.subscribe();
    // The sender is the node's own.
    let _ = seen.wait_for(|mib| *mib >= limits::DISK_RESUME_MIB).await;
}

/// What is wrong with a sandbox's disk, the worse first.
pub(super) fn disk_condition(record: &SandboxRecord, waits: bool) -> Option<SandboxCondition> {
    if record.disk_damaged {
        return Some(SandboxCondition::DiskDamaged);
    }
    waits.then_some(SandboxCondition::DiskFull)
}

/// Refused while the guest stands still for want of room.
pub(crate) fn waits_for_room() -> NodeError {
    let text = "the node's disk is full, and the sandbox stands still until there is room; it has \
                lost nothing. Delete snapshots, volumes or other sandboxes";
    NodeError::new(ErrorCode::StorageFull, text).retry_after(RETRY_AFTER)
}
