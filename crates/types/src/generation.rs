//! A number that only grows, so that late news can be told from new news.

use serde::{Deserialize, Serialize};

/// The version of one sandbox's published state.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Generation(pub u64);

impl Generation {
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
