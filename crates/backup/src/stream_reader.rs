//! Reading a backup from an archive that somebody hostile may have made.
//!
//! The list comes last, so what is unpacked is held against it afterwards. Links are made when all
//! else is there and is right: nothing is ever written through one.

use std::collections::BTreeMap;
use std::io::{self, Read};

use dayfly_types::limits::{BACKUP_ENTRIES_MAX, BACKUP_FILE_BYTES_MAX};

use crate::content::take;
use crate::manifest::{BackupEntry, BackupManifest, ManifestRefusal};
use crate::path::BackupPath;
use crate::reader::{ReadBackupError, complete, limited, matches, unpack_error};
use crate::target::{BackupTarget, finish};
use crate::{BytesWatch, DATA, MANIFEST};

/// What an archive had, before anybody knows whether it should.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Directory,
    File { bytes: u64, blake3: String },
    Link { target: String },
}

pub(crate) fn read(
    stream: Box<dyn Read + Send>,
    into: Option<&BackupTarget>,
    watch: &mut BytesWatch<'_>,
) -> Result<BackupManifest, ReadBackupError> {
    let mut archive = tar::Archive::new(stream);
    let mut found = BTreeMap::new();
    let mut manifest = None;
    for member in archive.entries().map_err(ReadBackupError::Archive)? {
        let mut member = member.map_err(ReadBackupError::Archive)?;
        let name = member_name(&member)?;
        if manifest.is_some() {
            return Err(ReadBackupError::Unlisted { path: name });
        }
        if name == MANIFEST && member.header().entry_type().is_file() {
            let text = limited(&mut member).map_err(ReadBackupError::ReadManifest)?;
            let decoded = BackupManifest::decode(&text);
            manifest = Some(decoded.map_err(ReadBackupError::Manifest)?);
            continue;
        }
        let (path, one) = take_member(&mut member, &name, into, watch)?;
        if found.len() >= BACKUP_ENTRIES_MAX {
            return Err(ReadBackupError::Manifest(ManifestRefusal::TooMany));
        }
        if found.insert(path.clone(), one).is_some() {
            return Err(ReadBackupError::Twice { path });
        }
    }
    let manifest = manifest.ok_or(ReadBackupError::NoManifest)?;
    compare(&manifest, found)?;
    if let Some(into) = into {
        finish_files(into, &manifest)?;
        complete(into, &manifest)?;
    }
    Ok(manifest)
}

fn member_name(member: &tar::Entry<'_, Box<dyn Read + Send>>) -> Result<String, ReadBackupError> {
    let bytes = member.path_bytes();
    let name = String::from_utf8_lossy(&bytes);
    Ok(name.strip_suffix('/').unwrap_or(&name).to_owned())
}

fn take_member(
    member: &mut tar::Entry<'_, Box<dyn Read + Send>>,
    name: &str,
    into: Option<&BackupTarget>,
    watch: &mut BytesWatch<'_>,
) -> Result<(BackupPath, Found), ReadBackupError> {
    // The whole of it first: `data/../x` must not become `../x`.
    let whole = BackupPath::parse(name).map_err(ReadBackupError::Path)?;
    let unlisted = || ReadBackupError::Unlisted {
        path: name.to_owned(),
    };
    let below = whole.as_str().strip_prefix(DATA).ok_or_else(unlisted)?;
    let below = below.strip_prefix('/').ok_or_else(unlisted)?;
    let path = BackupPath::parse(below).map_err(ReadBackupError::Path)?;
    let kind = member.header().entry_type();
    let found = if kind.is_dir() {
        let made = into.map_or(Ok(()), |into| into.make_directory(&path));
        made.map_err(|source| unpack_error(&path, source))?;
        Found::Directory
    } else if kind.is_file() || kind.is_gnu_sparse() {
        take_file(member, &path, into, watch)?
    } else if kind.is_symlink() {
        let target = member.link_name_bytes().unwrap_or_default();
        let target = String::from_utf8_lossy(&target).into_owned();
        Found::Link { target }
    } else {
        return Err(ReadBackupError::Kind {
            path: name.to_owned(),
        });
    };
    Ok((path, found))
}

fn take_file(
    member: &mut dyn Read,
    path: &BackupPath,
    into: Option<&BackupTarget>,
    watch: &mut BytesWatch<'_>,
) -> Result<Found, ReadBackupError> {
    let copy = into.map(|into| into.make_file(path)).transpose();
    let copy = copy.map_err(|source| unpack_error(path, source))?;
    let taken = take(member, copy.as_ref(), BACKUP_FILE_BYTES_MAX, watch);
    let (bytes, hash) = taken.map_err(|source| unpack_error(path, source))?;
    Ok(Found::File {
        bytes,
        blake3: hash.to_hex().to_string(),
    })
}

/// The archive has what the list has, and nothing else.
fn compare(
    manifest: &BackupManifest,
    mut found: BTreeMap<BackupPath, Found>,
) -> Result<(), ReadBackupError> {
    for entry in &manifest.entries {
        let path = entry.path();
        let Some(one) = found.remove(path) else {
            return Err(ReadBackupError::Missing { path: path.clone() });
        };
        let expected = match entry {
            BackupEntry::Directory { .. } => Found::Directory,
            BackupEntry::File { bytes, blake3, .. } => Found::File {
                bytes: *bytes,
                blake3: blake3.clone(),
            },
            BackupEntry::Link { target, .. } => Found::Link {
                target: target.to_string(),
            },
        };
        matches(path, one == expected)?;
    }
    match found.into_keys().next() {
        Some(path) => Err(ReadBackupError::Unlisted {
            path: path.to_string(),
        }),
        None => Ok(()),
    }
}

fn finish_files(into: &BackupTarget, manifest: &BackupManifest) -> Result<(), ReadBackupError> {
    for entry in &manifest.entries {
        if let BackupEntry::File { path, mode, .. } = entry {
            let finished = into.open_file(path).and_then(|file| finish(&file, *mode));
            finished.map_err(|source: io::Error| unpack_error(path, source))?;
        }
    }
    Ok(())
}
