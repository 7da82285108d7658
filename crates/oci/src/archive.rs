//! Archives on disk: what `docker save` writes, and a tar of an OCI layout.
//!
//! The tar is read once for where its members are; nothing is unpacked. Headers are read raw, so
//! that a member with a long name costs no more memory than we allow.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use dayfly_types::limits::{
    IMAGE_ARCHIVE_MEMBERS_MAX, IMAGE_ARCHIVE_NAME_BYTES_MAX, IMAGE_INDEX_ENTRIES_MAX,
    IMAGE_LAYERS_MAX,
};
use rustix::fs::{Mode, OFlags};
use serde::Deserialize;
use tar::{Archive, EntryType, PaxExtensions};

use crate::config::{self, ImageConfig};
use crate::digest::Digest;
use crate::disk::{
    ImageFiles, OpenBlob, ReadImageError, blob_name, digest_of, read_document, read_verified,
};
use crate::document::{
    Image, InvalidDocument, LayerBlob, LayerCompression, check_sizes, list, pair,
};
use crate::layout;

const MANIFEST: &str = "manifest.json";

#[derive(Debug, Clone, Copy)]
enum Member {
    Regular {
        offset: u64,
        size: u64,
    },
    /// A link, for the most part. Old archives have them for layers that are there twice.
    Other,
}

/// A tar whose members are opened by name.
#[derive(Debug)]
pub(crate) struct ImageArchive {
    file: Arc<File>,
    members: HashMap<String, Member>,
}

/// A part of a file that others read too.
struct Part {
    file: Arc<File>,
    offset: u64,
    left: u64,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let room = buffer.get_mut(..most).unwrap_or_default();
        let count = self.file.read_at(room, self.offset)?;
        self.offset += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}

impl ImageFiles for ImageArchive {
    fn open(&self, name: &str) -> Result<OpenBlob, ReadImageError> {
        let owned = || name.to_owned();
        match self.members.get(name) {
            Some(Member::Regular { offset, size }) => Ok(OpenBlob {
                content: Box::new(Part {
                    file: Arc::clone(&self.file),
                    offset: *offset,
                    left: *size,
                }),
                size: *size,
            }),
            Some(Member::Other) => Err(ReadImageError::NotRegular { name: owned() }),
            None => Err(ReadImageError::Missing { name: owned() }),
        }
    }
}

impl ImageArchive {
    pub(crate) fn open(path: &Path) -> Result<Self, ReadImageError> {
        let broken = |source| ReadImageError::Open { source };
        // Opening a pipe for reading would wait for whoever writes.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        let file = File::from(opened.map_err(|error| broken(error.into()))?);
        let metadata = file.metadata().map_err(broken)?;
        if !metadata.is_file() {
            return Err(ReadImageError::NotAnArchive);
        }
        let members = read_members(&file, metadata.len())?;
        let file = Arc::new(file);
        Ok(Self { file, members })
    }
}

fn read_members(file: &File, length: u64) -> Result<HashMap<String, Member>, ReadImageError> {
    let not_an_archive = |_: io::Error| ReadImageError::NotAnArchive;
    let mut members = HashMap::new();
    let mut archive = Archive::new(file);
    let entries = archive.entries_with_seek().map_err(not_an_archive)?;
    let mut next_name = None;
    let mut count = 0;
    for entry in entries.raw(true) {
        let mut entry = entry.map_err(not_an_archive)?;
        count += 1;
        if count > IMAGE_ARCHIVE_MEMBERS_MAX {
            return Err(ReadImageError::TooMany);
        }
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() || kind.is_pax_local_extensions() {
            next_name = long_name(&mut entry, kind)?.or(next_name);
            continue;
        }
        if kind.is_pax_global_extensions() || kind.is_gnu_longlink() {
            continue;
        }
        let bytes = next_name.take();
        let bytes = bytes.unwrap_or_else(|| entry.header().path_bytes().into_owned());
        let Ok(name) = String::from_utf8(bytes) else {
            return Err(ReadImageError::NotAnArchive);
        };
        if kind.is_dir() {
            continue;
        }
        let mut member = Member::Other;
        if kind.is_file() || kind.is_contiguous() {
            let (offset, size) = (entry.raw_file_position(), entry.size());
            if offset.checked_add(size).is_none_or(|end| end > length) {
                return Err(ReadImageError::Short { name });
            }
            member = Member::Regular { offset, size };
        }
        let name = name.strip_prefix("./").unwrap_or(&name).to_owned();
        if members.insert(name.clone(), member).is_some() {
            return Err(ReadImageError::Twice { name });
        }
    }
    Ok(members)
}

