//! A tree as a tar archive.
//!
//! Regular files, directories and links as links; pipes, sockets and devices are left out. Names
//! are relative to the packed directory. A file that changes while it is read is cut or padded to
//! the length that its header says, so that the archive stays one.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use dayfly_guest_proto::{ChannelId, GuestError, Response};
use dayfly_types::limits::{ARCHIVE_ENTRIES_MAX, FILE_BYTES_MAX};
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;
use tar::{EntryType, Header};

use super::line::Line;
use super::operate::{check_regular, failed};
use super::stream::{ToHost, fail};
use super::walk::{Found, Walk};
use super::{guest_error, names};

const BLOCK_BYTES: usize = 512;
/// What a header has room for.
const SHORT_NAME_BYTES: usize = 100;
/// What stands in the header of an entry that carries a long name.
const LONG_NAME: &[u8] = b"././@LongLink";

/// Streams a directory, or one file, to the agent.
pub(super) fn pack(line: &Line<'_>, channel: ChannelId, path: &Path) -> io::Result<()> {
    let source = match Source::open(path) {
        Ok(source) => source,
        Err(error) => return line.answer(Err(error)),
    };
    line.answer(Ok(Response::Done))?;
    let mut archive = Archive {
        out: ToHost::new(line),
        entries: 0,
    };
    let packed = match source {
        Source::Tree(top) => archive.add_tree(top),
        Source::File(file) => archive.add_file(file, path),
    };
    match packed.and_then(|()| archive.finish()) {
        Ok(()) => Ok(()),
        Err(error) => fail(line, channel, guest_error("cannot pack", &error)),
    }
}

enum Source {
    Tree(OwnedFd),
    File(File),
}

impl Source {
    fn open(path: &Path) -> Result<Self, GuestError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(failed(path))?;
        let file = File::from(opened);
        let metadata = file
            .metadata()
            .map_err(|error| guest_error(&names::path_text(path), &error))?;
        if metadata.is_dir() {
            return Ok(Self::Tree(file.into()));
        }
        check_regular(path, &metadata)?;
        Ok(Self::File(file))
    }
}

struct Archive<'a> {
    out: ToHost<'a>,
    entries: u64,
}

impl Archive<'_> {
    fn add_tree(&mut self, top: OwnedFd) -> io::Result<()> {
        let mut walk = Walk::new(top)?;
        while let Some(found) = walk.next()? {
            self.add_found(&walk, &found).map_err(|error| {
                let what = names::text(walk.path());
                io::Error::new(error.kind(), format!("{what}: {error}"))
            })?;
            if found.kind() == FileType::Directory {
                walk.enter(&found)?;
            }
        }
        Ok(())
    }

    fn add_found(&mut self, walk: &Walk, found: &Found) -> io::Result<()> {
        let (parent, name) = (walk.parent()?, found.name.as_c_str());
        // Only these three have something to pack.
        if found.kind() == FileType::Directory {
            let mut path = walk.path().to_vec();
            path.push(b'/');
            return self.header(EntryType::Directory, &path, &[], &found.stat, 0);
        }
        if found.kind() == FileType::Symlink {
            let target = match readlinkat(parent, name, Vec::new()) {
                Ok(target) => target,
                Err(Errno::NOENT | Errno::INVAL) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let path = walk.path();
            return self.header(EntryType::Symlink, path, target.to_bytes(), &found.stat, 0);
        }
        if found.kind() != FileType::RegularFile {
            return Ok(());
        }
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match openat(parent, name, flags, Mode::empty()) {
            Ok(file) => self.add_regular(file.into(), walk.path()),
            // Gone since it was found, or a link or a socket by now.
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn add_file(&mut self, file: File, path: &Path) -> io::Result<()> {
        let name = path.file_name();
        let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        self.add_regular(file, name.as_bytes())
    }

    fn add_regular(&mut self, mut file: File, path: &[u8]) -> io::Result<()> {
        let stat = fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if size > FILE_BYTES_MAX.saturating_sub(self.out.total()) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.header(EntryType::Regular, path, &[], &stat, size)?;
        let copied = io::copy(&mut (&mut file).take(size), &mut self.out)?;
        // It became shorter meanwhile.
        io::copy(&mut io::repeat(0).take(size - copied), &mut self.out)?;
        self.pad(size)
    }

    fn header(
        &mut self,
        kind: EntryType,
        path: &[u8],
        link: &[u8],
        stat: &Stat,
        size: u64,
    ) -> io::Result<()> {
        self.entries += 1;
        if self.entries > ARCHIVE_ENTRIES_MAX {
            let text = "too many files for one archive";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if path.len() > SHORT_NAME_BYTES {
            self.long_name(EntryType::GNULongName, path)?;
        }
        if link.len() > SHORT_NAME_BYTES {
            self.long_name(EntryType::GNULongLink, link)?;
        }
        let mut header = Header::new_gnu();
        let old = header.as_old_mut();
        fill(&mut old.name, path);
        fill(&mut old.linkname, link);
        header.set_entry_type(kind);
        header.set_mode(stat.st_mode & 0o7777);
        header.set_uid(u64::from(stat.st_uid));
        header.set_gid(u64::from(stat.st_gid));
        header.set_mtime(u64::try_from(stat.st_mtime).unwrap_or(0));
        header.set_size(size);
        header.set_cksum();
        self.out.write_all(header.as_bytes())
    }

    /// An entry whose content is the name of the one that follows.
    fn long_name(&mut self, kind: EntryType, name: &[u8]) -> io::Result<()> {
        let mut header = Header::new_gnu();
        fill(&mut header.as_old_mut().name, LONG_NAME);
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        let size = name.len() as u64 + 1;
        header.set_size(size);
        header.set_cksum();
        self.out.write_all(header.as_bytes())?;
        self.out.write_all(name)?;
        self.out.write_all(&[0])?;
        self.pad(size)
    }

    fn pad(&mut self, size: u64) -> io::Result<()> {
        let beyond = usize::try_from(size % BLOCK_BYTES as u64).unwrap_or(0);
        if beyond > 0 {
            self.out.write_all(&[0; BLOCK_BYTES][beyond..])?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.out.write_all(&[0; 2 * BLOCK_BYTES])?;
        self.out.end()
    }
}

/// Puts as much of a name into a field as fits.
fn fill(field: &mut [u8], name: &[u8]) {
    let count = field.len().min(name.len());
    field[..count].copy_from_slice(&name[..count]);
}
