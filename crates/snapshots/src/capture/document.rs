//! A manifest as a text that knows its own digest.
//!
//! The text is one JSON object whose last key is `checksum`, the BLAKE3 of the same object without
//! that key. So a manifest is replaced together with its checksum by one rename, and a flipped bit
//! anywhere in it is found, also one that leaves a valid manifest. This file must not know stores.

use std::io::{self, Read};
use std::path::Path;

use dayfly_host::files::{checked_object, with_checksum};
use dayfly_types::SnapshotId;
use dayfly_types::limits::MEMORY_EXTENTS_MAX;
use dayfly_vmm::{PAGE_BYTES, PageRange};

use super::file_names;
use super::manifest::{CAPTURE_FORMAT, CaptureManifest};
use crate::files;
use crate::manifest::is_plain_name;

/// A manifest with a full map of extents; more is damage.
const MANIFEST_BYTES_MAX: u64 = 4 << 20;

/// Why a text is not a manifest that this program can use.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("cannot read the manifest")]
    Read(#[source] io::Error),
    #[error("the manifest is too long")]
    TooLong,
    #[error("the manifest does not fit its checksum")]
    Checksum,
    #[error("the manifest is not valid")]
    Syntax(#[source] serde_json::Error),
    #[error("the manifest is another capture's")]
    OtherCapture,
    #[error("the manifest has format {found}; this program reads up to {CAPTURE_FORMAT}")]
    Newer { found: u32 },
    #[error("the manifest has format {found}, in which its memory base cannot be told")]
    FormatTooOld { found: u32 },
    #[error("the manifest names {name:?}, which is not a plain file name or is there twice")]
    BadFileName { name: String },
    #[error("the map of memory does not fit the memory layer")]
    BadExtents,
}

/// The text that goes to disk.
///
/// # Errors
/// [`DocumentError::Syntax`] when a value has no JSON form.
pub fn encode(manifest: &CaptureManifest) -> Result<Vec<u8>, DocumentError> {
    let text = serde_json::to_vec(manifest).map_err(DocumentError::Syntax)?;
    Ok(with_checksum(text))
}

/// Reads a text that must be the manifest of this capture.
///
/// # Errors
/// [`DocumentError`].
pub fn decode(text: &[u8], id: &SnapshotId) -> Result<CaptureManifest, DocumentError> {
    let body = checked_object(text).ok_or(DocumentError::Checksum)?;
    let manifest: CaptureManifest = serde_json::from_slice(&body).map_err(DocumentError::Syntax)?;
    if manifest.format > CAPTURE_FORMAT {
        let found = manifest.format;
        return Err(DocumentError::Newer { found });
    }
    if manifest.id != *id {
        return Err(DocumentError::OtherCapture);
    }
    check(&manifest)?;
    Ok(manifest)
}

/// Reads the text of the manifest in a capture's directory.
pub(super) fn read(directory: &Path) -> Result<Vec<u8>, DocumentError> {
    let file =
        files::open_regular(&directory.join(file_names::MANIFEST)).map_err(DocumentError::Read)?;
    let mut text = Vec::new();
    file.take(MANIFEST_BYTES_MAX + 1)
        .read_to_end(&mut text)
        .map_err(DocumentError::Read)?;
    if text.len() as u64 > MANIFEST_BYTES_MAX {
        return Err(DocumentError::TooLong);
    }
    Ok(text)
}

/// What every manifest promises beyond its form. Checked when it is made and when it is read.
pub(super) fn check(manifest: &CaptureManifest) -> Result<(), DocumentError> {
    if manifest.format < manifest.memory_base.format() {
        let found = manifest.format;
        return Err(DocumentError::FormatTooOld { found });
    }
    let entries = &manifest.files;
    for (index, entry) in entries.iter().enumerate() {
        let name = &entry.name;
        let is_again = entries[..index].iter().any(|other| other.name == *name);
        if is_again || !is_plain_name(name) || name == file_names::MANIFEST {
            return Err(DocumentError::BadFileName { name: name.clone() });
        }
    }
    for name in [&manifest.memory_file, &manifest.disk_file] {
        if !is_plain_name(name) {
            return Err(DocumentError::BadFileName { name: name.clone() });
        }
    }
    let memory = manifest.entry(&manifest.memory_file);
    if !extents_fit(&manifest.extents, memory.map_or(0, |entry| entry.bytes)) {
        return Err(DocumentError::BadExtents);
    }
    Ok(())
}

/// Whether ranges are in order, apart, few enough, and inside a file of so many bytes. An engine
/// that maps a page behind the end of a file dies at the first touch.
fn extents_fit(extents: &[PageRange], file_bytes: u64) -> bool {
    let pages = file_bytes / PAGE_BYTES;
    let mut behind_last = 0;
    let fits = extents.iter().all(|extent| {
        let end = extent.first.saturating_add(extent.count);
        let fits = extent.first >= behind_last && extent.count > 0 && end <= pages;
        behind_last = end;
        fits
    });
    fits && extents.len() <= MEMORY_EXTENTS_MAX
}
