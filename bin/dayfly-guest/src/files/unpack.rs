//! Unpacking an archive that somebody hostile may have made.
//!
//! Every step goes from a held directory to one name in it, and no link is ever followed, be it
//! from the archive or there before: nothing is made, replaced or linked to outside of the target.
//! Modes lose their special bits, and everything belongs to the user that unpacks.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use dayfly_guest_proto::{ChannelId, GuestError, Response};
use dayfly_types::limits::FILE_BYTES_MAX;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Timespec, Timestamps, UTIME_OMIT, futimens,
    linkat, mkdirat, openat, openat2, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::archive::{ArchiveError, Member, MemberKind, Members};
use super::line::Line;
use super::operate::failed;
use super::stream::{FromHost, fail, written};
use super::{guest_error, invalid, names};

/// What of a member's mode is taken over.
const MODE_BITS: u32 = 0o777;
/// Whoever unpacks can go on unpacking into a directory of its own.
const DIRECTORY_BITS: u32 = 0o700;

/// Takes an archive from the agent and unpacks it as it comes.
pub(super) fn unpack(line: &Line<'_>, channel: ChannelId, path: &Path) -> io::Result<()> {
    let target = match Target::open(path) {
        Ok(target) => target,
        Err(error) => return line.answer(Err(error)),
    };
    line.answer(Ok(Response::Done))?;
    let mut archive = tar::Archive::new(FromHost::new(line));
    let unpacked = target.unpack_all(&mut archive);
    let mut source = archive.into_inner();
    // What stands behind the end of an archive is padding; the host may still be sending it.
    let drained = unpacked.and_then(|()| {
        io::copy(&mut source, &mut io::sink())
            .map(drop)
            .map_err(|error| guest_error("cannot take the archive", &error))
    });
    if source.was_dropped() {
        return Ok(());
    }
    match drained {
        Ok(()) => written(line, channel, source.total()),
        Err(_) if source.was_too_long() => {
            fail(line, channel, invalid("the archive is over the size limit"))
        }
        Err(error) => fail(line, channel, error),
    }
}

/// The directory that everything goes into.
struct Target {
    top: OwnedFd,
}

impl Target {
    fn open(path: &Path) -> Result<Self, GuestError> {
        fs::create_dir_all(path).map_err(|error| guest_error(&names::path_text(path), &error))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open(path, flags, Mode::empty()).map_err(failed(path))?;
        Ok(Self { top })
    }

    fn unpack_all(&self, archive: &mut tar::Archive<FromHost<'_>>) -> Result<(), GuestError> {
        let refused = |error: ArchiveError| invalid(error.to_string());
        let mut members = Members::new(archive).map_err(refused)?;
        let mut room = FILE_BYTES_MAX;
        while let Some((member, content)) = members.next().map_err(refused)? {
            room = room
                .checked_sub(member.size)
                .ok_or_else(|| invalid("the archive is over the size limit"))?;
            self.unpack_one(&member, content).map_err(|error| {
                let name = names::text(&member.name);
                guest_error(&name, &error)
            })?;
        }
        Ok(())
    }

    fn unpack_one(&self, member: &Member, content: impl Read) -> io::Result<()> {
        let parts = parts(&member.name)?;
        let Some((name, above)) = parts.split_last() else {
            // The target itself, which stays as it is.
            return match member.kind {
                MemberKind::Directory => Ok(()),
                MemberKind::File | MemberKind::Symlink | MemberKind::HardLink => {
                    Err(refusal("it has no name"))
                }
            };
        };
        let parent = self.ensure_directories(above)?;
        match member.kind {
            MemberKind::Directory => make_directory(&parent, name, member.mode),
            MemberKind::File => write_file(&parent, name, member, content),
            MemberKind::Symlink if member.link.is_empty() => Err(refusal("it leads nowhere")),
            MemberKind::Symlink => {
                make_way(&parent, name)?;
                Ok(symlinkat(member.link.as_slice(), &parent, *name)?)
            }
            MemberKind::HardLink => self.link(&parent, &parts, &member.link),
        }
    }

