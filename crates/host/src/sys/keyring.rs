//! Kernel keyrings.

use std::io;

use super::check;

/// `KEYCTL_JOIN_SESSION_KEYRING` of `linux/keyctl.h`.
const JOIN_SESSION_KEYRING: libc::c_int = 1;

/// Leaves the inherited session keyring, with whatever keys it holds, for a new empty one.
///
/// # Errors
/// What the kernel said. A kernel without keyrings has nothing to inherit and is no error.
pub fn join_new_session_keyring() -> io::Result<()> {
    let anonymous = std::ptr::null::<libc::c_char>();
    // SAFETY: this operation reads its second argument as the name of a keyring, and a null
    // pointer is its documented way to say "anonymous". Nothing is written through it.
    let result = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, anonymous) };
    match check(result) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
        other => other.map(drop),
    }
}
