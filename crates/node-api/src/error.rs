//! Why a node did not do what it was asked. Crosses the wire as a code, a text and a delay.

use std::time::Duration;

use dayfly_types::ErrorCode;
use serde::{Deserialize, Serialize};

/// A node's refusal, or the lack of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct NodeError {
    pub code: ErrorCode,
    /// For a person; holds nothing that a guest wrote.
    pub message: String,
    /// When to ask again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// For `template_baking`: how far the bake is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
}

impl NodeError {
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after_ms: None,
            percent: None,
        }
    }

    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after_ms = Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        self
    }

    #[must_use]
    pub fn at_percent(mut self, percent: u8) -> Self {
        self.percent = Some(percent);
        self
    }

    /// The node could not be reached or broke off.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NodeUnavailable, message).retry_after(Duration::from_secs(1))
    }

    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }
}