    /// Opens a directory below the target and makes what is missing of it.
    fn ensure_directories(&self, parts: &[&[u8]]) -> io::Result<OwnedFd> {
        if let Ok(directory) = self.open_directory(parts) {
            return Ok(directory);
        }
        let mut directory = self.open_directory(&[])?;
        for part in parts {
            match mkdirat(&directory, *part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            directory = step(&directory, part)?;
        }
        Ok(directory)
    }

    fn open_directory(&self, parts: &[&[u8]]) -> io::Result<OwnedFd> {
        let path = parts.join(&b'/');
        let path = if path.is_empty() { b".".to_vec() } else { path };
        step(&self.top, &path)
    }

    /// Links to a file that is below the target already.
    fn link(&self, parent: &OwnedFd, parts: &[&[u8]], link: &[u8]) -> io::Result<()> {
        let target = self::parts(link)?;
        if target == parts {
            return Ok(());
        }
        let Some((name, above)) = target.split_last() else {
            return Err(refusal("it links to a directory"));
        };
        let is_file = |from: &OwnedFd| {
            let stat = statat(from, *name, AtFlags::SYMLINK_NOFOLLOW);
            stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
        };
        let from = self.open_directory(above).ok().filter(is_file);
        let from = from.ok_or_else(|| refusal("it links to no file of the archive's directory"))?;
        let Some(own_name) = parts.last() else {
            return Err(refusal("it has no name"));
        };
        make_way(parent, own_name)?;
        Ok(linkat(&from, *name, parent, *own_name, AtFlags::empty())?)
    }
}

/// The names on the way to a member, if it stays below the target.
fn parts(path: &[u8]) -> io::Result<Vec<&[u8]>> {
    if path.first() == Some(&b'/') {
        return Err(refusal("its path is absolute"));
    }
    let parts: Vec<&[u8]> = path
        .split(|byte| *byte == b'/')
        .filter(|part| !matches!(*part, b"" | b"."))
        .collect();
    if parts.contains(&b"..".as_slice()) {
        return Err(refusal("its path leads upwards"));
    }
    Ok(parts)
}

/// Opens a directory without leaving the one it starts from and without following any link.
fn step(from: impl AsFd, path: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(from, path, flags, Mode::empty(), resolve)?)
}

fn make_directory(parent: &OwnedFd, name: &[u8], mode: u32) -> io::Result<()> {
    let mode = mode & MODE_BITS | DIRECTORY_BITS;
    match mkdirat(parent, name, Mode::from_raw_mode(DIRECTORY_BITS)) {
        Ok(()) => {
            let directory = File::from(step(parent, name)?);
            directory.set_permissions(Permissions::from_mode(mode))
        }
        // It stays as it is, if it is a directory.
        Err(Errno::EXIST) => step(parent, name).map(drop),
        Err(error) => Err(error.into()),
    }
}

fn write_file(
    parent: &OwnedFd,
    name: &[u8],
    member: &Member,
    mut content: impl Read,
) -> io::Result<()> {
    make_way(parent, name)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(parent, name, flags, Mode::from_raw_mode(0o600))?);
    let copied = io::copy(&mut content, &mut file)?;
    if copied != member.size {
        return Err(refusal("it is shorter than it says"));
    }
    file.set_permissions(Permissions::from_mode(member.mode & MODE_BITS))?;
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: i64::try_from(member.mtime).unwrap_or(0),
            tv_nsec: 0,
        },
    };
    Ok(futimens(&file, &times)?)
}

/// Removes what a member replaces. A directory is not replaced.
fn make_way(parent: &OwnedFd, name: &[u8]) -> io::Result<()> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn refusal(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_that_stay_below_have_parts() {
        let expected: Vec<&[u8]> = vec![b"a", b"b"];
        assert_eq!(parts(b"./a//b/").unwrap(), expected);
        assert!(parts(b"./").unwrap().is_empty());
        for path in [&b"/a"[..], b"..", b"a/../b", b"a/..", b"//etc/passwd"] {
            assert!(parts(path).is_err(), "{path:?}");
        }
        assert_eq!(parts(b"..a/b..").unwrap().len(), 2);
    }
}
