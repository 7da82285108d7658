//! What a sandbox is promised of its host, and why one sleeps that nobody put to sleep.

use serde::{Deserialize, Serialize};

/// How much of its size a sandbox is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxClass {
    /// All of it. Its node never puts it to sleep for others.
    #[default]
    Reserved,
    /// A working set. Its node may put it to sleep while it is idle and others need the memory.
    Shared,
}

impl SandboxClass {
    /// The stable word for this class, in the API and in the journal.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Shared => "shared",
        }
    }

    /// What every sandbox was before there were classes, which nobody writes down.
    #[must_use]
    pub const fn is_reserved(&self) -> bool {
        matches!(self, Self::Reserved)
    }
}

/// Why a sandbox sleeps, where neither its user nor its rules asked for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SleepReason {
    /// It was idle, and others needed its memory.
    Pressure,
    /// A word that this side does not know yet.
    #[serde(other)]
    Unknown,
}

impl SleepReason {
    /// The stable word for this reason, in the API and in events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pressure => "pressure",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_equal_serde() {
        for class in [SandboxClass::Reserved, SandboxClass::Shared] {
            let json = serde_json::to_string(&class).unwrap();
            assert_eq!(json, format!("\"{}\"", class.as_str()));
        }
        let reason: SleepReason = serde_json::from_str("\"pressure\"").unwrap();
        assert_eq!(reason.as_str(), "pressure");
        let newer: SleepReason = serde_json::from_str("\"later\"").unwrap();
        assert_eq!(newer, SleepReason::Unknown);
    }
}