/// The name that the member after this one has.
fn long_name(
    entry: &mut tar::Entry<'_, &File>,
    kind: EntryType,
) -> Result<Option<Vec<u8>>, ReadImageError> {
    if entry.size() > IMAGE_ARCHIVE_NAME_BYTES_MAX {
        return Err(ReadImageError::TooMany);
    }
    let mut bytes = Vec::new();
    let not_an_archive = |_| ReadImageError::NotAnArchive;
    entry.read_to_end(&mut bytes).map_err(not_an_archive)?;
    if kind.is_gnu_longname() {
        bytes.truncate(
            bytes
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(bytes.len()),
        );
        return Ok(Some(bytes));
    }
    let mut name = None;
    for extension in PaxExtensions::new(&bytes) {
        let extension = extension.map_err(not_an_archive)?;
        match extension.key_bytes() {
            b"path" => name = Some(extension.value_bytes().to_vec()),
            // Of a member that is longer than we take; the header then says something else.
            b"size" => return Err(ReadImageError::NotAnArchive),
            _ => {}
        }
    }
    Ok(name)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SavedImage {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// An image of `docker save` with the names of its members.
struct SavedParts {
    digest: Digest,
    config: ImageConfig,
    layers: Vec<(String, Digest)>,
}

/// Finds the image that has this name in an archive; without a name, the only one.
pub(crate) fn find(archive: &ImageArchive, name: Option<&str>) -> Result<Image, ReadImageError> {
    if !archive.members.contains_key(MANIFEST) && archive.members.contains_key(layout::MARK) {
        return layout::find(archive, name);
    }
    let parts = saved_parts(archive, name)?;
    let mut layers = Vec::with_capacity(parts.layers.len());
    for (member, diff_id) in parts.layers {
        let (compression, size) = look_at(archive, &member)?;
        // Of plain layers the digest was said, and is checked when the layer is read.
        let digest = match compression {
            LayerCompression::None => diff_id.clone(),
            LayerCompression::Gzip | LayerCompression::Zstd => digest_of(archive, &member)?,
        };
        layers.push(LayerBlob {
            digest,
            size,
            diff_id,
            compression,
        });
    }
    Ok(Image {
        manifest: parts.digest,
        config: parts.config,
        layers,
    })
}

/// Opens the bytes of a layer that [`find`] has given.
pub(crate) fn open_layer(
    archive: &ImageArchive,
    name: Option<&str>,
    layer: &LayerBlob,
) -> Result<OpenBlob, ReadImageError> {
    let blob = blob_name(&layer.digest);
    if archive.members.contains_key(&blob) || !archive.members.contains_key(MANIFEST) {
        return archive.open(&blob);
    }
    let parts = saved_parts(archive, name)?;
    let mut layers = parts.layers.into_iter();
    match layers.find(|(_, diff_id)| *diff_id == layer.diff_id) {
        Some((member, _)) => archive.open(&member),
        None => Err(ReadImageError::Missing { name: blob }),
    }
}

fn saved_parts(archive: &ImageArchive, name: Option<&str>) -> Result<SavedParts, ReadImageError> {
    let saved = choose(archive, name)?;
    let digest = config_digest(&saved.config)?;
    let document = read_verified(archive, &saved.config, &digest)?;
    let (config, diff_ids) = config::read(&document)?;
    pair(&diff_ids, saved.layers.len())?;
    let mut sizes = Vec::with_capacity(saved.layers.len());
    for member in &saved.layers {
        sizes.push(archive.open(member)?.size);
    }
    check_sizes(sizes.into_iter())?;
    Ok(SavedParts {
        digest,
        config,
        layers: saved.layers.into_iter().zip(diff_ids).collect(),
    })
}

fn choose(archive: &ImageArchive, name: Option<&str>) -> Result<SavedImage, ReadImageError> {
    let document = match read_document(archive, MANIFEST) {
        Err(ReadImageError::Missing { .. }) => return Err(ReadImageError::NotAnArchive),
        other => other?,
    };
    let saved: Vec<SavedImage> =
        serde_json::from_slice(&document).map_err(|source| InvalidDocument::Unreadable {
            what: "manifest.json",
            source,
        })?;
    if saved.len() > IMAGE_INDEX_ENTRIES_MAX {
        let found = saved.len();
        return Err(InvalidDocument::TooManyEntries { found }.into());
    }
    let names = |one: &SavedImage| one.repo_tags.clone().unwrap_or_default();
    let there = list(saved.iter().flat_map(names));
    let is_meant =
        |one: &SavedImage| name.is_none_or(|name| names(one).iter().any(|tag| tag == name));
    let mut meant = saved.into_iter().filter(is_meant);
    let (first, second) = (meant.next(), meant.next());
    let found = match (first, second, name) {
        (Some(only), None, _) => only,
        (None, _, Some(wanted)) => {
            let wanted = wanted.to_owned();
            return Err(ReadImageError::NoSuchName { wanted, there });
        }
        _ => return Err(ReadImageError::Ambiguous { there }),
    };
    if found.layers.len() > IMAGE_LAYERS_MAX {
        let found = found.layers.len();
        return Err(InvalidDocument::TooManyLayers { found }.into());
    }
    Ok(found)
}

/// Docker has named the config in three ways, always by its digest.
fn config_digest(name: &str) -> Result<Digest, ReadImageError> {
    let hex = name.strip_prefix("blobs/sha256/");
    let hex = hex.or_else(|| name.strip_suffix(".json"));
    let digest = match hex {
        Some(hex) => Digest::parse(&format!("sha256:{hex}")),
        None => Digest::parse(name),
    };
    digest.map_err(|_| ReadImageError::ConfigName {
        name: name.chars().take(100).collect(),
    })
}

/// The archive does not say how a layer is compressed, so its first bytes do. If they lie, the
/// digest of its content does not fit.
fn look_at(
    archive: &ImageArchive,
    member: &str,
) -> Result<(LayerCompression, u64), ReadImageError> {
    let OpenBlob { content, size } = archive.open(member)?;
    let mut head = Vec::new();
    let read = content.take(4).read_to_end(&mut head);
    read.map_err(|source| ReadImageError::Read {
        name: member.to_owned(),
        source,
    })?;
    let compression = match head.as_slice() {
        [0x1f, 0x8b, ..] => LayerCompression::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd] => LayerCompression::Zstd,
        _ => LayerCompression::None,
    };
    Ok((compression, size))
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
