//! The states of a sandbox. `dayfly-core::lifecycle` says which follow which.

use serde::{Deserialize, Serialize};

/// Where a sandbox is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    Creating,
    Running,
    Pausing,
    Paused,
    Resuming,
    Hibernating,
    Hibernated,
    Waking,
    Deleting,
    Deleted,
    Failed,
}

impl SandboxState {
    pub const ALL: [Self; 11] = [
        Self::Creating,
        Self::Running,
        Self::Pausing,
        Self::Paused,
        Self::Resuming,
        Self::Hibernating,
        Self::Hibernated,
        Self::Waking,
        Self::Deleting,
        Self::Deleted,
        Self::Failed,
    ];

    /// The stable word for this state, in the API and in the journal.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Running => "running",
            Self::Pausing => "pausing",
            Self::Paused => "paused",
            Self::Resuming => "resuming",
            Self::Hibernating => "hibernating",
            Self::Hibernated => "hibernated",
            Self::Waking => "waking",
            Self::Deleting => "deleting",
            Self::Deleted => "deleted",
            Self::Failed => "failed",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether a sandbox has a machine throughout this state, which holds its memory.
    #[must_use]
    pub const fn has_machine(self) -> bool {
        matches!(
            self,
            Self::Running | Self::Pausing | Self::Paused | Self::Resuming | Self::Hibernating
        )
    }

    /// Whether nothing can follow.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Deleted)
    }
}

/// What is wrong with a sandbox beside its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxCondition {
    /// The node's disk has no room for what the guest writes. It stands still, loses nothing, and
    /// goes on by itself when there is room.
    DiskFull,
    /// A write to its disk failed, and its guest was told. It runs, and is not captured.
    DiskDamaged,
}

impl SandboxCondition {
    /// The stable word for this condition, in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DiskFull => "disk_full",
            Self::DiskDamaged => "disk_damaged",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_equal_serde() {
        for state in SandboxState::ALL {
            assert_eq!(SandboxState::parse(state.as_str()), Some(state));
            let json = serde_json::to_string(&state).unwrap();
            assert_eq!(json, format!("\"{}\"", state.as_str()));
        }
    }
}
