//! The members of a tar archive that somebody hostile may have made.
//!
//! Formats that several programs read in several ways are refused, so that what is unpacked here
//! is what any other program would have listed: sparse files, sizes that two headers tell
//! differently, global headers that change what follows, extended headers without a member or of an
//! old format, links and directories with content.

use std::io::{self, Read};

use dayfly_types::limits::ARCHIVE_ENTRIES_MAX;
use tar::{Entries, Entry, EntryType, PaxExtensions};

/// What an extended header may have; names are at most as long as a path.
const EXTENSION_BYTES_MAX: u64 = 64 << 10;

/// Why an archive is not unpacked any further.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveError {
    #[error("this is not a tar archive: {0}")]
    Malformed(io::Error),
    #[error("the archive has {0}")]
    Refused(&'static str),
}

/// What a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberKind {
    File,
    Directory,
    Symlink,
    HardLink,
}

/// One member, with names as they are in the archive.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) kind: MemberKind,
    pub(super) name: Vec<u8>,
    pub(super) link: Vec<u8>,
    pub(super) mode: u32,
    pub(super) mtime: u64,
    pub(super) size: u64,
}

/// What headers before a member say about it.
#[derive(Debug, Default)]
struct Extension {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
}

/// Gives one member after the other.
pub(super) struct Members<'a, R: Read> {
    entries: Entries<'a, R>,
    count: u64,
}

impl<'a, R: Read> Members<'a, R> {
    pub(super) fn new(archive: &'a mut tar::Archive<R>) -> Result<Self, ArchiveError> {
        // Raw, because the crate would read a long name of any length into memory.
        let entries = archive.entries().map_err(ArchiveError::Malformed)?;
        Ok(Self {
            entries: entries.raw(true),
            count: 0,
        })
    }

    /// The next member and its content, which must be read before the one after it.
    pub(super) fn next(&mut self) -> Result<Option<(Member, Entry<'a, R>)>, ArchiveError> {
        let mut extension = Extension::default();
        for entry in self.entries.by_ref() {
            let mut entry = entry.map_err(ArchiveError::Malformed)?;
            self.count += 1;
            if self.count > ARCHIVE_ENTRIES_MAX {
                return Err(ArchiveError::Refused("too many members"));
            }
            if !extension.take(&mut entry)? {
                let member = extension.member(&entry)?;
                return Ok(Some((member, entry)));
            }
        }
        if extension.is_empty() {
            return Ok(None);
        }
        Err(ArchiveError::Refused("an extended header without a member"))
    }
}

impl Extension {
    const fn is_empty(&self) -> bool {
        self.name.is_none() && self.link.is_none() && self.size.is_none()
    }

