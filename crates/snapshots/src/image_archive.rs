//! The built disk image of a template as one stream of bytes, to carry it to another host.
//!
//! ```text
//! dayfly-image 1\n
//! {"template": …, "entries": [{"key": …, "digest_kind": …, "label": …, "files": […]}, …]}\n
//! the bytes of every file, in that order, and nothing after them
//! ```
//! An archive is taken in whole or not at all: every byte is written aside and held against its
//! digest before anything gets its name. The digests find damage; they cannot tell who made the
//! archive. Whoever did decides what runs in sandboxes of the template, so an import may be told the
//! digest of the whole, which an export says.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use dayfly_host::files::disk_space;
use dayfly_types::TemplateName;
use serde::{Deserialize, Serialize};

use crate::base_disk::are_names_of_disk;
use crate::catalog::ResolvedRecipe;
use crate::files;
use crate::image::{MADE_IMAGE_FILE, disk_key, kernel_key};
use crate::image_cache::{CacheError, Contents, ImageCache, ImageKey, contents_of};
use crate::kernel::KERNEL_FILE;
use crate::sparse::{BLOCK_BYTES, is_zero};
use crate::staging::{StagingDirectory, StagingError};

const FIRST_LINE: &[u8] = b"dayfly-image 1\n";
/// A kernel has a dozen modules, each with a line of its own.
const HEAD_BYTES_MAX: u64 = 1 << 20;
const FILES_MAX: usize = 256;
/// What stays free of the disk whatever an archive says of itself.
const DISK_RESERVE_BYTES: u64 = 1 << 30;

/// What was written or taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchivedImage {
    pub template: TemplateName,
    /// The entries of the cache.
    pub entries: Vec<String>,
    pub bytes: u64,
    /// BLAKE3 of the whole archive, in hexadecimal.
    pub digest: String,
}

