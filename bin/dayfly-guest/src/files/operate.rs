//! The child's side of a file operation: become the user, do it, answer, exit.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use dayfly_guest_proto::message::AnswerResult;
use dayfly_guest_proto::{
    Answer, ChannelId, FileEntry, GuestError, GuestErrorCode, GuestMessage, Response,
};

use super::{CHUNK_BYTES, TAG_ANSWER, TAG_ANSWER_PART, directory, guest_error, transfer};
use crate::account::Account;
use crate::sys;
use crate::volumes::DiskOperation;

/// An operation, who does it and whose call it answers.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) call: u64,
    pub(crate) account: Account,
    pub(crate) operation: Operation,
}

#[derive(Debug)]
pub(crate) enum Operation {
    Stat {
        path: String,
    },
    List {
        path: String,
        after: Option<String>,
        limit: usize,
    },
    MakeDirectory {
        path: String,
        mode: Option<u32>,
        make_parents: bool,
    },
    Remove {
        path: String,
        recursive: bool,
    },
    Read {
        channel: ChannelId,
        path: String,
        offset: u64,
        limit: Option<u64>,
    },
    Write {
        channel: ChannelId,
        path: String,
        options: WriteOptions,
    },
    /// Something about disks, which only root may do.
    Disk(DiskOperation),
}

impl Operation {
    /// The file that it is about.
    pub(crate) fn path(&self) -> Option<&str> {
        match self {
            Self::Stat { path }
            | Self::List { path, .. }
            | Self::MakeDirectory { path, .. }
            | Self::Remove { path, .. }
            | Self::Read { path, .. }
            | Self::Write { path, .. } => Some(path),
            Self::Disk(_) => None,
        }
    }

    pub(crate) fn channel(&self) -> Option<ChannelId> {
        match self {
            Self::Read { channel, .. } | Self::Write { channel, .. } => Some(*channel),
            Self::Stat { .. }
            | Self::List { .. }
            | Self::MakeDirectory { .. }
            | Self::Remove { .. }
            | Self::Disk(_) => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteOptions {
    pub(crate) mode: Option<u32>,
    pub(crate) make_parents: bool,
    pub(crate) append: bool,
}

impl Job {
    /// Does the work of a forked child and ends it.
    pub(super) fn run(&self, socket: OwnedFd) -> ! {
        let mut kept = vec![socket.as_fd()];
        if let Operation::Disk(operation) = &self.operation {
            kept.extend(operation.descriptor());
        }
        sys::close_all_but(&kept);
        sys::unblock_all();
        let line = Line {
            socket: socket.as_fd(),
            call: self.call,
        };
        let is_fine = match self.account.assume() {
            Ok(()) => {
                self.enter_directory();
                self.operate(&line).is_ok()
            }
            Err(error) => line
                .answer(Err(guest_error("cannot become the user", &error)))
                .is_ok(),
        };
        sys::exit_now(i32::from(!is_fine));
    }

    fn operate(&self, line: &Line<'_>) -> io::Result<()> {
        match &self.operation {
            Operation::Stat { path } => line.answer(stat(path)),
            Operation::List { path, after, limit } => {
                line.answer(directory::list(path, after.as_deref(), *limit))
            }
            Operation::MakeDirectory {
                path,
                mode,
                make_parents,
            } => line.answer(make_directory(path, *mode, *make_parents)),
            Operation::Remove { path, recursive } => line.answer(remove(path, *recursive)),
            Operation::Read {
                channel,
                path,
                offset,
                limit,
            } => transfer::read(line, *channel, Path::new(path), *offset, *limit),
            Operation::Write {
                channel,
                path,
                options,
            } => transfer::write(line, *channel, Path::new(path), *options),
            Operation::Disk(operation) => line.answer(operation.run()),
        }
    }

    /// Relative paths start where an exec would start. An operation on disks stays out of every
    /// file system that it may have to unmount.
    fn enter_directory(&self) {
        let is_disk = matches!(self.operation, Operation::Disk(_));
        let places = ["/workspace", self.account.home.as_str(), "/"];
        let places = if is_disk { &places[2..] } else { &places };
        let _ = places
            .iter()
            .any(|place| std::env::set_current_dir(place).is_ok());
    }
}

/// The child's end of the socket. An error means that the agent is no longer interested.
#[derive(Debug)]
pub(super) struct Line<'a> {
    socket: BorrowedFd<'a>,
    call: u64,
}

impl Line<'_> {
    pub(super) fn send(&self, tag: u8, bytes: &[u8]) -> io::Result<()> {
        rustix::io::retry_on_intr(|| rustix::io::write(self.socket, &[&[tag], bytes].concat()))?;
        Ok(())
    }

    pub(super) fn receive(&self, packet: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| {
            rustix::io::read(self.socket, &mut *packet)
        })?)
    }

    pub(super) fn answer(&self, result: Result<Response, GuestError>) -> io::Result<()> {
        let answer = Answer {
            call: self.call,
            result: AnswerResult::from(result),
        };
        let bytes = serde_json::to_vec(&GuestMessage::Answer(answer)).map_err(io::Error::other)?;
        let mut pieces = bytes.chunks(CHUNK_BYTES).peekable();
        while let Some(piece) = pieces.next() {
            let tag = if pieces.peek().is_some() {
                TAG_ANSWER_PART
            } else {
                TAG_ANSWER
            };
            self.send(tag, piece)?;
        }
        Ok(())
    }
}

