//! What the agent may change on the machine it runs on.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use dayfly_guest_proto::{GuestError, GuestErrorCode};
use dayfly_types::GuestDefaults;

use crate::cgroup::UserGroup;
use crate::refusal::guest_error;

/// A guest of its own, or an ordinary process that must leave its machine alone.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Where user processes live. `None` outside a guest.
    pub(crate) user_group: Option<UserGroup>,
    /// Files of the agent that no snapshot needs to keep.
    pub(crate) runtime_directory: PathBuf,
    /// What execs said, if it is much. Kept by every snapshot.
    pub(crate) log_directory: PathBuf,
    /// Programs to run when the guest becomes a sandbox. `None` when there can be none.
    pub(crate) hooks_directory: Option<PathBuf>,
    /// What the image says about commands in it.
    pub(crate) defaults: GuestDefaults,
    /// The two disks under the root, which have no path any more.
    layers: Option<Layers>,
}

/// What the root file system is laid together from.
#[derive(Debug)]
pub(crate) struct Layers {
    /// The template's disk, which nobody writes to.
    pub(crate) base: OwnedFd,
    /// The disk that takes every change.
    pub(crate) writable: OwnedFd,
}

impl Layers {
    /// Directories of a test that look like the two disks.
    fn of_test(directory: &Path) -> io::Result<Self> {
        let open = |name: &str| std::fs::File::open(directory.join(name)).map(OwnedFd::from);
        Ok(Self {
            base: open("base")?,
            writable: open("writable")?,
        })
    }
}

impl Machine {
    /// The guest whose first process this is.
    pub(crate) fn guest(user_group: UserGroup, layers: Layers, defaults: GuestDefaults) -> Self {
        Self {
            user_group: Some(user_group),
            runtime_directory: PathBuf::from("/run/dayfly"),
            log_directory: PathBuf::from("/var/lib/dayfly/execs"),
            hooks_directory: Some(PathBuf::from("/etc/dayfly/hooks.d")),
            defaults,
            layers: Some(layers),
        }
    }

    /// A machine that is not ours: no groups, no identity, no clock.
    pub(crate) fn borrowed(directory: Option<PathBuf>) -> Self {
        let hooks_directory = directory.as_ref().map(|path| path.join("hooks.d"));
        let layers = directory.as_deref().map(Layers::of_test);
        let layers = layers.and_then(Result::ok);
        let runtime_directory = directory.unwrap_or_else(std::env::temp_dir);
        Self {
            user_group: None,
            log_directory: runtime_directory.join("execs"),
            runtime_directory,
            hooks_directory,
            defaults: GuestDefaults::default(),
            layers,
        }
    }

    /// Where user code says for how long it is busy.
    pub(crate) fn busy_file(&self) -> PathBuf {
        self.runtime_directory.join("busy")
    }

    /// A descriptor on the file system of the writable disk.
    pub(crate) fn writable_disk(&self) -> Result<OwnedFd, GuestError> {
        self.layer(|layers| &layers.writable)
    }

    /// A descriptor on the file system of the template's disk.
    pub(crate) fn base_disk(&self) -> Result<OwnedFd, GuestError> {
        self.layer(|layers| &layers.base)
    }

    fn layer(&self, choose: impl Fn(&Layers) -> &OwnedFd) -> Result<OwnedFd, GuestError> {
        let layers = self.layers.as_ref().ok_or_else(|| {
            GuestError::new(GuestErrorCode::Unsupported, "this guest has no disks")
        })?;
        let duplicate = choose(layers).try_clone();
        duplicate.map_err(|error| guest_error("cannot reach the disk", &error))
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
