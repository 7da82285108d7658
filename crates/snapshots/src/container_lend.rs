//! Copies of images of this host, for a program that may read nothing else.
//!
//! Tools write images for root alone, and the program is not root. Its copies are made byte by byte:
//! nothing in them is understood here, no link below the directory is followed, and only names that
//! an image has are looked for.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown, fchown};
use std::path::Path;

use dayfly_types::container_image::file_names;
use rustix::fs::{Dir, Mode, OFlags, ResolveFlags, openat2};

use crate::files::open_regular;
use crate::image_address::ImageAddress;

const BLOBS: &str = "blobs";
const BLOB_KIND: &str = "sha256";
const DOCUMENTS: [&str; 2] = ["oci-layout", "index.json"];

/// Puts a copy of the image into `work`, for `uid` alone, and says how much of `room` is left. An
/// image of a registry needs none.
pub(crate) fn lend(image: &ImageAddress, work: &Path, uid: u32, room: u64) -> io::Result<u64> {
    let mut lender = Lender { uid, left: room };
    match image {
        ImageAddress::Registry(_) => {}
        ImageAddress::Archive { path, .. } => {
            let source = open_regular(path).map_err(|error| named(path, error))?;
            lender.file(path, source, &work.join(file_names::ARCHIVE))?;
        }
        ImageAddress::Layout { path, .. } => {
            lender.layout(path, &work.join(file_names::LAYOUT))?;
        }
    }
    Ok(lender.left)
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A file or directory below one that is open, over no link.
fn open_beneath(directory: &OwnedFd, name: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = openat2(directory, name, flags, Mode::empty(), how);
    opened.map_err(|error| named(name, error.into()))
}

struct Lender {
    uid: u32,
    /// Bytes that may still be copied.
    left: u64,
}

impl Lender {
    fn layout(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(from, flags, Mode::empty());
        let layout = opened.map_err(|error| named(from, error.into()))?;
        self.directory(to)?;
        for name in DOCUMENTS {
            self.beneath(&layout, Path::new(name), &to.join(name))?;
        }
        self.directory(&to.join(BLOBS))?;
        let inside = Path::new(BLOBS).join(BLOB_KIND);
        self.directory(&to.join(&inside))?;
        let blobs = open_beneath(&layout, &inside, OFlags::DIRECTORY)?;
        for entry in Dir::read_from(&blobs)? {
            let name = entry?.file_name().to_bytes().to_vec();
            let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
            // What has another name belongs to a tool that is at work here.
            if name.len() == 64 && name.iter().all(is_digit) {
                let name = OsString::from_vec(name);
                self.beneath(&blobs, Path::new(&name), &to.join(&inside).join(&name))?;
            }
        }
        Ok(())
    }

    fn beneath(&mut self, directory: &OwnedFd, name: &Path, to: &Path) -> io::Result<()> {
        let source = File::from(open_beneath(directory, name, OFlags::empty())?);
        if !source.metadata()?.is_file() {
            return Err(named(name, io::ErrorKind::InvalidInput.into()));
        }
        self.file(name, source, to)
    }

    /// The directory above belongs to root alone while copies are made.
    fn directory(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)?;
        chown(path, Some(self.uid), Some(self.uid))
    }

    fn file(&mut self, from: &Path, source: File, to: &Path) -> io::Result<()> {
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o400);
        let mut target = options.open(to)?;
        let copied = io::copy(&mut source.take(self.left.saturating_add(1)), &mut target);
        let left = self
            .left
            .checked_sub(copied.map_err(|error| named(from, error))?);
        self.left = left.ok_or(io::ErrorKind::StorageFull)?;
        fchown(&target, Some(self.uid), Some(self.uid))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_layout_is_copied_without_links_and_strange_names() {
        let here = tempfile::tempdir().unwrap();
        let layout = here.path().join("layout");
        let blobs = layout.join("blobs/sha256");
        fs::create_dir_all(&blobs).unwrap();
        for name in DOCUMENTS {
            fs::write(layout.join(name), name).unwrap();
        }
        fs::write(blobs.join("a".repeat(64)), "blob").unwrap();
        fs::write(blobs.join("partial"), "no").unwrap();
        let uid = rustix::process::geteuid().as_raw();
        let image = ImageAddress::Layout {
            path: layout.clone(),
            tag: None,
        };
        let work = here.path().join("one");
        fs::create_dir(&work).unwrap();
        assert!(lend(&image, &work, uid, 1 << 20).unwrap() < 1 << 20);
        let lent = work.join(file_names::LAYOUT).join("blobs/sha256");
        let names: Vec<_> = fs::read_dir(&lent).unwrap().flatten().collect();
        assert_eq!(names.len(), 1);
        assert_eq!(fs::read(lent.join("a".repeat(64))).unwrap(), b"blob");
        // A link among the blobs is refused, wherever it leads.
        std::os::unix::fs::symlink("/etc/passwd", blobs.join("b".repeat(64))).unwrap();
        let work = here.path().join("two");
        fs::create_dir(&work).unwrap();
        assert!(lend(&image, &work, uid, 1 << 20).is_err());
        fs::remove_file(blobs.join("b".repeat(64))).unwrap();
        // So is one on the way to them, and what has no room.
        let aside = here.path().join("aside");
        fs::rename(layout.join("blobs"), &aside).unwrap();
        std::os::unix::fs::symlink(&aside, layout.join("blobs")).unwrap();
        let work = here.path().join("three");
        fs::create_dir(&work).unwrap();
        assert!(lend(&image, &work, uid, 1 << 20).is_err());
        let work = here.path().join("four");
        fs::create_dir(&work).unwrap();
        assert!(lend(&image, &work, uid, 3).is_err());
    }
}
