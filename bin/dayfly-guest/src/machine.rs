//! What the agent may change on the machine it runs on.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use dayfly_guest_proto::{GuestError, GuestErrorCode};

use crate::cgroup::UserGroup;
use crate::files::guest_error;

/// A guest of its own, or an ordinary process that must leave its machine alone.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Where user processes live. `None` outside a guest.
    pub(crate) user_group: Option<UserGroup>,
    /// Files of the agent that no snapshot needs to keep.
    pub(crate) runtime_directory: PathBuf,
    /// Programs to run when the guest becomes a sandbox. `None` when there can be none.
    pub(crate) hooks_directory: Option<PathBuf>,
    /// The file system under the root's writable layer, which has no path any more.
    writable: Option<OwnedFd>,
}

impl Machine {
    /// The guest whose first process this is.
    pub(crate) fn guest(user_group: UserGroup, writable: OwnedFd) -> Self {
        Self {
            user_group: Some(user_group),
            runtime_directory: PathBuf::from("/run/dayfly"),
            hooks_directory: Some(PathBuf::from("/etc/dayfly/hooks.d")),
            writable: Some(writable),
        }
    }

    /// A machine that is not ours: no groups, no identity, no clock.
    pub(crate) fn borrowed(directory: Option<PathBuf>) -> Self {
        let hooks_directory = directory.as_ref().map(|path| path.join("hooks.d"));
        Self {
            user_group: None,
            runtime_directory: directory.unwrap_or_else(std::env::temp_dir),
            hooks_directory,
            writable: None,
        }
    }

    /// Where user code says for how long it is busy.
    pub(crate) fn busy_file(&self) -> PathBuf {
        self.runtime_directory.join("busy")
    }

    /// A descriptor on the file system of the writable disk.
    pub(crate) fn writable_disk(&self) -> Result<OwnedFd, GuestError> {
        let duplicate = |writable: &OwnedFd| writable.try_clone();
        let writable = self.writable.as_ref().map(duplicate).transpose();
        let writable =
            writable.map_err(|error| guest_error("cannot reach the writable disk", &error))?;
        writable.ok_or_else(|| {
            GuestError::new(
                GuestErrorCode::Unsupported,
                "this guest has no writable disk",
            )
        })
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
