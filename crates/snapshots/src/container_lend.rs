//! Copies of images of this host, for a program that may read nothing else.
//!
//! Tools write images for root alone, and the program is not root. Its copies are made byte by byte:
//! nothing in them is understood here, no link is followed, and only names that an image has are
//! looked for.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown};
use std::path::Path;

use dayfly_types::container_image::file_names;
use dayfly_types::limits::IMAGE_BYTES_MAX;

use crate::files::open_regular;
use crate::image_address::ImageAddress;

const BLOBS: &str = "blobs";
const BLOB_KIND: &str = "sha256";
const DOCUMENTS: [&str; 2] = ["oci-layout", "index.json"];

/// Puts a copy of the image into `work`, for `uid` alone. An image of a registry needs none.
pub(crate) fn lend(image: &ImageAddress, work: &Path, uid: u32) -> io::Result<()> {
    let mut lender = Lender {
        uid,
        left: IMAGE_BYTES_MAX,
    };
    match image {
        ImageAddress::Registry(_) => Ok(()),
        ImageAddress::Archive { path, .. } => lender.file(path, &work.join(file_names::ARCHIVE)),
        ImageAddress::Layout { path, .. } => lender.layout(path, &work.join(file_names::LAYOUT)),
    }
}

struct Lender {
    uid: u32,
    /// Bytes that may still be copied.
    left: u64,
}

impl Lender {
    fn layout(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.directory(to)?;
        for name in DOCUMENTS {
            self.file(&from.join(name), &to.join(name))?;
        }
        let (from, to) = (from.join(BLOBS), to.join(BLOBS));
        self.directory(&to)?;
        let (from, to) = (from.join(BLOB_KIND), to.join(BLOB_KIND));
        self.directory(&to)?;
        for entry in fs::read_dir(&from)? {
            let name = entry?.file_name();
            let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
            let text = name.as_encoded_bytes();
            // What has another name belongs to a tool that is at work here.
            if text.len() == 64 && text.iter().all(is_digit) {
                self.file(&from.join(&name), &to.join(&name))?;
            }
        }
        Ok(())
    }

    fn directory(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)?;
        chown(path, Some(self.uid), Some(self.uid))
    }

    fn file(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", from.display()));
        let source = open_regular(from).map_err(named)?;
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o400);
        let mut target = options.open(to)?;
        let copied = io::copy(&mut source.take(self.left.saturating_add(1)), &mut target);
        let left = self.left.checked_sub(copied.map_err(named)?);
        self.left = left.ok_or(io::ErrorKind::FileTooLarge)?;
        chown(to, Some(self.uid), Some(self.uid))
    }
}

#[cfg(test)]
mod tests {
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
        lend(&image, &work, uid).unwrap();
        let lent = work.join(file_names::LAYOUT).join("blobs/sha256");
        let names: Vec<_> = fs::read_dir(&lent).unwrap().flatten().collect();
        assert_eq!(names.len(), 1);
        assert_eq!(fs::read(lent.join("a".repeat(64))).unwrap(), b"blob");
        // A link among the blobs is refused, wherever it leads.
        std::os::unix::fs::symlink("/etc/passwd", blobs.join("b".repeat(64))).unwrap();
        let work = here.path().join("two");
        fs::create_dir(&work).unwrap();
        assert!(lend(&image, &work, uid).is_err());
    }
}
