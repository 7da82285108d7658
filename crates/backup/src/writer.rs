//! Writing a backup.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use dayfly_host::files::{copy_sparse, remove_tree, sync_directory, write_atomic};

use crate::content::digest;
use crate::manifest::{BACKUP_FORMAT, BackupEntry, BackupManifest, ManifestRefusal};
use crate::path::BackupPath;
use crate::target::{BackupTarget, finish};
use crate::{BytesWatch, DATA, MANIFEST};

/// Backups hold keys.
const DIRECTORY_MODE: u32 = 0o700;
const MANIFEST_MODE: u32 = 0o600;
/// The name of what goes into a stream next.
const SCRATCH: &str = "next";

/// Where a backup goes.
pub enum BackupDestination {
    /// A directory that does not exist or is empty.
    Directory(PathBuf),
    /// One archive. What may change while it is read is put into `scratch`, an existing directory,
    /// first.
    Stream {
        stream: Box<dyn Write + Send>,
        scratch: PathBuf,
    },
}

impl std::fmt::Debug for BackupDestination {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory(path) => formatter.debug_tuple("Directory").field(path).finish(),
            Self::Stream { .. } => formatter.write_str("Stream"),
        }
    }
}

/// Why there is no backup. What was written of it is removed, as far as it can be.
#[derive(Debug, thiserror::Error)]
pub enum WriteBackupError {
    #[error("cannot make the directory {path}")]
    Make { path: PathBuf, source: io::Error },
    #[error("{path} is not empty; name a directory that is, or none")]
    NotEmpty { path: PathBuf },
    #[error("cannot write {path} into the backup")]
    Entry { path: BackupPath, source: io::Error },
    #[error("the list of the backup cannot be made")]
    Manifest(#[source] ManifestRefusal),
    #[error("cannot write the list of the backup")]
    WriteManifest(#[source] io::Error),
}

impl WriteBackupError {
    /// Whether the work was ended by whoever watched it.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Entry { source, .. } if source.kind() == io::ErrorKind::Interrupted)
    }
}

enum Place {
    Directory {
        root: PathBuf,
        data: BackupTarget,
    },
    Stream {
        archive: tar::Builder<Box<dyn Write + Send>>,
        scratch: PathBuf,
    },
}

/// A backup that is being written. Dropped before it is finished, it never was.
pub struct BackupWriter {
    place: Place,
    entries: Vec<BackupEntry>,
    is_finished: bool,
    made_root: bool,
}

impl std::fmt::Debug for BackupWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("BackupWriter");
        shown
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl BackupWriter {
    /// Begins a backup.
    ///
    /// # Errors
    /// [`WriteBackupError::NotEmpty`] and [`WriteBackupError::Make`].
    pub fn begin(destination: BackupDestination) -> Result<Self, WriteBackupError> {
        let (place, made_root) = match destination {
            BackupDestination::Directory(path) => begin_directory(&path)?,
            BackupDestination::Stream { stream, scratch } => {
                let mut archive = tar::Builder::new(stream);
                archive.mode(tar::HeaderMode::Deterministic);
                (Place::Stream { archive, scratch }, false)
            }
        };
        Ok(Self {
            place,
            entries: Vec::new(),
            is_finished: false,
            made_root,
        })
    }

    /// Adds a directory. What it lies in comes first.
    ///
    /// # Errors
    /// [`WriteBackupError::Entry`].
    pub fn directory(&mut self, path: BackupPath, mode: u32) -> Result<(), WriteBackupError> {
        let made = match &mut self.place {
            Place::Directory { data, .. } => data.make_directory(&path),
            Place::Stream { archive, .. } => {
                let mut header = header(tar::EntryType::Directory, mode);
                archive.append_data(&mut header, in_archive(&path), io::empty())
            }
        };
        made.map_err(failed(&path))?;
        self.entries.push(BackupEntry::Directory { path, mode });
        Ok(())
    }

    /// Adds a symbolic link to something beside or below it.
    ///
    /// # Errors
    /// [`WriteBackupError::Entry`].
    pub fn link(&mut self, path: BackupPath, target: BackupPath) -> Result<(), WriteBackupError> {
        let made = match &mut self.place {
            Place::Directory { data, .. } => data.make_link(&path, &target),
            Place::Stream { archive, .. } => {
                let mut header = header(tar::EntryType::Symlink, 0o777);
                archive.append_link(&mut header, in_archive(&path), target.as_str())
            }
        };
        made.map_err(failed(&path))?;
        self.entries.push(BackupEntry::Link { path, target });
        Ok(())
    }

    /// Adds a file with these bytes.
    ///
    /// # Errors
    /// [`WriteBackupError::Entry`].
    pub fn bytes(
        &mut self,
        path: BackupPath,
        mode: u32,
        bytes: &[u8],
    ) -> Result<(), WriteBackupError> {
        let fill = &mut |mut file: &File| file.write_all(bytes);
        self.filled(path, mode, fill, &mut |_| true)
    }

    /// Adds a copy of a file that does not change meanwhile.
    ///
    /// # Errors
    /// [`WriteBackupError::Entry`].
    pub fn file(
        &mut self,
        path: BackupPath,
        mode: u32,
        source: &File,
        watch: &mut BytesWatch<'_>,
    ) -> Result<(), WriteBackupError> {
        if let Place::Stream { archive, .. } = &mut self.place {
            // Sealed, so it can be read twice, and need not be copied before.
            let entry = append(archive, path, mode, source, watch)?;
            self.entries.push(entry);
            return Ok(());
        }
        self.filled(
            path,
            mode,
            &mut |file| copy_sparse(source, file).map(drop),
            watch,
        )
    }

    /// Adds a file that `fill` writes. It may be long, and is empty at first.
    ///
    /// # Errors
    /// [`WriteBackupError::Entry`].
    pub fn filled(
        &mut self,
        path: BackupPath,
        mode: u32,
        fill: &mut dyn FnMut(&File) -> io::Result<()>,
        watch: &mut BytesWatch<'_>,
    ) -> Result<(), WriteBackupError> {
        let entry = match &mut self.place {
            Place::Directory { data, .. } => {
                let file = data.make_file(&path).map_err(failed(&path))?;
                let found = fill(&file).and_then(|()| digest(&file, watch));
                let (bytes, hash) = found.map_err(failed(&path))?;
                finish(&file, mode).map_err(failed(&path))?;
                file_entry(path, mode, bytes, hash)
            }
            Place::Stream { archive, scratch } => {
                let aside = scratch.join(SCRATCH);
                let file = scratch_file(&aside).map_err(failed(&path))?;
                // It has no name from here on, so nothing of it can stay behind.
                fs::remove_file(&aside).map_err(failed(&path))?;
                fill(&file).map_err(failed(&path))?;
                append(archive, path, mode, &file, watch)?
            }
        };
        self.entries.push(entry);
        Ok(())
    }

    /// Writes the list, last, when everything else is durable.
    ///
    /// # Errors
    /// [`WriteBackupError`].
    pub fn finish(
        mut self,
        created_at: SystemTime,
        program: &str,
        contents: serde_json::Value,
    ) -> Result<BackupManifest, WriteBackupError> {
        let manifest = BackupManifest {
            format: BACKUP_FORMAT,
            created_at: created_at.into(),
            program: program.to_owned(),
            contents,
            entries: std::mem::take(&mut self.entries),
        };
        let text = manifest.encode().map_err(WriteBackupError::Manifest)?;
        match &mut self.place {
            Place::Directory { root, data } => {
                finish_directories(data, &manifest)?;
                let written = sync_directory(root).and_then(|()| {
                    let path = root.join(MANIFEST);
                    write_atomic(&path, &text, MANIFEST_MODE).map_err(|error| error.source)
                });
                written.map_err(WriteBackupError::WriteManifest)?;
            }
            Place::Stream { archive, .. } => {
                let mut header = header(tar::EntryType::Regular, MANIFEST_MODE);
                header.set_size(text.len() as u64);
                let written = archive
                    .append_data(&mut header, MANIFEST, text.as_slice())
                    .and_then(|()| archive.finish())
                    .and_then(|()| archive.get_mut().flush());
                written.map_err(WriteBackupError::WriteManifest)?;
            }
        }
        self.is_finished = true;
        Ok(manifest)
    }
}

impl Drop for BackupWriter {
    fn drop(&mut self) {
        let Place::Directory { root, .. } = &self.place else {
            return;
        };
        if self.is_finished {
            return;
        }
        // The failure that led here is what the caller hears of.
        let _ = remove_tree(&root.join(DATA));
        if self.made_root {
            let _ = fs::remove_dir(root);
        }
    }
}

fn begin_directory(path: &Path) -> Result<(Place, bool), WriteBackupError> {
    let failed = |source| WriteBackupError::Make {
        path: path.to_owned(),
        source,
    };
    let made = DirBuilder::new().mode(DIRECTORY_MODE).create(path);
    let made_root = match made {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(failed(error)),
    };
    let root = path.canonicalize().map_err(failed)?;
    if fs::read_dir(&root).map_err(failed)?.next().is_some() {
        return Err(WriteBackupError::NotEmpty { path: root });
    }
    let data = BackupTarget::make(&root.join(DATA)).map_err(failed)?;
    Ok((Place::Directory { root, data }, made_root))
}

fn finish_directories(
    data: &BackupTarget,
    manifest: &BackupManifest,
) -> Result<(), WriteBackupError> {
    for entry in &manifest.entries {
        if let BackupEntry::Directory { path, .. } = entry {
            // Whatever their modes will be, a backup is its owner's.
            let finished = data.finish_directory(path, DIRECTORY_MODE);
            finished.map_err(failed(path))?;
        }
    }
    data.sync().map_err(WriteBackupError::WriteManifest)
}

fn append(
    archive: &mut tar::Builder<Box<dyn Write + Send>>,
    path: BackupPath,
    mode: u32,
    file: &File,
    watch: &mut BytesWatch<'_>,
) -> Result<BackupEntry, WriteBackupError> {
    let (bytes, hash) = digest(file, watch).map_err(failed(&path))?;
    let mut reader = file.try_clone().map_err(failed(&path))?;
    let appended = io::Seek::rewind(&mut reader)
        .and_then(|()| archive.append_file(in_archive(&path), &mut reader));
    appended.map_err(failed(&path))?;
    Ok(file_entry(path, mode, bytes, hash))
}

fn scratch_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    let options = options.create_new(true).read(true).write(true);
    options.mode(MANIFEST_MODE).open(path)
}

fn file_entry(path: BackupPath, mode: u32, bytes: u64, hash: blake3::Hash) -> BackupEntry {
    BackupEntry::File {
        path,
        mode,
        bytes,
        blake3: hash.to_hex().to_string(),
    }
}

fn header(kind: tar::EntryType, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(0);
    header
}

fn in_archive(path: &BackupPath) -> String {
    format!("{DATA}/{path}")
}

fn failed(path: &BackupPath) -> impl Fn(io::Error) -> WriteBackupError + use<> {
    let path = path.clone();
    move |source| WriteBackupError::Entry {
        path: path.clone(),
        source,
    }
}
