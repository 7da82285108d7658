//! How long a sandbox lives, and what happens when it does nothing.

use serde::{Deserialize, Serialize};

/// What the node does with a sandbox that was idle for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleAction {
    /// Ends it and gives everything back.
    #[default]
    Delete,
    /// Captures it to disk; the next request that needs the guest wakes it.
    Hibernate,
}

/// Why a sandbox went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Its time to live was over.
    Ttl,
    /// Nothing happened in it for as long as its rules allow.
    Idle,
    /// Somebody asked for it.
    Deleted,
    /// Its node did not have it any more.
    Lost,
    /// A word that this side does not know yet.
    #[serde(other)]
    Unknown,
}

impl EndReason {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ttl => "ttl",
            Self::Idle => "idle",
            Self::Deleted => "deleted",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
        }
    }
}

/// The rules of one sandbox's life. All of them are enforced by its node alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LifetimeRules {
    /// Seconds from the moment this was set until the sandbox is deleted, whatever it does.
    #[serde(default)]
    pub ttl_seconds: Option<u64>,
    /// Never reaped for idleness, and not deleted by a client's context manager.
    #[serde(default)]
    pub persistent: bool,
    /// Seconds without activity after which `on_timeout` happens. `None`: never.
    #[serde(default)]
    pub idle_seconds: Option<u64>,
    #[serde(default)]
    pub on_timeout: IdleAction,
}
