//! OCI layouts: a directory with an index and with blobs under their digests.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use serde::Deserialize;

use crate::disk::{ImageFiles, OpenBlob, ReadImageError, follow, read_document};
use crate::document::{Descriptor, Image, list, read_names};

pub(crate) const MARK: &str = "oci-layout";
const INDEX: &str = "index.json";
const VERSION: &str = "1.0.0";

/// A directory whose files are opened by name, and nothing that a link in it points at.
#[derive(Debug)]
pub(crate) struct LayoutDirectory(OwnedFd);

impl LayoutDirectory {
    /// The path is the operator's; links in it lead where they lead.
    pub(crate) fn open(path: &Path) -> Result<Self, ReadImageError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        let directory = opened.map_err(|source| ReadImageError::Open {
            source: source.into(),
        })?;
        Ok(Self(directory))
    }

    fn open_beneath(&self, name: &str, flags: OFlags) -> Result<OwnedFd, ReadImageError> {
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = openat2(
            &self.0,
            name,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
            resolve,
        );
        opened.map_err(|error| {
            let name = name.to_owned();
            match error {
                Errno::NOENT => ReadImageError::Missing { name },
                Errno::LOOP | Errno::XDEV => ReadImageError::NotRegular { name },
                other => ReadImageError::Read {
                    name,
                    source: other.into(),
                },
            }
        })
    }
}

fn regular_size(file: &OwnedFd, name: &str) -> Result<u64, ReadImageError> {
    let status = fstat(file).map_err(|source| ReadImageError::Read {
        name: name.to_owned(),
        source: source.into(),
    })?;
    let size = u64::try_from(status.st_size).ok();
    let is_regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    size.filter(|_| is_regular)
        .ok_or_else(|| ReadImageError::NotRegular {
            name: name.to_owned(),
        })
}

impl ImageFiles for LayoutDirectory {
    fn open(&self, name: &str) -> Result<OpenBlob, ReadImageError> {
        // Looked at before it is opened: opening a pipe waits for its other end, and opening a
        // device can do anything. And again after, because it may have been replaced.
        regular_size(&self.open_beneath(name, OFlags::PATH)?, name)?;
        let file = self.open_beneath(name, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let size = regular_size(&file, name)?;
        Ok(OpenBlob {
            content: Box::new(File::from(file)),
            size,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LayoutMark {
    image_layout_version: String,
}

/// Finds the image that has this name in a layout; without a name, the only one.
pub(crate) fn find(files: &dyn ImageFiles, tag: Option<&str>) -> Result<Image, ReadImageError> {
    let mark = read_document(files, MARK)?;
    let mark: Option<LayoutMark> = serde_json::from_slice(&mark).ok();
    if mark.is_none_or(|mark| mark.image_layout_version != VERSION) {
        return Err(ReadImageError::NotALayout);
    }
    let entries = read_names(&read_document(files, INDEX)?)?;
    follow(files, choose(&entries, tag)?.clone())
}

/// A layout may have an entry for each platform under one name.
fn choose<'a>(
    entries: &'a [Descriptor],
    tag: Option<&str>,
) -> Result<&'a Descriptor, ReadImageError> {
    let names = || {
        list(
            entries
                .iter()
                .filter_map(|one| one.name().map(str::to_owned)),
        )
    };
    let is_meant = |one: &&Descriptor| tag.is_none_or(|tag| one.name() == Some(tag));
    let meant: Vec<&Descriptor> = entries.iter().filter(is_meant).collect();
    if let ([], Some(tag)) = (meant.as_slice(), tag) {
        return Err(ReadImageError::NoSuchName {
            wanted: tag.to_owned(),
            there: names(),
        });
    }
    let first_name = meant.first().and_then(|one| one.name());
    let is_one_name = meant.iter().all(|one| one.name() == first_name);
    let for_us: Vec<&Descriptor> = meant
        .iter()
        .copied()
        .filter(|one| one.is_for_us())
        .collect();
    match (meant.as_slice(), for_us.as_slice()) {
        ([only], _) => Ok(only),
        (_, [only]) if is_one_name => Ok(only),
        _ => Err(ReadImageError::Ambiguous { there: names() }),
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
