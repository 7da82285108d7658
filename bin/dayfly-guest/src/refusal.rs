//! What the host is told when something is not done.

use std::io;

use dayfly_guest_proto::{GuestError, GuestErrorCode};

pub(crate) fn unsupported() -> GuestError {
    GuestError::new(GuestErrorCode::Unsupported, "not served by this guest")
}

pub(crate) fn wrong_state(text: &str) -> GuestError {
    GuestError::new(GuestErrorCode::WrongState, text)
}

/// What the host is told about a failed system call.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "every other way to fail is the same word for the host"
)]
pub(crate) fn guest_error(what: &str, error: &io::Error) -> GuestError {
    use io::ErrorKind as Kind;
    let code = match error.kind() {
        Kind::NotFound => GuestErrorCode::NotFound,
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => GuestErrorCode::PermissionDenied,
        Kind::IsADirectory => GuestErrorCode::IsDirectory,
        Kind::NotADirectory => GuestErrorCode::NotDirectory,
        Kind::AlreadyExists => GuestErrorCode::Exists,
        Kind::StorageFull | Kind::QuotaExceeded => GuestErrorCode::NoSpace,
        Kind::InvalidInput
        | Kind::InvalidData
        | Kind::InvalidFilename
        | Kind::DirectoryNotEmpty
        | Kind::CrossesDevices
        | Kind::FileTooLarge
        | Kind::TooManyLinks => GuestErrorCode::Invalid,
        Kind::WouldBlock => GuestErrorCode::TooMany,
        Kind::ResourceBusy => GuestErrorCode::Busy,
        // These have no kind of their own yet. Links in a circle, or one where none may be:
        _ if error.raw_os_error() == Some(libc::ELOOP) => GuestErrorCode::Invalid,
        // No descriptor left for this process, or no watch for its user:
        _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
            GuestErrorCode::TooMany
        }
        _ => GuestErrorCode::Io,
    };
    let text = error.to_string();
    let plain = text.split(" (os error").next().unwrap_or_default();
    GuestError::new(code, format!("{what}: {plain}"))
}