/// Why there is no archive.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(
        "no image of template {template} is built here; `dayfly template bake {template}` builds it"
    )]
    NotBuilt { template: TemplateName },
    #[error("cannot read the image {key}")]
    Read {
        key: ImageKey,
        #[source]
        source: io::Error,
    },
    #[error("cannot write the archive")]
    Write(#[source] io::Error),
    #[error("cannot encode the head of the archive")]
    Encode(#[source] serde_json::Error),
}

/// Why an archive was not taken in. Nothing of it is there.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("cannot read the archive")]
    Read(#[source] io::Error),
    #[error("this is no image of a template, or one of a newer release")]
    Unrecognised,
    #[error("the head of the archive is damaged")]
    Head(#[source] serde_json::Error),
    #[error("the head of the archive is longer than any can be")]
    HeadTooLong,
    #[error("this program has no recipe of template {template} that can be used")]
    NoRecipe { template: TemplateName },
    #[error(
        "the archive is of another recipe of {template}, or of another release, and would never be \
         used here; it holds {found}"
    )]
    Other {
        template: TemplateName,
        found: String,
    },
    #[error("the archive does not hold what an image has: {what}")]
    Contents { what: &'static str },
    #[error("the entry {key} of the archive cannot be used")]
    Entry {
        key: String,
        #[source]
        source: io::Error,
    },
    #[error("the archive needs {needed} bytes of disk, and {available} can be used")]
    NoRoom { needed: u64, available: u64 },
    #[error("the archive ends too early, or cannot be written aside")]
    File {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("{name} of the archive is damaged: it does not fit its digest")]
    Damaged { name: String },
    #[error("something follows behind the end of the archive")]
    Longer,
    #[error("the archive has the digest {found}, not {wanted}")]
    Digest { found: String, wanted: String },
    #[error("cannot stage the image")]
    Stage(#[source] StagingError),
    #[error("cannot keep the image")]
    Keep(#[source] CacheError),
}

/// What stands before the bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    template: TemplateName,
    entries: Vec<HeadEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct HeadEntry {
    key: String,
    #[serde(flatten)]
    contents: Contents,
}

/// Writes the image of a template, after checking every byte of it.
///
/// # Errors
/// [`ExportError`]. A part of the archive may have been written.
pub fn export(
    cache: &ImageCache,
    recipe: &ResolvedRecipe,
    to: impl Write,
) -> Result<ArchivedImage, ExportError> {
    let template = recipe.recipe.name.clone();
    let mut entries = Vec::new();
    let mut paths = Vec::new();
    for key in keys(recipe) {
        let entry = cache.open(&key).ok_or_else(|| ExportError::NotBuilt {
            template: template.clone(),
        })?;
        let contents = cache.contents(&key);
        let contents = contents.map_err(|source| ExportError::Read {
            key: key.clone(),
            source,
        })?;
        let sizes = contents.files.iter().map(|file| file.bytes);
        paths.extend(
            entry
                .files
                .into_iter()
                .zip(sizes)
                .map(|pair| (key.clone(), pair)),
        );
        entries.push(HeadEntry {
            key: key.to_string(),
            contents,
        });
    }
    let head = Head { template, entries };
    let mut to = Hashed::new(to);
    let mut text = serde_json::to_vec(&head).map_err(ExportError::Encode)?;
    text.push(b'\n');
    to.write_all(FIRST_LINE).map_err(ExportError::Write)?;
    to.write_all(&text).map_err(ExportError::Write)?;
    for (key, (path, bytes)) in paths {
        let file = files::open_regular(&path);
        let file = file.map_err(|source| ExportError::Read { key, source })?;
        copy_exactly(file, &mut to, bytes).map_err(ExportError::Write)?;
    }
    to.flush().map_err(ExportError::Write)?;
    Ok(to.report(head))
}

fn copy_exactly(from: File, to: &mut impl Write, bytes: u64) -> io::Result<()> {
    let copied = io::copy(&mut from.take(bytes), to)?;
    if copied != bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// Takes an image in. `find` knows the recipes; `wanted` is the digest of the whole, when the caller
/// knows it. What is there already stays.
///
/// # Errors
/// [`ImportError`]. Nothing of the archive has got a name then.
pub fn import<'a>(
    cache: &ImageCache,
    find: impl FnOnce(&TemplateName) -> Option<&'a ResolvedRecipe>,
    from: impl Read,
    wanted: Option<&str>,
) -> Result<ArchivedImage, ImportError> {
    let mut from = BufReader::new(Hashed::new(from));
    let head = read_head(&mut from)?;
    let recipe = find(&head.template).ok_or_else(|| ImportError::NoRecipe {
        template: head.template.clone(),
    })?;
    let keys = keys(recipe);
    check_head(&head, &keys)?;
    check_room(cache, &head)?;
    let mut staged = Vec::new();
    for (key, entry) in keys.iter().zip(&head.entries) {
        staged.push((key, stage_entry(cache, entry, &mut from)?));
    }
    let end = from.read(&mut [0]).map_err(ImportError::Read)?;
    if end != 0 {
        return Err(ImportError::Longer);
    }
    let report = from.into_inner().report(head);
    if let Some(wanted) = wanted.filter(|wanted| !wanted.eq_ignore_ascii_case(&report.digest)) {
        return Err(ImportError::Digest {
            found: report.digest,
            wanted: wanted.to_owned(),
        });
    }
    for (key, (staging, contents)) in staged {
        // Opening looks at every byte, and takes one away that is damaged.
        if cache.open(key).is_none() {
            let placed = cache.place(key, staging, contents);
            placed.map_err(ImportError::Keep)?;
        }
    }
    Ok(report)
}

/// The entries that an image is made of.
fn keys(recipe: &ResolvedRecipe) -> [ImageKey; 2] {
    [kernel_key(), disk_key(&recipe.image)]
}

fn read_head(from: &mut impl BufRead) -> Result<Head, ImportError> {
    let mut first = [0; FIRST_LINE.len()];
    match from.read_exact(&mut first) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(ImportError::Unrecognised);
        }
        outcome => outcome.map_err(ImportError::Read)?,
    }
    if first != FIRST_LINE {
        return Err(ImportError::Unrecognised);
    }
    let mut text = Vec::new();
    let mut line = from.by_ref().take(HEAD_BYTES_MAX);
    line.read_until(b'\n', &mut text)
        .map_err(ImportError::Read)?;
    if text.last() != Some(&b'\n') && text.len() as u64 == HEAD_BYTES_MAX {
        return Err(ImportError::HeadTooLong);
    }
    serde_json::from_slice(&text).map_err(ImportError::Head)
}

/// Whether the archive holds what this program looks for, under names that stay where they belong.
fn check_head(head: &Head, keys: &[ImageKey; 2]) -> Result<(), ImportError> {
    let found: Vec<&str> = head
        .entries
        .iter()
        .map(|entry| entry.key.as_str())
        .collect();
    if found != keys.each_ref().map(ImageKey::as_str) {
        return Err(ImportError::Other {
            template: head.template.clone(),
            found: found.join(", "),
        });
    }
    for entry in &head.entries {
        let checked = entry.contents.check();
        checked.map_err(|source| ImportError::Entry {
            key: entry.key.clone(),
            source,
        })?;
        if entry.contents.files.len() > FILES_MAX {
            let what = "more files than any image has";
            return Err(ImportError::Contents { what });
        }
    }
    let names = |index: usize| {
        let entry = head.entries.get(index);
        let files = entry.into_iter().flat_map(|entry| &entry.contents.files);
        files.map(|file| file.name.as_str()).collect::<Vec<_>>()
    };
    if names(0).first() != Some(&KERNEL_FILE) {
        let what = "no kernel comes first";
        return Err(ImportError::Contents { what });
    }
    // What the image of a container says may follow the disk.
    let mut disk = names(1);
    disk.pop_if(|last| *last == MADE_IMAGE_FILE);
    if !are_names_of_disk(&disk) {
        let what = "not one disk";
        return Err(ImportError::Contents { what });
    }
    Ok(())
}

/// An archive that says it is larger than the disk is refused before its first byte is written.
fn check_room(cache: &ImageCache, head: &Head) -> Result<(), ImportError> {
    let files = head.entries.iter().flat_map(|entry| &entry.contents.files);
    let needed = files.fold(0_u64, |sum, file| sum.saturating_add(file.bytes));
    // The directory may be made by the first image.
    let mut place = cache.directory();
    while !place.exists() {
        match place.parent() {
            Some(parent) => place = parent,
            None => break,
        }
    }
    let space = disk_space(place).map_err(ImportError::Read)?;
    let available = space.available_bytes.saturating_sub(DISK_RESERVE_BYTES);
    if needed > available {
        return Err(ImportError::NoRoom { needed, available });
    }
    Ok(())
}

/// Writes the files of one entry aside, durably, and holds each against its digest.
fn stage_entry(
    cache: &ImageCache,
    entry: &HeadEntry,
    from: &mut impl Read,
) -> Result<(StagingDirectory, Contents), ImportError> {
    let staging = cache.stage().map_err(ImportError::Stage)?;
    let said = &entry.contents;
    for file in &said.files {
        let path = staging.path().join(&file.name);
        write_file(&path, from, file.bytes).map_err(|source| ImportError::File {
            name: file.name.clone(),
            source,
        })?;
    }
    let names = said.files.iter().map(|file| file.name.clone()).collect();
    let found = contents_of(staging.path(), &said.label, names).map_err(ImportError::Keep)?;
    let mut pairs = said.files.iter().zip(&found.files);
    if let Some((said, _)) = pairs.find(|(said, found)| said != found) {
        let name = said.name.clone();
        return Err(ImportError::Damaged { name });
    }
    Ok((staging, found))
}

/// Writes a new file of this many bytes. Blocks of zeros become holes.
fn write_file(path: &Path, from: &mut impl Read, bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.set_len(bytes)?;
    let mut buffer = vec![0; BLOCK_BYTES];
    let mut offset = 0;
    while offset < bytes {
        let length =
            usize::try_from(bytes - offset).map_or(BLOCK_BYTES, |left| left.min(BLOCK_BYTES));
        let block = buffer.get_mut(..length).unwrap_or_default();
        from.read_exact(block)?;
        if !is_zero(block) {
            file.write_all_at(block, offset)?;
        }
        offset += block.len() as u64;
    }
    Ok(())
}

/// A stream that knows its digest and length.
#[derive(Debug)]
struct Hashed<S> {
    stream: S,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl<S> Hashed<S> {
    fn new(stream: S) -> Self {
        Self {
            stream,
            hasher: blake3::Hasher::new(),
            bytes: 0,
        }
    }

    fn note(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    fn report(self, head: Head) -> ArchivedImage {
        ArchivedImage {
            template: head.template,
            entries: head.entries.into_iter().map(|entry| entry.key).collect(),
            bytes: self.bytes,
            digest: self.hasher.finalize().to_hex().to_string(),
        }
    }
}

impl<S: Write> Write for Hashed<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.stream.write(bytes)?;
        self.note(bytes.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl<S: Read> Read for Hashed<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        let read = buffer.get(..count).unwrap_or_default();
        self.hasher.update(read);
        self.bytes += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
#[path = "image_archive_tests.rs"]
mod tests;
