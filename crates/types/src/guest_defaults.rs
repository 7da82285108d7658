//! What a command in a guest starts with when nobody says otherwise.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the image of a guest says about commands in it. A template that was made from packages says
/// nothing, and then the guest's own rules hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestDefaults {
    /// A name or a number; behind a colon a group, also by name or by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Under those of the sandbox and of the command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

impl GuestDefaults {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