    /// Takes an entry that only describes others. Gives whether it was one.
    fn take<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<bool, ArchiveError> {
        let kind = entry.header().entry_type();
        // Other programs take these for members in headers that are older than they are.
        let describes = kind.is_gnu_longname()
            || kind.is_gnu_longlink()
            || kind.is_pax_local_extensions()
            || kind.is_pax_global_extensions();
        let is_old = entry.header().as_gnu().is_none() && entry.header().as_ustar().is_none();
        if describes && is_old {
            return Err(ArchiveError::Refused("an extended header of an old format"));
        }
        if kind == EntryType::GNULongName {
            set_once(&mut self.name, one_name(content(entry)?)?)?;
        } else if kind == EntryType::GNULongLink {
            set_once(&mut self.link, one_name(content(entry)?)?)?;
        } else if kind == EntryType::XHeader {
            self.take_records(&content(entry)?)?;
        } else if kind == EntryType::XGlobalHeader {
            check_global(&content(entry)?)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn take_records(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        for record in PaxExtensions::new(bytes) {
            let record = record.map_err(ArchiveError::Malformed)?;
            let value = record.value_bytes();
            match record.key_bytes() {
                b"path" => set_once(&mut self.name, value.to_vec())?,
                b"linkpath" => set_once(&mut self.link, value.to_vec())?,
                b"size" => {
                    let size = std::str::from_utf8(value)
                        .ok()
                        .and_then(|text| text.parse().ok());
                    let size = size.ok_or(ArchiveError::Refused("a size that is no number"))?;
                    set_once(&mut self.size, size)?;
                }
                key if key.starts_with(b"GNU.sparse") => {
                    return Err(ArchiveError::Refused("a sparse file"));
                }
                // Times, owners and attributes are not taken over.
                _ => {}
            }
        }
        Ok(())
    }

    fn member<R: Read>(self, entry: &Entry<'_, R>) -> Result<Member, ArchiveError> {
        let header = entry.header();
        let malformed = ArchiveError::Malformed;
        let size = header.entry_size().map_err(malformed)?;
        if self.size.is_some_and(|told| told != size) {
            return Err(ArchiveError::Refused("a file of two sizes"));
        }
        let name = self
            .name
            .unwrap_or_else(|| header.path_bytes().into_owned());
        let link = self
            .link
            .or_else(|| Some(header.link_name_bytes()?.into_owned()));
        let kind = member_kind(header.entry_type(), &name)?;
        if kind != MemberKind::File && size != 0 {
            return Err(ArchiveError::Refused("content where there can be none"));
        }
        Ok(Member {
            kind,
            name,
            link: link.unwrap_or_default(),
            mode: header.mode().map_err(ArchiveError::Malformed)?,
            mtime: header.mtime().unwrap_or(0),
            size,
        })
    }
}

fn member_kind(kind: EntryType, name: &[u8]) -> Result<MemberKind, ArchiveError> {
    // A file whose name ends like that of a directory is one, to older programs and to this.
    let is_file = kind.is_file() || kind.is_contiguous();
    if kind.is_dir() || (is_file && name.ends_with(b"/")) {
        Ok(MemberKind::Directory)
    } else if is_file {
        Ok(MemberKind::File)
    } else if kind.is_symlink() {
        Ok(MemberKind::Symlink)
    } else if kind.is_hard_link() {
        Ok(MemberKind::HardLink)
    } else if kind.is_gnu_sparse() {
        Err(ArchiveError::Refused("a sparse file"))
    } else if kind.is_character_special() || kind.is_block_special() {
        Err(ArchiveError::Refused("a device"))
    } else if kind.is_fifo() {
        Err(ArchiveError::Refused("a pipe"))
    } else {
        Err(ArchiveError::Refused("a member of an unknown kind"))
    }
}

fn content<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, ArchiveError> {
    let size = entry.size();
    if size > EXTENSION_BYTES_MAX {
        return Err(ArchiveError::Refused("a header that is too long"));
    }
    let mut bytes = Vec::new();
    entry
        .take(EXTENSION_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(ArchiveError::Malformed)?;
    if bytes.len() as u64 == size {
        Ok(bytes)
    } else {
        Err(ArchiveError::Malformed(io::ErrorKind::UnexpectedEof.into()))
    }
}

/// A name without the NULs that end it. One with a NUL inside is read as two names by two programs.
fn one_name(mut name: Vec<u8>) -> Result<Vec<u8>, ArchiveError> {
    let end = name.iter().rposition(|byte| *byte != 0);
    name.truncate(end.map_or(0, |last| last + 1));
    if name.contains(&0) {
        return Err(ArchiveError::Refused("a name with a NUL in it"));
    }
    Ok(name)
}

fn set_once<T>(place: &mut Option<T>, value: T) -> Result<(), ArchiveError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(ArchiveError::Refused("two values for one thing")),
    }
}

/// A global header would change every member behind it; only a comment changes nothing.
fn check_global(bytes: &[u8]) -> Result<(), ArchiveError> {
    for record in PaxExtensions::new(bytes) {
        let record = record.map_err(ArchiveError::Malformed)?;
        if record.key_bytes() != b"comment" {
            return Err(ArchiveError::Refused("a global header"));
        }
    }
    Ok(())
}
