//! Volumes on spare disks, and growing the writable disk.
//!
//! A spare disk is part of every machine of a template; what is on it the host exchanges while the
//! machine runs. Everything here happens in a forked child of root, because a disk may take its
//! time and a path may hang.

mod mounted;
mod place;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use dayfly_guest_proto::{GuestError, GuestErrorCode, Response};
use dayfly_types::limits::SANDBOX_VOLUMES_MAX;
use rustix::fs::{AtFlags, Dir, Gid, Mode, OFlags, Uid};
use rustix::mount::{MountFlags, UnmountFlags};

use crate::clock::monotonic_ms;
use crate::disks::{self, Disk};
use crate::refusal::guest_error;
use crate::sys;

use mounted::mounted_paths;
use place::Place;

/// How long a disk may take to show the size that the host has already given it.
const DISK_DEADLINE_MS: u64 = 5000;
/// How long the host's announcement of a size may take.
const DISK_ANNOUNCEMENT_MS: u64 = 300;
const DISK_LOOK_PERIOD: Duration = Duration::from_millis(5);
const SPARE_PREFIX: &str = "spare";
const WRITABLE_SERIAL: &str = "rw";
const FILE_SYSTEM: &str = "ext4";
/// The first user of every template, who is to write to a new volume without being root.
const FIRST_USER: u32 = 1000;

/// Which disk was last asked to be mounted where. A spare disk that is free again stays in here:
/// asking once more whether it is free costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    paths: BTreeMap<String, Place>,
}

impl Volumes {
    /// Notes what is about to be mounted and gives the work to do.
    pub(crate) fn mount(
        &mut self,
        serial: String,
        path: &str,
        read_only: bool,
        expect_bytes: Option<u64>,
    ) -> Result<DiskOperation, GuestError> {
        let is_spare = serial.starts_with(SPARE_PREFIX);
        let has_room = self.paths.len() < SANDBOX_VOLUMES_MAX || self.paths.contains_key(&serial);
        if !is_spare || !has_room {
            let text = format!("{serial:?} is no disk for a volume");
            return Err(GuestError::new(GuestErrorCode::Invalid, text));
        }
        let place = Place::parse(path)?;
        self.paths.insert(serial.clone(), place.clone());
        Ok(DiskOperation::Mount {
            serial,
            place,
            read_only,
            expect_bytes,
        })
    }

    /// The work to unmount a volume; `None` when none was ever mounted there.
    pub(crate) fn unmount(&self, path: &str) -> Result<Option<DiskOperation>, GuestError> {
        let place = Place::parse(path)?;
        let serial = self.paths.iter().find(|(_, known)| **known == place);
        Ok(serial.map(|(serial, _)| DiskOperation::Unmount {
            serial: serial.clone(),
        }))
    }
}

/// What a child of root does with a disk.
#[derive(Debug)]
pub(crate) enum DiskOperation {
    Mount {
        serial: String,
        place: Place,
        read_only: bool,
        expect_bytes: Option<u64>,
    },
    Unmount {
        serial: String,
    },
    Grow {
        /// On the file system that grows.
        writable: OwnedFd,
        expect_bytes: u64,
    },
}

impl DiskOperation {
    /// What the child needs of the agent's descriptors.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Grow { writable, .. } => Some(writable.as_fd()),
            Self::Mount { .. } | Self::Unmount { .. } => None,
        }
    }

    pub(crate) fn run(&self) -> Result<Response, GuestError> {
        match self {
            Self::Mount {
                serial,
                place,
                read_only,
                expect_bytes,
            } => {
                let disk = await_disk(serial, expect_bytes.unwrap_or(0))?;
                mount(&disk, place, *read_only)
            }
            Self::Unmount { serial } => match disks::look(serial) {
                Some(disk) => unmount(&disk),
                // A disk that is gone is not mounted.
                None => Ok(()),
            },
            Self::Grow {
                writable,
                expect_bytes,
            } => {
                let disk = await_disk(WRITABLE_SERIAL, *expect_bytes)?;
                grow(writable.as_fd(), &disk)
                    .map_err(|error| guest_error("cannot grow the file system", &error))
            }
        }
        .map(|()| Response::Done)
    }
}

