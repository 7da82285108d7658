//! Making every file of a directory read-only and durable, and knowing its content by digest.

use std::io;
use std::path::Path;

use crate::digest::digest_files;
use crate::files;
use crate::manifest::SealedFile;

/// More than any template or capture has; a runaway loop would have more.
const FILES_MAX: usize = 64;

/// Why files could not be sealed. Some may be.
#[derive(Debug, thiserror::Error)]
pub enum SealFilesError {
    #[error("cannot list the files")]
    List(#[source] io::Error),
    #[error("more than {FILES_MAX} files")]
    TooManyFiles,
    #[error("cannot seal {name}")]
    Seal {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot digest {name}")]
    Digest {
        name: String,
        #[source]
        source: io::Error,
    },
}

/// Seals every file of a directory, then digests them all.
pub(crate) fn seal_and_digest(directory: &Path) -> Result<Vec<SealedFile>, SealFilesError> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(SealFilesError::List)? {
        let name = entry.map_err(SealFilesError::List)?.file_name();
        names.push(name.to_string_lossy().into_owned());
        if names.len() > FILES_MAX {
            return Err(SealFilesError::TooManyFiles);
        }
    }
    names.sort();
    seal_and_digest_named(directory, names)
}

/// Seals some files of a directory, then digests them. The entries are in the order of the names.
pub(crate) fn seal_and_digest_named(
    directory: &Path,
    names: Vec<String>,
) -> Result<Vec<SealedFile>, SealFilesError> {
    let mut open = Vec::new();
    for name in &names {
        let path = directory.join(name);
        let sealed = files::seal(&path).and_then(|()| files::open_regular(&path));
        open.push(sealed.map_err(|source| SealFilesError::Seal {
            name: name.clone(),
            source,
        })?);
    }
    let digests = digest_files(&open);
    let mut entries = Vec::new();
    for ((name, file), digest) in names.into_iter().zip(&open).zip(digests) {
        let entry = digest.and_then(|digest| Ok((digest, file.metadata()?.len())));
        match entry {
            Ok((digest, bytes)) => entries.push(SealedFile {
                name,
                bytes,
                digest,
            }),
            Err(source) => return Err(SealFilesError::Digest { name, source }),
        }
    }
    Ok(entries)
}
