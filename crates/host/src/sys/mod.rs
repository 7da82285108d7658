//! The unsafe code: system calls that have no safe wrapper elsewhere, one thin function each.
//!
//! Nothing here decides or formats anything, and nothing here may be called by name from outside
//! this crate and the jail launcher.
#![expect(
    unsafe_code,
    reason = "this is the one module that may call the kernel by hand"
)]

mod clock_state;
mod descriptors;
mod fork;
mod interface;
mod keyring;
mod mount_attributes;
mod namespaces;
#[cfg(test)]
mod private_mapping;
mod remote_memory;
mod watch;
mod written;

pub(crate) use clock_state::clock_status;
pub use descriptors::close_on_exec_from;
pub use fork::{ForkSide, SingleThread, fork};
pub(crate) use interface::{Setting, keep_tap, open_tap, pin_neighbour, set_interface};
pub use keyring::join_new_session_keyring;
pub use mount_attributes::{MountAttributes, set_mount_attributes};
pub use namespaces::{Namespace, unshare};
#[cfg(test)]
pub(crate) use private_mapping::PrivateMapping;
pub(crate) use remote_memory::read_remote;
pub(crate) use watch::{watch_readable, watch_urgent};
#[cfg(test)]
pub(crate) use written::open_faults;
pub(crate) use written::{AddressRange, Written, note_writes, written_ranges};

use std::io;

/// Turns the result of a raw system call into a `Result`.
fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
