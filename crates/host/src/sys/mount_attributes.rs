//! Changing what a mount allows, by descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::check;

/// What to forbid on a mount. Everything starts allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MountAttributes {
    pub read_only: bool,
    pub no_set_user_id: bool,
    pub no_devices: bool,
    pub no_execution: bool,
}

impl MountAttributes {
    const fn bits(self) -> u64 {
        let mut bits = 0;
        if self.read_only {
            bits |= libc::MOUNT_ATTR_RDONLY;
        }
        if self.no_set_user_id {
            bits |= libc::MOUNT_ATTR_NOSUID;
        }
        if self.no_devices {
            bits |= libc::MOUNT_ATTR_NODEV;
        }
        if self.no_execution {
            bits |= libc::MOUNT_ATTR_NOEXEC;
        }
        bits
    }
}

/// Adds restrictions to the one mount that `mount` stands on and makes it private, so that no
/// mount event travels through it. Submounts are left alone.
///
/// # Errors
/// What the kernel said; `ENOSYS` before Linux 5.12.
pub fn set_mount_attributes(mount: impl AsFd, attributes: MountAttributes) -> io::Result<()> {
    let request = libc::mount_attr {
        attr_set: attributes.bits(),
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    let descriptor = mount.as_fd().as_raw_fd();
    let flags = libc::AT_EMPTY_PATH;
    let size = size_of::<libc::mount_attr>();
    // SAFETY: `descriptor` is open for the length of the call because `mount` is borrowed; the
    // path is a NUL-terminated literal; `request` outlives the call and the kernel reads exactly
    // `size` bytes of it and writes none.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            descriptor,
            c"".as_ptr(),
            flags,
            &raw const request,
            size,
        )
    };
    check(result).map(drop)
}
