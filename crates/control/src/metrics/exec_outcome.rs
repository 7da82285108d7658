//! Commands, by how they ended.

use dayfly_node_api::NodeError;
use dayfly_types::ErrorCode;
use dayfly_types::exec::{ExecExit, ExitReason};
use prometheus::IntCounterVec;

use super::series::Series;

/// How a command ended, as far as a graph goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecOutcome {
    ExitZero,
    ExitNonzero,
    Signaled,
    TimedOut,
    OutOfMemory,
    Killed,
    LimitExceeded,
    /// Its guest was lost before.
    Lost,
    /// Nobody stayed to see it. The command may go on.
    Unseen,
}

impl ExecOutcome {
    const ALL: [Self; 9] = [
        Self::ExitZero,
        Self::ExitNonzero,
        Self::Signaled,
        Self::TimedOut,
        Self::OutOfMemory,
        Self::Killed,
        Self::LimitExceeded,
        Self::Lost,
        Self::Unseen,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::ExitZero => "exit_zero",
            Self::ExitNonzero => "exit_nonzero",
            Self::Signaled => "signaled",
            Self::TimedOut => "timed_out",
            Self::OutOfMemory => "out_of_memory",
            Self::Killed => "killed",
            Self::LimitExceeded => "limit_exceeded",
            Self::Lost => "lost",
            Self::Unseen => "unseen",
        }
    }
}

impl From<&ExecExit> for ExecOutcome {
    fn from(exit: &ExecExit) -> Self {
        match exit.reason {
            // A newer guest may know more reasons; its exit code still holds.
            ExitReason::Exited | ExitReason::Unknown if exit.code == 0 => Self::ExitZero,
            ExitReason::Exited | ExitReason::Unknown => Self::ExitNonzero,
            ExitReason::Signaled => Self::Signaled,
            ExitReason::TimedOut => Self::TimedOut,
            ExitReason::OutOfMemory => Self::OutOfMemory,
            ExitReason::Killed => Self::Killed,
            ExitReason::LimitExceeded => Self::LimitExceeded,
        }
    }
}

impl From<&NodeError> for ExecOutcome {
    fn from(error: &NodeError) -> Self {
        if error.code == ErrorCode::Timeout {
            return Self::TimedOut;
        }
        // Its guest goes on without the node.
        if error.code == ErrorCode::NodeUnavailable {
            return Self::Unseen;
        }
        Self::Lost
    }
}

/// Counts commands by how they ended.
#[derive(Debug, Clone)]
pub(crate) struct ExecCounter(IntCounterVec);

impl ExecCounter {
    /// All of them are there from the start, so that the first one is seen as more than none.
    pub(super) fn new(series: &Series<'_>) -> Self {
        let ends = series.counters("execs_total", "Commands, by how they ended.", &["end"]);
        for outcome in ExecOutcome::ALL {
            ends.with_label_values(&[outcome.as_str()]);
        }
        Self(ends)
    }

    pub(crate) fn count(&self, outcome: ExecOutcome) {
        self.0.with_label_values(&[outcome.as_str()]).inc();
    }
}
