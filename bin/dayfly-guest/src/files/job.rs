//! The child's side of a file operation: become the user, do it, answer, exit.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use dayfly_guest_proto::{ChannelId, GuestError};

use super::changes::ChangedSince;
use super::directory::ListOptions;
use super::line::Line;
use super::transfer::WriteOptions;
use super::{changes, directory, guest_error, invalid, operate, pack, transfer, unpack, watch};
use crate::account::Account;
use crate::free_memory::FreePagesWanted;
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
        path: PathBuf,
    },
    List {
        path: PathBuf,
        options: ListOptions,
    },
    MakeDirectory {
        path: PathBuf,
        mode: Option<u32>,
        make_parents: bool,
    },
    Remove {
        path: PathBuf,
        recursive: bool,
    },
    Move {
        from: PathBuf,
        to: PathBuf,
        replace: bool,
    },
    ChangeMode {
        path: PathBuf,
        mode: u32,
    },
    Read {
        channel: ChannelId,
        path: PathBuf,
        offset: u64,
        limit: Option<u64>,
    },
    Write {
        channel: ChannelId,
        path: PathBuf,
        options: WriteOptions,
    },
    Watch {
        channel: ChannelId,
        path: PathBuf,
        recursive: bool,
    },
    Pack {
        channel: ChannelId,
        path: PathBuf,
    },
    Unpack {
        channel: ChannelId,
        path: PathBuf,
    },
    /// Only root can look at the layers of the root file system.
    Changes {
        channel: ChannelId,
        wanted: ChangedSince,
    },
    /// Something about disks, which only root may do.
    Disk(DiskOperation),
    /// Only root may look at all memory.
    FreePages(FreePagesWanted),
}

/// Which way the bytes of an operation go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    None,
    ToHost(ChannelId),
    ToGuest(ChannelId),
}

impl Operation {
    pub(super) const fn flow(&self) -> Flow {
        match self {
            Self::Read { channel, .. }
            | Self::Watch { channel, .. }
            | Self::Pack { channel, .. }
            | Self::Changes { channel, .. } => Flow::ToHost(*channel),
            Self::Write { channel, .. } | Self::Unpack { channel, .. } => Flow::ToGuest(*channel),
            Self::Stat { .. }
            | Self::List { .. }
            | Self::MakeDirectory { .. }
            | Self::Remove { .. }
            | Self::Move { .. }
            | Self::ChangeMode { .. }
            | Self::Disk(_)
            | Self::FreePages(_) => Flow::None,
        }
    }

    pub(crate) const fn channel(&self) -> Option<ChannelId> {
        match self.flow() {
            Flow::None => None,
            Flow::ToHost(channel) | Flow::ToGuest(channel) => Some(channel),
        }
    }

    pub(crate) const fn is_watch(&self) -> bool {
        matches!(self, Self::Watch { .. })
    }

    /// Refuses what cannot be a path before anything is started for it.
    pub(crate) fn check_paths(&self) -> Result<(), GuestError> {
        let paths: [Option<&Path>; 2] = match self {
            Self::Stat { path }
            | Self::List { path, .. }
            | Self::MakeDirectory { path, .. }
            | Self::Remove { path, .. }
            | Self::ChangeMode { path, .. }
            | Self::Read { path, .. }
            | Self::Write { path, .. }
            | Self::Watch { path, .. }
            | Self::Pack { path, .. }
            | Self::Unpack { path, .. } => [Some(path), None],
            Self::Move { from, to, .. } => [Some(from), Some(to)],
            Self::Changes { wanted, .. } => [Some(&wanted.path), None],
            Self::Disk(_) | Self::FreePages(_) => [None, None],
        };
        let is_no_path = |path: &Path| {
            let bytes = path.as_os_str().as_bytes();
            bytes.is_empty() || bytes.contains(&0)
        };
        if paths.into_iter().flatten().any(is_no_path) {
            return Err(invalid("the path is empty or not text"));
        }
        Ok(())
    }

    /// What the child needs of the agent's descriptors.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Disk(operation) => operation.descriptor().into_iter().collect(),
            Self::Changes { wanted, .. } => wanted.descriptors().to_vec(),
            Self::Stat { .. }
            | Self::List { .. }
            | Self::MakeDirectory { .. }
            | Self::Remove { .. }
            | Self::Move { .. }
            | Self::ChangeMode { .. }
            | Self::Read { .. }
            | Self::Write { .. }
            | Self::Watch { .. }
            | Self::Pack { .. }
            | Self::Unpack { .. }
            | Self::FreePages(_) => Vec::new(),
        }
    }
}

impl Job {
    /// Does the work of a forked child and ends it.
    pub(super) fn run(&self, socket: OwnedFd) -> ! {
        let mut kept = vec![socket.as_fd()];
        kept.extend(self.operation.descriptors());
        sys::close_all_but(&kept);
        sys::unblock_all();
        let is_disk = matches!(self.operation, Operation::Disk(_));
        if !is_disk {
            // Unlike the agent, this process may be the one that has to go.
            let _ = fs::write("/proc/self/oom_score_adj", "0");
        }
        let line = Line::new(socket.as_fd(), self.call);
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
            Operation::Stat { path } => line.answer(operate::stat(path)),
            Operation::List { path, options } => line.answer(directory::list(path, options)),
            Operation::MakeDirectory {
                path,
                mode,
                make_parents,
            } => line.answer(operate::make_directory(path, *mode, *make_parents)),
            Operation::Remove { path, recursive } => line.answer(operate::remove(path, *recursive)),
            Operation::Move { from, to, replace } => {
                line.answer(operate::move_entry(from, to, *replace))
            }
            Operation::ChangeMode { path, mode } => line.answer(operate::change_mode(path, *mode)),
            Operation::Read {
                channel,
                path,
                offset,
                limit,
            } => transfer::read(line, *channel, path, *offset, *limit),
            Operation::Write {
                channel,
                path,
                options,
            } => transfer::write(line, *channel, path, *options),
            Operation::Watch {
                channel,
                path,
                recursive,
            } => watch::watch(line, *channel, path, *recursive),
            Operation::Pack { channel, path } => pack::pack(line, *channel, path),
            Operation::Unpack { channel, path } => unpack::unpack(line, *channel, path),
            Operation::Changes { channel, wanted } => changes::list(line, *channel, wanted),
            Operation::Disk(operation) => line.answer(operation.run()),
            Operation::FreePages(wanted) => line.answer(wanted.find()),
        }
    }

    /// Relative paths start where an exec would start. What has none stays out of every file system
    /// that may have to be unmounted.
    fn enter_directory(&self) {
        let has_none = matches!(self.operation, Operation::Disk(_) | Operation::FreePages(_));
        let places = [
            self.account.directory.as_str(),
            self.account.home.as_str(),
            "/",
        ];
        let places = if has_none { &places[2..] } else { &places };
        let _ = places
            .iter()
            .any(|place| std::env::set_current_dir(place).is_ok());
    }
}
