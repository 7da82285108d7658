//! Which protocol the two ends speak, found out in their first exchange.
//!
//! Each says the oldest and the newest that it speaks; both go by the newest that they share, and
//! every later request names it. So either end may be one release ahead of the other, and two that
//! share nothing say so instead of misreading each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::NodeError;

/// The newest protocol that this program speaks.
pub const PROTOCOL_NEWEST: u16 = 1;
/// The oldest protocol that this program speaks.
pub const PROTOCOL_OLDEST: u16 = 1;

/// The header that names the protocol of a request.
pub(crate) const PROTOCOL_HEADER: &str = "dayfly-node-protocol";

/// What one end says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    pub protocol_oldest: u16,
    pub protocol_newest: u16,
    /// The version of the program.
    pub program: String,
    /// The newest format of each kind of file that it writes.
    #[serde(default)]
    pub formats: BTreeMap<String, u32>,
}

impl Greeting {
    /// What this program says.
    #[must_use]
    pub fn ours(formats: BTreeMap<String, u32>) -> Self {
        Self {
            protocol_oldest: PROTOCOL_OLDEST,
            protocol_newest: PROTOCOL_NEWEST,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            formats,
        }
    }

    /// The newest protocol that both speak.
    ///
    /// # Errors
    /// [`NodeError`] when there is none.
    pub fn agree(&self, other: &Self) -> Result<u16, NodeError> {
        let newest = self.protocol_newest.min(other.protocol_newest);
        if newest >= self.protocol_oldest.max(other.protocol_oldest) {
            return Ok(newest);
        }
        let text = format!(
            "the node ({}) speaks protocols {} to {}, and this program {} to {}; bring both to \
             releases that follow each other",
            other.program,
            other.protocol_oldest,
            other.protocol_newest,
            self.protocol_oldest,
            self.protocol_newest
        );
        Err(NodeError::unavailable(text))
    }
}

/// Whether this end speaks the protocol that a request names.
pub(crate) fn is_spoken(header: Option<&http::HeaderValue>) -> bool {
    let named = header.and_then(|value| value.to_str().ok()?.parse().ok());
    named.is_some_and(|named: u16| (PROTOCOL_OLDEST..=PROTOCOL_NEWEST).contains(&named))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaks(oldest: u16, newest: u16) -> Greeting {
        Greeting {
            protocol_oldest: oldest,
            protocol_newest: newest,
            ..Greeting::ours(BTreeMap::new())
        }
    }

    #[test]
    fn two_ends_go_by_the_newest_that_both_speak() {
        for (one, other, agreed) in [
            ((1, 1), (1, 1), Some(1)),
            ((1, 2), (2, 3), Some(2)),
            ((2, 3), (1, 2), Some(2)),
            ((1, 3), (1, 2), Some(2)),
            ((1, 1), (2, 3), None),
            ((3, 4), (1, 2), None),
        ] {
            let (one, other) = (speaks(one.0, one.1), speaks(other.0, other.1));
            assert_eq!(one.agree(&other).ok(), agreed, "{one:?} {other:?}");
        }
    }
}
