//! Reads a layer: a tar archive of what it adds and takes away.
//!
//! The archive is read header by header, and what extends a header is put together here, so that
//! nothing is believed twice: an extended header may not give another size than the plain one, an
//! entry without content has none, and behind the end there is nothing but zeros. An archive that
//! two readers could understand differently is refused.

use std::fs::File;
use std::io::{self, BufReader, Read};

use dayfly_types::limits::{
    IMAGE_ENTRIES_MAX, IMAGE_EXTENSION_BYTES_MAX, IMAGE_METADATA_BYTES_MAX, IMAGE_PATH_BYTES_MAX,
    IMAGE_UNPACKED_BYTES_MAX,
};
use tar::{Archive, Header};

use crate::data::{BLOCK_BYTES, DataWriter};
use crate::digest::{Digest, HashingReader};
use crate::document::LayerCompression;
use crate::entry::{
    Content, Device, EntryKind, EntryPath, InvalidPath, LayerEntry, Metadata, shown,
};
use crate::pax::{self, Pax, PaxError};
use crate::tar_kind::TarKind;

const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Names that a file system of long ago kept for itself.
const RESERVED: &[u8] = b".wh..wh.";
const PERMISSIONS: u32 = 0o7777;
/// What eleven octal digits cannot say.
const PLAIN_SIZE_END: u64 = 1 << 33;
/// What an entry and each name of its path take in memory beside their letters, about.
const ENTRY_COST: usize = 256;
const NAME_COST: usize = 56;

/// Why a layer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadLayerError {
    #[error("the layer cannot be read")]
    Read(#[source] io::Error),
    #[error("the layer unpacks to {found}, and its image says {expected}")]
    Digest { expected: Digest, found: Digest },
    #[error("the layers unpack to more than {IMAGE_UNPACKED_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the host has no room for what the layers unpack to")]
    NoRoom,
    #[error("the layers have more than {IMAGE_ENTRIES_MAX} entries")]
    TooManyEntries,
    #[error("names and attributes of the layers take more than {IMAGE_METADATA_BYTES_MAX} bytes")]
    TooMuchMetadata,
    #[error("an entry has a path that no image may have")]
    Path(#[source] InvalidPath),
    #[error("the extended header of {path:?} is not usable")]
    Pax {
        path: String,
        #[source]
        source: PaxError,
    },
    #[error("{path:?}: {problem}")]
    Entry { path: String, problem: EntryProblem },
    #[error("behind the end of the archive are bytes that are not zero")]
    Trailing,
}

/// What is wrong with one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryProblem {
    #[error("the entry has a type that is not known here")]
    Type,
    #[error("it has 8 GiB or more, which is not read in the form of PAX")]
    LargeFile,
    #[error("a sparse file in GNU's format is not read here; pack it as a plain one")]
    Sparse,
    #[error("its headers contradict each other")]
    Contradiction,
    #[error("an extended header of it is longer than {IMAGE_EXTENSION_BYTES_MAX} bytes")]
    LongExtension,
    #[error("a header for all further entries says more than a comment")]
    GlobalHeader,
    #[error("it is no file and has content")]
    UnexpectedContent,
    #[error("a number in its header is out of range")]
    Number,
    #[error("it is a link without a target, or with one that no path can be")]
    Link,
    #[error("the root is not a directory")]
    Root,
    #[error("a name that begins with .wh. and is no whiteout")]
    Whiteout,
    #[error("an extended header stands at the end, without an entry")]
    Dangling,
}

/// What all layers of an image may take together.
#[derive(Debug)]
pub struct Budget {
    entries: usize,
    metadata_bytes: usize,
    unpacked_bytes: u64,
    disk_bytes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self::with_disk(IMAGE_UNPACKED_BYTES_MAX)
    }
}

impl Budget {
    /// With room for this many bytes of contents on the disk, each from the beginning of a block.
    #[must_use]
    pub fn with_disk(disk_bytes: u64) -> Self {
        Self {
            entries: IMAGE_ENTRIES_MAX,
            metadata_bytes: IMAGE_METADATA_BYTES_MAX,
            unpacked_bytes: IMAGE_UNPACKED_BYTES_MAX,
            disk_bytes,
        }
    }