/// Waits until a disk is there and has at least this size.
///
/// The host announces a new size, but cannot for a disk that it will not write to. So a spare disk
/// that stays small is taken from its driver and given back, which looks at it afresh.
fn await_disk(serial: &str, bytes: u64) -> Result<Disk, GuestError> {
    let start_ms = monotonic_ms();
    let mut may_look_afresh = serial.starts_with(SPARE_PREFIX);
    loop {
        let disk = disks::look(serial);
        if let Some(disk) = disk.as_ref().filter(|disk| disk.bytes >= bytes) {
            return Ok(disk.clone());
        }
        let waited_ms = monotonic_ms() - start_ms;
        if waited_ms >= DISK_DEADLINE_MS {
            let text = format!("the disk {serial} did not come with {bytes} bytes");
            return Err(GuestError::new(GuestErrorCode::NotFound, text));
        }
        if let Some(disk) = disk
            && may_look_afresh
            && waited_ms >= DISK_ANNOUNCEMENT_MS
        {
            may_look_afresh = false;
            disks::look_afresh(&disk)
                .map_err(|error| guest_error("cannot look at the disk afresh", &error))?;
        }
        std::thread::sleep(DISK_LOOK_PERIOD);
    }
}

fn mount(disk: &Disk, place: &Place, read_only: bool) -> Result<(), GuestError> {
    let failed = |error: io::Error| guest_error(place.as_str(), &error);
    let mounts = mounted::read().map_err(failed)?;
    if let Some(other) = mounts.iter().rfind(|mount| mount.path == place.path()) {
        if other.number == disk.number {
            return Ok(());
        }
        // The writable disk itself is only where engines of containers keep images, and a volume may
        // take that place.
        let is_ours = disks::look("rw").is_some_and(|ours| ours.number == other.number);
        if !is_ours {
            let text = format!("{}: something else is mounted here", place.as_str());
            return Err(GuestError::new(GuestErrorCode::Exists, text));
        }
    }
    let directory = place.make().map_err(failed)?;
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
    let mut options = c"";
    if read_only {
        flags |= MountFlags::RDONLY;
        // A journal that somebody else left is not replayed on a disk that must not change.
        options = c"noload";
    }
    // By descriptor: no part of the path can be exchanged in between.
    let target = place::descriptor_path(directory.as_fd());
    rustix::mount::mount(&disk.device, target, FILE_SYSTEM, flags, options)
        .map_err(|error| failed(error.into()))?;
    drop(directory);
    if read_only {
        return Ok(());
    }
    give_to_first_user(place).map_err(failed)
}

/// A file system that nobody has used yet belongs to root; its user is to be able to write to it.
fn give_to_first_user(place: &Place) -> io::Result<()> {
    let root = place.open()?;
    let is_roots = rustix::fs::fstat(&root)?.st_uid == 0;
    if is_roots && is_new(root.as_fd())? {
        let (user, group) = (Uid::from_raw(FIRST_USER), Gid::from_raw(FIRST_USER));
        rustix::fs::chownat(&root, "", Some(user), Some(group), AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

fn is_new(root: BorrowedFd<'_>) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(root, ".", flags, Mode::empty())?;
    for entry in Dir::read_from(directory)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b".." | b"lost+found") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Lets go of a disk: wherever its file system is mounted by now, and not before the kernel says
/// that nobody else has it.
fn unmount(disk: &Disk) -> Result<(), GuestError> {
    // The last mount first: it may be on another one.
    for path in mounted_paths(&disk.number)
        .map_err(|error| guest_error("cannot read what is mounted", &error))?
        .iter()
        .rev()
    {
        let failed = |error: io::Error| guest_error(&path.to_string_lossy(), &error);
        sync(path).map_err(failed)?;
        rustix::mount::unmount(path, UnmountFlags::NOFOLLOW)
            .map_err(|error| failed(error.into()))?;
    }
    // A process in a mount namespace of its own may still have it.
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::open(&disk.device, flags, Mode::empty())
        .map(drop)
        .map_err(|error| guest_error(&disk.device.to_string_lossy(), &error.into()))
}

fn sync(path: &Path) -> io::Result<()> {
    let directory = fs::File::open(path)?;
    rustix::fs::syncfs(&directory)?;
    Ok(())
}

/// Grows the file system to the whole disk, while it is in use. Nothing happens when it is that
/// large already.
fn grow(writable: BorrowedFd<'_>, disk: &Disk) -> io::Result<()> {
    let block_bytes = rustix::fs::fstatfs(writable)?.f_bsize;
    let block_bytes = u64::try_from(block_bytes).map_err(io::Error::other)?;
    let blocks = disk.bytes.checked_div(block_bytes);
    sys::resize_ext4(writable, blocks.ok_or(io::ErrorKind::InvalidData)?)
}

#[cfg(test)]
mod tests;
