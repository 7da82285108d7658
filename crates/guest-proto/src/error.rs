//! The errors that a guest answers with.

use serde::{Deserialize, Serialize};

/// What went wrong in the guest, as a stable word. A word once released is never renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuestErrorCode {
    NotFound,
    PermissionDenied,
    IsDirectory,
    NotDirectory,
    Exists,
    NoSpace,
    Invalid,
    TooMany,
    /// The guest does not know the message. An older agent meets a newer host.
    Unsupported,
    /// The guest is not in a state that allows this.
    WrongState,
    Io,
    /// Something in the guest still uses it.
    Busy,
    /// A word that this side does not know yet.
    #[serde(other)]
    Unknown,
}

impl GuestErrorCode {
    pub const ALL: &'static [Self] = &[
        Self::NotFound,
        Self::PermissionDenied,
        Self::IsDirectory,
        Self::NotDirectory,
        Self::Exists,
        Self::NoSpace,
        Self::Invalid,
        Self::TooMany,
        Self::Unsupported,
        Self::WrongState,
        Self::Io,
        Self::Busy,
        Self::Unknown,
    ];
}

/// A refusal or failure that the guest reports. The conversation goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct GuestError {
    pub code: GuestErrorCode,
    /// For a person. Comes from the guest, so it is not to be trusted or matched.
    pub message: String,
}

impl GuestError {
    #[must_use]
    pub fn new(code: GuestErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}
