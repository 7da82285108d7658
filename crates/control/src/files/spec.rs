//! What a request about files says beside its path, checked.

use dayfly_api::{ChangeMode, MakeDirectory, MoveFile};
use dayfly_node_api as node;
use dayfly_types::SnapshotId;

use crate::exec::spec::check_user;
use crate::files::path::AbsolutePath;
use crate::input::Invalid;

/// The word for "since the sandbox began".
const SINCE_CREATE: &str = "create";

/// Permission bits from octal text, such as `0644` or `644`.
///
/// # Errors
/// [`Invalid`] when it is anything else.
pub fn mode_bits(text: &str) -> Result<u32, Invalid> {
    let is_octal =
        matches!(text.len(), 3 | 4) && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let bits = is_octal
        .then(|| u32::from_str_radix(text, 8).ok())
        .flatten();
    bits.ok_or_else(|| Invalid::field("mode", "must be three or four octal digits, such as 0644"))
}

/// A user of the guest, by name or by number.
///
/// # Errors
/// [`Invalid`] when no user can have that name.
pub fn user(name: Option<String>) -> Result<Option<String>, Invalid> {
    if let Some(name) = &name {
        check_user(name)?;
    }
    Ok(name)
}

/// From when on changes count.
///
/// # Errors
/// [`Invalid`] when it is neither `create` nor a snapshot's id.
pub fn since(text: &str) -> Result<node::ChangesSince, Invalid> {
    if text == SINCE_CREATE {
        return Ok(node::ChangesSince::Create);
    }
    let id = SnapshotId::parse(text)
        .map_err(|_| Invalid::field("since", "must be `create` or the id of a snapshot"))?;
    Ok(node::ChangesSince::Snapshot(id))
}

/// # Errors
/// [`Invalid`].
pub fn make_directory(body: MakeDirectory) -> Result<node::EnsureDirectory, Invalid> {
    Ok(node::EnsureDirectory {
        path: AbsolutePath::parse(&body.path)?.into_string(),
        user: user(body.user)?,
        mode: body.mode.as_deref().map(mode_bits).transpose()?,
        parents: body.parents.unwrap_or(false),
    })
}

/// # Errors
/// [`Invalid`].
pub fn move_file(body: MoveFile) -> Result<node::MoveEntry, Invalid> {
    Ok(node::MoveEntry {
        from: AbsolutePath::parse_field("from", &body.from)?.into_string(),
        to: AbsolutePath::parse_field("to", &body.to)?.into_string(),
        user: user(body.user)?,
        replace: body.replace.unwrap_or(false),
    })
}

/// # Errors
/// [`Invalid`].
pub fn change_mode(body: ChangeMode) -> Result<node::SetMode, Invalid> {
    Ok(node::SetMode {
        path: AbsolutePath::parse(&body.path)?.into_string(),
        mode: mode_bits(&body.mode)?,
        user: user(body.user)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal_digits() {
        assert_eq!(mode_bits("0644"), Ok(0o644));
        assert_eq!(mode_bits("7777"), Ok(0o7777));
        assert_eq!(mode_bits("755"), Ok(0o755));
        for text in ["", "64", "00644", "0648", "+644", "rw-", "0o644", "６４４"] {
            assert!(mode_bits(text).is_err(), "{text}");
        }
    }

    #[test]
    fn changes_count_from_the_beginning_or_a_snapshot() {
        assert_eq!(since("create"), Ok(node::ChangesSince::Create));
        assert!(since("sn-local-abc").is_ok());
        for text in ["", "../x", "yesterday!"] {
            assert!(since(text).is_err(), "{text}");
        }
    }
}