    /// Before anything is written.
    fn spend_disk(&mut self, length: u64) -> Result<(), ReadLayerError> {
        let blocks = length.checked_next_multiple_of(BLOCK_BYTES);
        let left = blocks.and_then(|bytes| self.disk_bytes.checked_sub(bytes));
        self.disk_bytes = left.ok_or(ReadLayerError::NoRoom)?;
        Ok(())
    }

    fn spend(&mut self, entry: &LayerEntry) -> Result<(), ReadLayerError> {
        let attributes = entry.metadata.attributes.iter();
        let attributes: usize = attributes
            .map(|(name, value)| name.len() + value.len())
            .sum();
        let link = match &entry.kind {
            EntryKind::Symlink(target) => target.len(),
            EntryKind::HardLink(target) => target.bytes(),
            EntryKind::Directory
            | EntryKind::File(_)
            | EntryKind::CharacterDevice(_)
            | EntryKind::BlockDevice(_)
            | EntryKind::Pipe
            | EntryKind::Whiteout
            | EntryKind::Opaque => 0,
        };
        let names = entry.path.names().len() * NAME_COST;
        let bytes = ENTRY_COST + names + entry.path.bytes() + attributes + link;
        let entries = self.entries.checked_sub(1);
        self.entries = entries.ok_or(ReadLayerError::TooManyEntries)?;
        let left = self.metadata_bytes.checked_sub(bytes);
        self.metadata_bytes = left.ok_or(ReadLayerError::TooMuchMetadata)?;
        Ok(())
    }
}

/// Reads a layer from its packed bytes. Contents go to `data`; what they belong to is returned in
/// the order of the archive. The packed bytes were checked by whoever fetched them; `unpacked` is
/// what the image says of the others.
///
/// # Errors
/// [`ReadLayerError`]. Then `data` holds some of the contents.
pub fn read_layer(
    packed: &File,
    compression: LayerCompression,
    unpacked: &Digest,
    data: &mut DataWriter<'_>,
    budget: &mut Budget,
) -> Result<Vec<LayerEntry>, ReadLayerError> {
    let stream = compression.open(BufReader::with_capacity(128 << 10, packed));
    let bounded = stream.take(budget.unpacked_bytes.saturating_add(1));
    let mut archive = Archive::new(HashingReader::new(BufReader::with_capacity(
        64 << 10,
        bounded,
    )));
    let entries = read_entries(&mut archive, data, budget);
    let mut rest = archive.into_inner();
    if rest.passed() > budget.unpacked_bytes {
        return Err(ReadLayerError::TooLarge);
    }
    let entries = entries?;
    check_rest(&mut rest)?;
    let (found, bytes) = rest.finish();
    let left = budget.unpacked_bytes.checked_sub(bytes);
    budget.unpacked_bytes = left.ok_or(ReadLayerError::TooLarge)?;
    if found != *unpacked {
        let expected = unpacked.clone();
        return Err(ReadLayerError::Digest { expected, found });
    }
    Ok(entries)
}

/// Reads to the very end, where the digest is known, and finds what an archive hides behind its own.
fn check_rest(rest: &mut impl Read) -> Result<(), ReadLayerError> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = rest.read(&mut buffer).map_err(ReadLayerError::Read)?;
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(());
        }
        if bytes.iter().any(|byte| *byte != 0) {
            return Err(ReadLayerError::Trailing);
        }
    }
}

fn read_entries<R: Read>(
    archive: &mut Archive<R>,
    data: &mut DataWriter<'_>,
    budget: &mut Budget,
) -> Result<Vec<LayerEntry>, ReadLayerError> {
    let mut entries = Vec::new();
    let mut extensions = Extensions::default();
    for found in archive.entries().map_err(ReadLayerError::Read)?.raw(true) {
        let mut found = found.map_err(ReadLayerError::Read)?;
        if extensions.take_in(&mut found)? {
            continue;
        }
        let extensions = std::mem::take(&mut extensions);
        let header = found.header().clone();
        let plain = PlainEntry::read(&header, extensions)?;
        budget.spend_disk(plain.length)?;
        let content = match plain.length {
            0 => Content::default(),
            length => data
                .copy(&mut found, length)
                .map_err(ReadLayerError::Read)?,
        };
        let entry = plain.finish(&header, content)?;
        budget.spend(&entry)?;
        entries.push(entry);
    }
    if !extensions.is_empty() {
        return Err(problem(b"", EntryProblem::Dangling));
    }
    Ok(entries)
}

fn problem(path: &[u8], problem: EntryProblem) -> ReadLayerError {
    ReadLayerError::Entry {
        path: shown(path),
        problem,
    }
}

