//! What a request about files asks for, in the words of [`Operation`].

use dayfly_guest_proto::{GuestError, Request};

use super::directory::ListOptions;
use super::job::Operation;
use super::transfer::{WriteOptions, WritePlace};
use super::{invalid, names};
use crate::refusal::unsupported;

/// The operation and the user that a request names.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the caller has sorted out everything else"
)]
pub(crate) fn operation(request: Request) -> Result<(Operation, Option<String>), GuestError> {
    Ok(match request {
        request @ (Request::OpenRead { .. }
        | Request::OpenWrite { .. }
        | Request::WatchDirectory { .. }
        | Request::PackTree { .. }
        | Request::UnpackTree { .. }) => return stream_operation(request),
        Request::Stat { path, user } => (
            Operation::Stat {
                path: names::path(&path),
            },
            user,
        ),
        Request::ListDirectory {
            path,
            user,
            after,
            limit,
            depth,
        } => {
            let options = ListOptions {
                after,
                limit: usize::try_from(limit).unwrap_or(usize::MAX),
                depth,
            };
            let path = names::path(&path);
            (Operation::List { path, options }, user)
        }
        Request::MakeDirectory {
            path,
            user,
            mode,
            make_parents,
        } => (
            Operation::MakeDirectory {
                path: names::path(&path),
                mode,
                make_parents,
            },
            user,
        ),
        Request::Remove {
            path,
            user,
            recursive,
        } => {
            let path = names::path(&path);
            (Operation::Remove { path, recursive }, user)
        }
        Request::Move {
            from,
            to,
            user,
            replace,
        } => {
            let (from, to) = (names::path(&from), names::path(&to));
            (Operation::Move { from, to, replace }, user)
        }
        Request::ChangeMode { path, mode, user } => {
            let path = names::path(&path);
            (Operation::ChangeMode { path, mode }, user)
        }
        _ => return Err(unsupported()),
    })
}

/// The same for those that move bytes on a channel.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the caller has sorted out everything else"
)]
fn stream_operation(request: Request) -> Result<(Operation, Option<String>), GuestError> {
    Ok(match request {
        Request::OpenRead {
            channel,
            path,
            user,
            offset,
            limit,
        } => (
            Operation::Read {
                channel,
                path: names::path(&path),
                offset,
                limit,
            },
            user,
        ),
        Request::OpenWrite {
            channel,
            path,
            user,
            mode,
            make_parents,
            append,
            offset,
        } => {
            let place = write_place(append, offset)?;
            let operation = Operation::Write {
                channel,
                path: names::path(&path),
                options: WriteOptions {
                    mode,
                    make_parents,
                    place,
                },
            };
            (operation, user)
        }
        Request::WatchDirectory {
            channel,
            path,
            user,
            recursive,
        } => (
            Operation::Watch {
                channel,
                path: names::path(&path),
                recursive,
            },
            user,
        ),
        Request::PackTree {
            channel,
            path,
            user,
        } => {
            let path = names::path(&path);
            (Operation::Pack { channel, path }, user)
        }
        Request::UnpackTree {
            channel,
            path,
            user,
        } => {
            let path = names::path(&path);
            (Operation::Unpack { channel, path }, user)
        }
        _ => return Err(unsupported()),
    })
}

fn write_place(append: bool, offset: Option<u64>) -> Result<WritePlace, GuestError> {
    match (append, offset) {
        (false, None) => Ok(WritePlace::Whole),
        (true, None) => Ok(WritePlace::End),
        (false, Some(offset)) => Ok(WritePlace::At(offset)),
        (true, Some(_)) => Err(invalid("both the end and an offset to write at")),
    }
}
