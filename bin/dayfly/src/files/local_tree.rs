//! Trees of this machine as archives, and archives of a guest as trees of this machine.
//!
//! What a guest sends is not to be trusted: nothing is written outside of the target, through a
//! link or beyond a size, and nothing but files, directories and links is made.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use dayfly_types::limits::{ARCHIVE_ENTRIES_MAX, FILE_BYTES_MAX};
use tar::{Archive, Builder, Header};

/// What the headers of one member may have.
const HEADER_BYTES_MAX: u64 = 256 << 10;

/// What was packed or unpacked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TreeCount {
    pub(crate) files: u64,
    /// Neither files nor directories nor links.
    pub(crate) skipped: Vec<PathBuf>,
}

/// Packs what is in a directory, with names relative to it.
pub(crate) fn pack(top: &Path, out: impl Write) -> io::Result<TreeCount> {
    let mut archive = Builder::new(out);
    let mut count = TreeCount::default();
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(top.join(&directory)).map_err(at(&directory))? {
            let name = directory.join(entry?.file_name());
            let path = top.join(&name);
            let metadata = fs::symlink_metadata(&path).map_err(at(&path))?;
            let mut header = header(&metadata);
            if metadata.is_dir() {
                archive.append_data(&mut header, &name, io::empty())?;
                waiting.push(name);
            } else if metadata.is_symlink() {
                let target = fs::read_link(&path).map_err(at(&path))?;
                archive.append_link(&mut header, &name, target)?;
            } else if metadata.is_file() {
                append_file(&mut archive, &name, &path).map_err(at(&path))?;
                count.files += 1;
            } else {
                count.skipped.push(path);
            }
        }
    }
    archive.into_inner()?.flush()?;
    Ok(count)
}

fn header(metadata: &fs::Metadata) -> Header {
    let mut header = Header::new_gnu();
    header.set_metadata(metadata);
    header
}

fn append_file<W: Write>(archive: &mut Builder<W>, name: &Path, path: &Path) -> io::Result<()> {
    // Without waiting, should a pipe have come into its place.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(());
    }
    let size = metadata.size();
    // Cut or padded to the size that the header says, should it change meanwhile.
    let content = file.take(size).chain(io::repeat(0)).take(size);
    archive.append_data(&mut header(&metadata), name, content)
}

/// Names the path in an error.
fn at(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Unpacks an archive into a directory, which is made if it is not there.
pub(crate) fn unpack(archive: impl Read, top: &Path) -> io::Result<TreeCount> {
    fs::create_dir_all(top).map_err(at(top))?;
    let budget = Rc::new(Cell::new(HEADER_BYTES_MAX));
    let mut archive = Archive::new(Budgeted {
        inner: archive,
        budget: Rc::clone(&budget),
    });
    archive.set_preserve_permissions(false);
    let mut count = TreeCount::default();
    let mut room = FILE_BYTES_MAX;
    let mut members = 0;
    for entry in archive.entries()? {
        let mut entry = entry?;
        members += 1;
        let kind = entry.header().entry_type();
        let is_file = kind.is_file();
        if !is_file && !kind.is_dir() && !kind.is_symlink() {
            return Err(refused("a member that is no file, directory or link"));
        }
        room = match room.checked_sub(entry.size()) {
            Some(room) if members <= ARCHIVE_ENTRIES_MAX => room,
            _ => return Err(refused("more than an archive may have")),
        };
        budget.set(entry.size().saturating_add(HEADER_BYTES_MAX));
        if !entry.unpack_in(top)? {
            return Err(refused("a member that leads out of the directory"));
        }
        count.files += u64::from(is_file);
        budget.set(HEADER_BYTES_MAX);
    }
    Ok(count)
}

fn refused(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the archive has {what}"),
    )
}

/// Stops a reader that would read more of a header than any honest one has.
struct Budgeted<R> {
    inner: R,
    budget: Rc<Cell<u64>>,
}