/// What came before an entry and belongs to it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Extensions {
    long_path: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
    pax: Option<Pax>,
}

impl Extensions {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the entry is one of these, which is then kept.
    fn take_in<R: Read>(&mut self, found: &mut tar::Entry<'_, R>) -> Result<bool, ReadLayerError> {
        let place = match TarKind::of(found.header()) {
            Some(TarKind::LongPath) => &mut self.long_path,
            Some(TarKind::LongLink) => &mut self.long_link,
            Some(TarKind::Extended) => {
                let bytes = extension_bytes(found)?;
                let pax = Pax::parse(&bytes).map_err(|source| ReadLayerError::Pax {
                    path: shown(&found.header().path_bytes()),
                    source,
                })?;
                return match self.pax.replace(pax) {
                    None => Ok(true),
                    Some(_) => Err(problem(b"", EntryProblem::Contradiction)),
                };
            }
            Some(TarKind::Global) => {
                let bytes = extension_bytes(found)?;
                return match pax::is_comment(&bytes) {
                    Ok(true) => Ok(true),
                    Ok(false) | Err(_) => Err(problem(b"", EntryProblem::GlobalHeader)),
                };
            }
            Some(_) | None => return Ok(false),
        };
        let mut bytes = extension_bytes(found)?;
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        match place.replace(bytes) {
            None => Ok(true),
            Some(_) => Err(problem(b"", EntryProblem::Contradiction)),
        }
    }
}

