//! Reading a backup: every byte is looked at, and held against the list.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use dayfly_host::files::copy_sparse;
use dayfly_types::limits::BACKUP_MANIFEST_BYTES_MAX;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};
use rustix::io::Errno;

use crate::content::digest;
use crate::manifest::{BackupEntry, BackupManifest, ManifestRefusal};
use crate::path::{BackupPath, InvalidBackupPath};
use crate::stream_reader;
use crate::target::{BackupTarget, finish};
use crate::{BytesWatch, DATA, MANIFEST};

/// Where a backup is.
pub enum BackupSource {
    Directory(PathBuf),
    Stream(Box<dyn Read + Send>),
}

impl std::fmt::Debug for BackupSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory(path) => formatter.debug_tuple("Directory").field(path).finish(),
            Self::Stream(_) => formatter.write_str("Stream"),
        }
    }
}

/// Why a backup cannot be used. What was unpacked of it must not be.
#[derive(Debug, thiserror::Error)]
pub enum ReadBackupError {
    #[error("cannot open the backup {path}")]
    Open { path: PathBuf, source: io::Error },
    #[error("there is no {MANIFEST}: it is no backup, or one that was never finished")]
    NoManifest,
    #[error("cannot read the archive")]
    Archive(#[source] io::Error),
    #[error("cannot read the list of the backup")]
    ReadManifest(#[source] io::Error),
    #[error("the list of the backup is refused")]
    Manifest(#[source] ManifestRefusal),
    #[error("cannot read {path}")]
    Read { path: BackupPath, source: io::Error },
    #[error("cannot unpack {path}")]
    Unpack { path: BackupPath, source: io::Error },
    #[error("{path} is not what was backed up: it is damaged or was changed")]
    Differs { path: BackupPath },
    #[error("{path} is missing")]
    Missing { path: BackupPath },
    #[error("{path} is not in the list of the backup")]
    Unlisted { path: String },
    #[error("the archive is refused")]
    Path(#[source] InvalidBackupPath),
    #[error("the archive has {path}, which is neither a file, a directory nor a link")]
    Kind { path: String },
    #[error("the archive has {path} twice")]
    Twice { path: BackupPath },
    #[error("the work was stopped")]
    Stopped,
}

/// Reads a whole backup, and unpacks it where that is asked for. The modes of what is unpacked are
/// those of the list; all of it is durable.
///
/// # Errors
/// [`ReadBackupError`].
pub fn read(
    source: BackupSource,
    into: Option<&BackupTarget>,
    watch: &mut BytesWatch<'_>,
) -> Result<BackupManifest, ReadBackupError> {
    match source {
        BackupSource::Directory(path) => read_directory(&path, into, watch),
        BackupSource::Stream(stream) => stream_reader::read(stream, into, watch),
    }
}

fn read_directory(
    path: &Path,
    into: Option<&BackupTarget>,
    watch: &mut BytesWatch<'_>,
) -> Result<BackupManifest, ReadBackupError> {
    let opened = |source| ReadBackupError::Open {
        path: path.to_owned(),
        source,
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, path, flags, Mode::empty()).map_err(|error| opened(error.into()))?;
    let manifest = BackupManifest::decode(&manifest_text(&root)?);
    let manifest = manifest.map_err(ReadBackupError::Manifest)?;
    let listed: BTreeSet<&str> = manifest
        .entries
        .iter()
        .map(|it| it.path().as_str())
        .collect();
    find_unlisted(&path.join(DATA), "", &listed)?;
    for entry in &manifest.entries {
        read_entry(&root, entry, into, watch)?;
    }
    if let Some(into) = into {
        complete(into, &manifest)?;
    }
    Ok(manifest)
}

fn manifest_text(root: &OwnedFd) -> Result<Vec<u8>, ReadBackupError> {
    let file = match open(root, MANIFEST, OFlags::RDONLY) {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ReadBackupError::NoManifest);
        }
        Err(error) => return Err(ReadBackupError::ReadManifest(error)),
    };
    limited(&file).map_err(ReadBackupError::ReadManifest)
}

/// All of a list, unless it is longer than any.
pub(crate) fn limited(from: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(BACKUP_MANIFEST_BYTES_MAX + 1)
        .read_to_end(&mut text)?;
    if text.len() as u64 > BACKUP_MANIFEST_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

fn open(top: &OwnedFd, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(openat2(top, path, flags, Mode::empty(), resolve)?)
}

/// What is there without being listed was put there by somebody else.
fn find_unlisted(
    directory: &Path,
    above: &str,
    listed: &BTreeSet<&str>,
) -> Result<(), ReadBackupError> {
    let failed = |source| ReadBackupError::Open {
        path: directory.to_owned(),
        source,
    };
    for item in fs::read_dir(directory).map_err(failed)? {
        let item = item.map_err(failed)?;
        let path = format!("{above}{}", item.file_name().to_string_lossy());
        if !listed.contains(path.as_str()) {
            return Err(ReadBackupError::Unlisted { path });
        }
        if item.file_type().map_err(failed)?.is_dir() {
            find_unlisted(&item.path(), &format!("{path}/"), listed)?;
        }
    }
    Ok(())
}

fn read_entry(
    root: &OwnedFd,
    entry: &BackupEntry,
    into: Option<&BackupTarget>,
    watch: &mut BytesWatch<'_>,
) -> Result<(), ReadBackupError> {
    let path = entry.path();
    let stored = format!("{DATA}/{path}");
    let refused = |error: io::Error| cannot_read(path, error);
    match entry {
        BackupEntry::Directory { .. } => {
            open(root, &stored, OFlags::RDONLY | OFlags::DIRECTORY).map_err(refused)?;
            let made = into.map_or(Ok(()), |into| into.make_directory(path));
            made.map_err(|source| unpack_error(path, source))
        }
        BackupEntry::Link { target, .. } => {
            let (parent, name) = stored.rsplit_once('/').unwrap_or((".", &stored));
            let parent = open(root, parent, OFlags::RDONLY | OFlags::DIRECTORY).map_err(refused)?;
            let found =
                readlinkat(&parent, name, Vec::new()).map_err(|error| refused(error.into()))?;
            matches(path, found.as_bytes() == target.as_str().as_bytes())
        }
        BackupEntry::File {
            mode,
            bytes,
            blake3,
            ..
        } => {
            let source = File::from(open(root, &stored, OFlags::RDONLY).map_err(refused)?);
            let metadata = source.metadata().map_err(refused)?;
            matches(path, metadata.is_file() && metadata.len() == *bytes)?;
            let copy = into.map(|into| into.make_file(path)).transpose();
            let copy = copy.map_err(|source| unpack_error(path, source))?;
            if let Some(copy) = &copy {
                copy_sparse(&source, copy).map_err(|source| unpack_error(path, source))?;
            }
            // What was unpacked is what counts.
            let (_, hash) = digest(copy.as_ref().unwrap_or(&source), watch).map_err(refused)?;
            matches(path, hash.to_hex().as_str() == blake3)?;
            let finished = copy.map_or(Ok(()), |copy| finish(&copy, *mode));
            finished.map_err(|source| unpack_error(path, source))
        }
    }
}

/// The last steps of unpacking: links, and modes of directories from the innermost up.
pub(crate) fn complete(
    into: &BackupTarget,
    manifest: &BackupManifest,
) -> Result<(), ReadBackupError> {
    for entry in &manifest.entries {
        if let BackupEntry::Link { path, target } = entry {
            let made = into.make_link(path, target);
            made.map_err(|source| unpack_error(path, source))?;
        }
    }
    for entry in manifest.entries.iter().rev() {
        if let BackupEntry::Directory { path, mode } = entry {
            let finished = into.finish_directory(path, *mode);
            finished.map_err(|source| unpack_error(path, source))?;
        }
    }
    into.sync().map_err(|source| ReadBackupError::Open {
        path: into.path().to_owned(),
        source,
    })
}

pub(crate) fn matches(path: &BackupPath, is_same: bool) -> Result<(), ReadBackupError> {
    if is_same {
        Ok(())
    } else {
        Err(ReadBackupError::Differs { path: path.clone() })
    }
}

pub(crate) fn unpack_error(path: &BackupPath, source: io::Error) -> ReadBackupError {
    if source.kind() == io::ErrorKind::Interrupted {
        return ReadBackupError::Stopped;
    }
    ReadBackupError::Unpack {
        path: path.clone(),
        source,
    }
}

fn cannot_read(path: &BackupPath, source: io::Error) -> ReadBackupError {
    let path = path.clone();
    // A link, or something else, in the place of what was backed up.
    let is_other = [Errno::LOOP, Errno::NOTDIR]
        .iter()
        .any(|error| source.raw_os_error() == Some(error.raw_os_error()));
    if is_other {
        ReadBackupError::Differs { path }
    } else if source.kind() == io::ErrorKind::Interrupted {
        ReadBackupError::Stopped
    } else if source.kind() == io::ErrorKind::NotFound {
        ReadBackupError::Missing { path }
    } else {
        ReadBackupError::Read { path, source }
    }
}