impl<R: Read> Read for Budgeted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        let left = self.budget.get().checked_sub(count as u64);
        self.budget
            .set(left.ok_or_else(|| refused("a header without an end"))?);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn packed(top: &Path) -> Vec<u8> {
        let mut archive = Vec::new();
        pack(top, &mut archive).unwrap();
        archive
    }

    #[test]
    fn a_tree_survives_the_round_trip() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::create_dir(from.join("empty")).unwrap();
        fs::write(from.join("a/b/file"), "content").unwrap();
        let long = "n".repeat(180);
        fs::write(from.join("a").join(&long), "long").unwrap();
        symlink("../a/b/file", from.join("a/link")).unwrap();
        fs::write(from.join("run"), "#!/bin/sh").unwrap();
        fs::set_permissions(from.join("run"), PermissionsExt::from_mode(0o4755)).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
        let mut archive = Vec::new();
        let count = pack(&from, &mut archive).unwrap();
        assert_eq!((count.files, count.skipped), (3, vec![from.join("socket")]));
        drop(socket);
        assert_eq!(unpack(&archive[..], &to).unwrap().files, 3);
        assert_eq!(fs::read(to.join("a/b/file")).unwrap(), b"content");
        assert_eq!(fs::read(to.join("a").join(&long)).unwrap(), b"long");
        assert_eq!(
            fs::read_link(to.join("a/link")).unwrap(),
            Path::new("../a/b/file")
        );
        assert!(to.join("empty").is_dir());
        let mode = fs::metadata(to.join("run")).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o755, "special bits are dropped");
        assert_eq!(packed(&to).len() % 512, 0);
    }

    fn forged(members: &[(tar::EntryType, &str, &str)]) -> Vec<u8> {
        let mut archive = Vec::new();
        for (kind, name, link) in members {
            let mut header = Header::new_gnu();
            let old = header.as_old_mut();
            old.name[..name.len()].copy_from_slice(name.as_bytes());
            old.linkname[..link.len()].copy_from_slice(link.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o777);
            header.set_size(0);
            header.set_cksum();
            archive.extend_from_slice(header.as_bytes());
        }
        archive.extend_from_slice(&[0; 1024]);
        archive
    }

    #[test]
    fn a_hostile_guest_writes_nothing_outside() {
        use tar::EntryType as Kind;
        let directory = tempfile::tempdir().unwrap();
        let outside = directory.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let outside_text = outside.to_str().unwrap();
        let escape = format!("{outside_text}/canary");
        let cases: [&[(Kind, &str, &str)]; 6] = [
            &[(Kind::Regular, "../outside/canary", "")],
            &[
                (Kind::Symlink, "l", outside_text),
                (Kind::Regular, "l/canary", ""),
            ],
            &[
                (Kind::Symlink, "l", "../outside"),
                (Kind::Directory, "l/canary", ""),
            ],
            &[(Kind::Link, "h", &escape)],
            &[(Kind::Char, "d", "")],
            &[(Kind::Fifo, "f", "")],
        ];
        for (number, case) in cases.into_iter().enumerate() {
            let to = directory.path().join(format!("to-{number}"));
            assert!(unpack(&forged(case)[..], &to).is_err(), "case {number}");
            assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "case {number}");
        }
        // An absolute name is below the target, as with any tar.
        let to = directory.path().join("absolute");
        let _ = unpack(&forged(&[(Kind::Regular, &escape, "")])[..], &to);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn a_name_without_an_end_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mut header = Header::new_gnu();
        header.set_entry_type(tar::EntryType::GNULongName);
        header.set_size(4 << 30);
        header.set_cksum();
        let name = io::repeat(b'n').take(4 << 30);
        let archive = io::Cursor::new(header.as_bytes().to_vec()).chain(name);
        let error = unpack(archive, &directory.path().join("to")).unwrap_err();
        assert!(error.to_string().contains("header"), "{error}");
    }
}