fn extension_bytes<R: Read>(found: &mut tar::Entry<'_, R>) -> Result<Vec<u8>, ReadLayerError> {
    let size = found.header().entry_size().map_err(ReadLayerError::Read)?;
    if size > IMAGE_EXTENSION_BYTES_MAX {
        return Err(problem(b"", EntryProblem::LongExtension));
    }
    let mut bytes = Vec::new();
    found
        .read_to_end(&mut bytes)
        .map_err(ReadLayerError::Read)?;
    if bytes.len() as u64 != size {
        return Err(ReadLayerError::Read(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(bytes)
}

/// One of several words for the same thing, when they do not contradict each other.
fn one_of(
    plain: Vec<u8>,
    long: Option<Vec<u8>>,
    pax: Option<Vec<u8>>,
) -> Result<Vec<u8>, ReadLayerError> {
    match (long, pax) {
        (Some(long), Some(pax)) if long != pax => Err(problem(&plain, EntryProblem::Contradiction)),
        (Some(name), _) | (None, Some(name)) => Ok(name),
        (None, None) => Ok(plain),
    }
}

/// An entry before its content was read.
#[derive(Debug)]
struct PlainEntry {
    name: Vec<u8>,
    path: EntryPath,
    link: Vec<u8>,
    kind: TarKind,
    /// Bytes of content that are wanted.
    length: u64,
    metadata: Metadata,
}

impl PlainEntry {
    fn read(header: &Header, extensions: Extensions) -> Result<Self, ReadLayerError> {
        let Extensions {
            long_path,
            long_link,
            pax,
        } = extensions;
        let mut pax = pax.unwrap_or_default();
        let name = one_of(header.path_bytes().into_owned(), long_path, pax.path.take())?;
        let plain_link = header.link_name_bytes().unwrap_or_default().into_owned();
        let link = one_of(plain_link, long_link, pax.link.take())?;
        let path = EntryPath::parse(&name).map_err(ReadLayerError::Path)?;
        let kind = kind_of(header, &name)?;
        let size = header.entry_size().map_err(ReadLayerError::Read)?;
        match pax.size {
            // The plain field has no room for it, so that others write a zero there.
            Some(said) if size == 0 && said >= PLAIN_SIZE_END => {
                return Err(problem(&name, EntryProblem::LargeFile));
            }
            Some(said) if said != size => {
                return Err(problem(&name, EntryProblem::Contradiction));
            }
            Some(_) | None => {}
        }
        let is_mark = is_mark(&path);
        if is_mark && kind != TarKind::File {
            return Err(problem(&name, EntryProblem::Whiteout));
        }
        if size != 0 && kind != TarKind::File {
            return Err(problem(&name, EntryProblem::UnexpectedContent));
        }
        let metadata = metadata(header, pax).ok_or_else(|| problem(&name, EntryProblem::Number))?;
        Ok(Self {
            path,
            link,
            kind,
            length: if is_mark { 0 } else { size },
            metadata,
            name,
        })
    }

    fn finish(self, header: &Header, content: Content) -> Result<LayerEntry, ReadLayerError> {
        let wrong = |what| problem(&self.name, what);
        let device = || device(header).ok_or_else(|| wrong(EntryProblem::Number));
        let Some((_, last)) = self.path.split() else {
            if self.kind != TarKind::Directory {
                return Err(wrong(EntryProblem::Root));
            }
            return Ok(LayerEntry {
                path: self.path,
                kind: EntryKind::Directory,
                metadata: self.metadata,
            });
        };
        let (path, kind) = match self.kind {
            TarKind::File if last == OPAQUE => (self.path.parent(), EntryKind::Opaque),
            TarKind::File if last.starts_with(RESERVED) || last == WHITEOUT => {
                return Err(wrong(EntryProblem::Whiteout));
            }
            TarKind::File => match last.strip_prefix(WHITEOUT) {
                Some(b"." | b"..") => return Err(wrong(EntryProblem::Whiteout)),
                Some(hidden) => (self.path.renamed(hidden), EntryKind::Whiteout),
                None => (self.path.clone(), EntryKind::File(content)),
            },
            TarKind::Directory => (self.path.clone(), EntryKind::Directory),
            TarKind::HardLink => {
                let target = EntryPath::parse(&self.link).map_err(ReadLayerError::Path)?;
                (self.path.clone(), EntryKind::HardLink(target))
            }
            TarKind::Symlink if !is_target(&self.link) => return Err(wrong(EntryProblem::Link)),
            TarKind::Symlink => (self.path.clone(), EntryKind::Symlink(self.link.clone())),
            TarKind::CharacterDevice => (self.path.clone(), EntryKind::CharacterDevice(device()?)),
            TarKind::BlockDevice => (self.path.clone(), EntryKind::BlockDevice(device()?)),
            TarKind::Pipe => (self.path.clone(), EntryKind::Pipe),
            TarKind::LongPath
            | TarKind::LongLink
            | TarKind::Extended
            | TarKind::Global
            | TarKind::Sparse => return Err(wrong(EntryProblem::Type)),
        };
        Ok(LayerEntry {
            path,
            kind,
            metadata: self.metadata,
        })
    }
}

/// Whether a link can say this, as the kernel has it.
fn is_target(link: &[u8]) -> bool {
    !link.is_empty() && link.len() < IMAGE_PATH_BYTES_MAX && !link.contains(&0)
}

fn is_mark(path: &EntryPath) -> bool {
    let last = path.split().map(|(_, last)| last);
    last.is_some_and(|last| last.starts_with(WHITEOUT))
}

/// The type of an entry that stands for itself.
fn kind_of(header: &Header, name: &[u8]) -> Result<TarKind, ReadLayerError> {
    match TarKind::of(header) {
        // Before there was a type for directories, a slash at the end said so.
        Some(TarKind::File) if name.ends_with(b"/") => Ok(TarKind::Directory),
        Some(TarKind::Sparse) => Err(problem(name, EntryProblem::Sparse)),
        Some(kind) => Ok(kind),
        None => Err(problem(name, EntryProblem::Type)),
    }
}

fn metadata(header: &Header, pax: Pax) -> Option<Metadata> {
    let owner = |said: Option<u64>, plain: io::Result<u64>| {
        let number = match said {
            Some(number) => number,
            None => plain.ok()?,
        };
        // The highest number means that nobody is meant.
        u32::try_from(number).ok().filter(|id| *id != u32::MAX)
    };
    let modified = match pax.modified {
        Some(moment) => moment,
        None => (i64::try_from(header.mtime().ok()?).ok()?, 0),
    };
    Some(Metadata {
        mode: u16::try_from(header.mode().ok()? & PERMISSIONS).ok()?,
        uid: owner(pax.uid, header.uid())?,
        gid: owner(pax.gid, header.gid())?,
        modified,
        attributes: pax.attributes,
    })
}

fn device(header: &Header) -> Option<Device> {
    const MAJOR_MAX: u32 = 0xfff;
    const MINOR_MAX: u32 = 0xf_ffff;
    let major = header.device_major().ok()??;
    let minor = header.device_minor().ok()??;
    (major <= MAJOR_MAX && minor <= MINOR_MAX).then_some(Device { major, minor })
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