pub(super) fn mode_text(metadata: &Metadata) -> String {
    format!("{:04o}", metadata.mode() & 0o7777)
}

/// Describes one file without following a link.
pub(super) fn entry(path: &Path) -> io::Result<FileEntry> {
    let metadata = fs::symlink_metadata(path)?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok(FileEntry {
        name: name.to_string_lossy().into_owned(),
        path: path.to_string_lossy().into_owned(),
        is_dir: metadata.is_dir(),
        is_symlink: metadata.is_symlink(),
        size: metadata.len(),
        mode: mode_text(&metadata),
        mtime: metadata.mtime(),
        uid: metadata.uid(),
        gid: metadata.gid(),
    })
}

fn stat(path: &str) -> Result<Response, GuestError> {
    entry(Path::new(path))
        .map(Response::Entry)
        .map_err(|error| guest_error(path, &error))
}

fn make_directory(
    path: &str,
    mode: Option<u32>,
    make_parents: bool,
) -> Result<Response, GuestError> {
    let mode = mode.unwrap_or(0o755) & 0o7777;
    let mut builder = fs::DirBuilder::new();
    builder.recursive(make_parents).mode(mode);
    let made = builder.create(path).and_then(|()| {
        // The mask of this process must not change what the caller asked for.
        if make_parents {
            Ok(())
        } else {
            fs::set_permissions(path, Permissions::from_mode(mode))
        }
    });
    made.map(|()| Response::Done)
        .map_err(|error| guest_error(path, &error))
}

fn remove(path: &str, recursive: bool) -> Result<Response, GuestError> {
    let metadata = fs::symlink_metadata(path).map_err(|error| guest_error(path, &error))?;
    let removed = match (metadata.is_dir(), recursive) {
        (false, _) => fs::remove_file(path),
        (true, false) => fs::remove_dir(path),
        (true, true) => fs::remove_dir_all(path),
    };
    removed
        .map(|()| Response::Done)
        .map_err(|error| guest_error(path, &error))
}

/// Refuses anything but a regular file, which could block or have effects when opened or read.
pub(super) fn check_regular(path: &Path, metadata: &Metadata) -> Result<(), GuestError> {
    let path = path.to_string_lossy();
    if metadata.is_dir() {
        Err(GuestError::new(
            GuestErrorCode::IsDirectory,
            format!("{path}: is a directory"),
        ))
    } else if metadata.is_file() {
        Ok(())
    } else {
        Err(GuestError::new(
            GuestErrorCode::Invalid,
            format!("{path}: not a regular file"),
        ))
    }
}
