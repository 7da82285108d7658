//! Proves that a template's bytes are those that were published.
//!
//! A restore maps memory and loads device state as they are, so a flipped bit on the disk would
//! become a guest that is subtly wrong. Each file is digested once for the life of the process;
//! after that its identity (inode, size and time of the last write) stands for its content,
//! because nothing but root can write a published file and every write moves that time. The time
//! of the last change does not count: a restore moves it by linking the file.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use crate::digest::{ContentDigest, digest_files};
use crate::files;
use crate::manifest::SealedFile;
use crate::template::{BakedTemplate, TemplateDisk};

/// Why a template must not be restored. Every variant names the file.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("cannot read the file {name}")]
    Read {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("the file {name} has {found} bytes, not {wanted}")]
    Size {
        name: String,
        found: u64,
        wanted: u64,
    },
    #[error("the content of the file {name} is not what was published")]
    Content { name: String },
    #[error("the file {name} changed while it was read")]
    Changed { name: String },
}

/// What stands for a file's content after it has been digested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FileIdentity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl FileIdentity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Verifies templates and remembers which files it has digested.
#[derive(Debug, Default)]
pub struct Verifier {
    known: Mutex<HashMap<FileIdentity, ContentDigest>>,
}

/// One file under examination.
struct Examined<'a> {
    entry: &'a SealedFile,
    identity: FileIdentity,
}

impl Verifier {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks every file of a template against its manifest. Blocks for as long as it takes to
    /// read what has not been read before.
    ///
    /// # Errors
    /// [`VerifyError`] for the first file, in the manifest's order, that is wrong.
    pub fn verify(&self, template: &BakedTemplate) -> Result<(), VerifyError> {
        self.verify_files(template.directory(), &template.manifest().files)
    }

    /// Checks the files of a version that a machine needs which has nothing of its memory.
    ///
    /// # Errors
    /// As [`Verifier::verify`].
    pub fn verify_disk(&self, template: &TemplateDisk) -> Result<(), VerifyError> {
        self.verify_files(template.directory(), &template.files())
    }

    /// Checks files of one directory. Blocks as [`Verifier::verify`] does.
    ///
    /// # Errors
    /// [`VerifyError`] for the first file, in the order of the entries, that is wrong.
    pub fn verify_files(
        &self,
        directory: &Path,
        entries: &[SealedFile],
    ) -> Result<(), VerifyError> {
        let mut files = Vec::new();
        let mut examined = Vec::new();
        for entry in entries {
            let (file, identity) = open(directory, entry)?;
            match self.known().get(&identity) {
                Some(digest) if *digest == entry.digest => {}
                Some(_) => {
                    return Err(VerifyError::Content {
                        name: entry.name.clone(),
                    });
                }
                None => {
                    files.push(file);
                    examined.push(Examined { entry, identity });
                }
            }
        }
        let digests = digest_files(&files);
        for ((examined, file), digest) in examined.iter().zip(&files).zip(digests) {
            self.judge(examined, file, digest)?;
        }
        Ok(())
    }

    /// Takes it as known that files have the content that was just written and digested.
    pub fn trust(&self, directory: &Path, entries: &[SealedFile]) {
        for entry in entries {
            if let Ok((_, identity)) = open(directory, entry) {
                self.known().insert(identity, entry.digest.clone());
            }
        }
    }

    /// Forgets files that are about to be removed, so that what is known does not grow for ever.
    pub fn forget(&self, directory: &Path, entries: &[SealedFile]) {
        for entry in entries {
            if let Ok((_, identity)) = open(directory, entry) {
                self.known().remove(&identity);
            }
        }
    }

    fn judge(
        &self,
        examined: &Examined<'_>,
        file: &File,
        digest: io::Result<ContentDigest>,
    ) -> Result<(), VerifyError> {
        let name = || examined.entry.name.clone();
        let read = |source| VerifyError::Read {
            name: name(),
            source,
        };
        let digest = digest.map_err(read)?;
        if digest != examined.entry.digest {
            return Err(VerifyError::Content { name: name() });
        }
        let after = FileIdentity::of(&file.metadata().map_err(read)?);
        if after != examined.identity {
            return Err(VerifyError::Changed { name: name() });
        }
        self.known().insert(after, digest);
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, HashMap<FileIdentity, ContentDigest>> {
        self.known
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
    }
}

fn open(directory: &Path, entry: &SealedFile) -> Result<(File, FileIdentity), VerifyError> {
    let read = |source| VerifyError::Read {
        name: entry.name.clone(),
        source,
    };
    let file = files::open_regular(&directory.join(&entry.name)).map_err(read)?;
    let identity = FileIdentity::of(&file.metadata().map_err(read)?);
    if identity.bytes != entry.bytes {
        let (found, wanted) = (identity.bytes, entry.bytes);
        return Err(VerifyError::Size {
            name: entry.name.clone(),
            found,
            wanted,
        });
    }
    Ok((file, identity))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, PermissionsExt};

    use super::*;
    use crate::file_names;
    use crate::store::tests::published;

    fn make_writable(path: &Path) -> File {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
        File::options().write(true).open(path).unwrap()
    }

    #[test]
    fn untouched_template_passes_twice() {
        let (_root, template) = published();
        let verifier = Verifier::new();
        verifier.verify(&template).unwrap();
        assert_eq!(verifier.known().len(), template.manifest().files.len());
        verifier.verify(&template).unwrap();
    }

    #[test]
    fn flipped_byte_is_caught_even_after_a_first_pass() {
        let (_root, template) = published();
        let verifier = Verifier::new();
        verifier.verify(&template).unwrap();
        let path = template.path(file_names::DEVICE_STATE);
        make_writable(&path).write_all_at(b"X", 0).unwrap();
        let error = verifier.verify(&template).unwrap_err();
        assert!(
            matches!(&error, VerifyError::Content { name } if name == "device.state"),
            "{error}"
        );
    }

    #[test]
    fn cut_file_is_caught() {
        let (_root, template) = published();
        make_writable(&template.path(file_names::MEMORY_IMAGE))
            .set_len(1)
            .unwrap();
        let error = Verifier::new().verify(&template).unwrap_err();
        assert!(
            matches!(&error, VerifyError::Size { name, .. } if name == "memory.img"),
            "{error}"
        );
    }

    #[test]
    fn swapped_files_are_caught_also_when_both_were_known() {
        let (_root, template) = published();
        let verifier = Verifier::new();
        verifier.verify(&template).unwrap();
        let (one, two) = (
            template.path(file_names::KERNEL),
            template.path(file_names::INITIAL_RAM_DISK),
        );
        let aside = template.path("aside");
        std::fs::rename(&one, &aside).unwrap();
        std::fs::rename(&two, &one).unwrap();
        std::fs::rename(&aside, &two).unwrap();
        let error = verifier.verify(&template).unwrap_err();
        assert!(matches!(error, VerifyError::Content { .. }), "{error}");
    }

    #[test]
    fn link_in_place_of_a_file_is_caught() {
        let (_root, template) = published();
        let path = template.path(file_names::KERNEL);
        std::fs::rename(&path, template.path("elsewhere")).unwrap();
        std::os::unix::fs::symlink(template.path("elsewhere"), &path).unwrap();
        let error = Verifier::new().verify(&template).unwrap_err();
        assert!(matches!(error, VerifyError::Read { .. }), "{error}");
    }
}
