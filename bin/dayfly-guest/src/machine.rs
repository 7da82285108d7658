//! What the agent may change on the machine it runs on.

use std::fs;
use std::path::PathBuf;

use crate::cgroup::UserGroup;

/// A guest of its own, or an ordinary process that must leave its machine alone.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Where user processes live. `None` outside a guest.
    pub(crate) user_group: Option<UserGroup>,
    /// Files of the agent that no snapshot needs to keep.
    pub(crate) runtime_directory: PathBuf,
}

impl Machine {
    /// The guest whose first process this is.
    pub(crate) fn guest(user_group: UserGroup) -> Self {
        Self {
            user_group: Some(user_group),
            runtime_directory: PathBuf::from("/run/dayfly"),
        }
    }

    /// A machine that is not ours: no groups, no identity, no clock.
    pub(crate) fn borrowed() -> Self {
        Self {
            user_group: None,
            runtime_directory: std::env::temp_dir(),
        }
    }

    /// Whether host name, clock and randomness are the agent's to set.
    pub(crate) const fn is_guest(&self) -> bool {
        self.user_group.is_some()
    }

    /// The id of this boot as programs in the guest see it.
    pub(crate) fn boot_id() -> String {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        text.trim_end().to_owned()
    }
}
