//! The templates on a node's disk.
//!
//! ```text
//! templates/
//!   .staging/RANDOM/          being made; swept after a crash
//!   base/00000001-1a2b3c4d/   published; never changes
//!     manifest.json memory.img device.state base.img disk-0.raw disk-1.img empty.img vmlinuz initrd
//! ```
//! A version appears by one rename, after all of its bytes are durable. A directory without a
//! manifest is therefore not a version, and is passed over.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use dayfly_host::files::sync_directory;
use dayfly_types::TemplateName;

use crate::files;
use crate::manifest::{
    Fingerprint, HostFingerprint, ManifestDraft, ManifestError, Mismatch, SealedFile,
    TemplateManifest,
};
use crate::sealing::{SealFilesError, seal_and_digest};
use crate::staging::{self, Staging, StagingError};
use crate::template::{BakedTemplate, TemplateDisk, VersionId, disk_files, file_names};

/// Why a template was not published. Nothing of it is visible.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("cannot seal the staged files")]
    Seal(#[source] SealFilesError),
    #[error("the manifest is not complete")]
    Manifest(#[source] ManifestError),
    #[error("cannot write the manifest")]
    WriteManifest(#[source] io::Error),
    #[error("cannot give the version its name in {path}")]
    Rename {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Why the store could not be searched for a template.
#[derive(Debug, thiserror::Error)]
#[error("cannot list the versions of template {name}")]
pub struct OpenError {
    pub name: TemplateName,
    #[source]
    pub source: io::Error,
}

/// Why old versions were not removed. What was removed stays removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    #[error("cannot list the versions")]
    List(#[source] OpenError),
    #[error("cannot remove version {version}")]
    Remove {
        version: VersionId,
        #[source]
        source: io::Error,
    },
}

/// All templates of one node.
#[derive(Debug, Clone)]
pub struct TemplateStore {
    directory: PathBuf,
}

impl TemplateStore {
    /// `directory` is made when the first template is.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Makes a place for a new version, on the file system where it will stay.
    ///
    /// # Errors
    /// [`StagingError::Make`].
    pub fn begin(&self, name: &TemplateName) -> Result<Staging, StagingError> {
        Staging::make(&self.directory, name)
    }

    /// Publishes everything in `staging` as the newest version.
    ///
    /// # Errors
    /// [`PublishError`]. The staging directory is gone in either case.
    pub fn publish(
        &self,
        staging: Staging,
        draft: ManifestDraft,
    ) -> Result<BakedTemplate, PublishError> {
        let manifest =
            draft.finish(seal_and_digest(staging.directory()).map_err(PublishError::Seal)?);
        let text = manifest.to_json().map_err(PublishError::Manifest)?;
        // Read back what readers will read, so that no version is published that none can open.
        let manifest = TemplateManifest::parse(&text).map_err(PublishError::Manifest)?;
        files::write_new(
            &staging.path(file_names::MANIFEST),
            &text,
            files::SEALED_MODE,
        )
        .and_then(|()| sync_directory(staging.directory()))
        .map_err(PublishError::WriteManifest)?;
        let (version, directory) = self.name_version(staging, &text)?;
        Ok(BakedTemplate::new(version, directory, manifest))
    }

    /// The newest version that this node can restore, if there is one. Versions that do not fit or
    /// are damaged are passed over with a line in the log.
    ///
    /// # Errors
    /// [`OpenError`] when the directory cannot be read.
    pub fn open_current(
        &self,
        name: &TemplateName,
        wanted: &Fingerprint,
    ) -> Result<Option<BakedTemplate>, OpenError> {
        self.open_newest(name, |manifest| manifest.fits(wanted))
    }

    /// The newest version that this node can restore, of whatever recipe.
    ///
    /// # Errors
    /// [`OpenError`] when the directory cannot be read.
    pub fn open_usable(
        &self,
        name: &TemplateName,
        wanted: &HostFingerprint,
    ) -> Result<Option<BakedTemplate>, OpenError> {
        self.open_newest(name, |manifest| manifest.fits_host(wanted))
    }

    fn open_newest(
        &self,
        name: &TemplateName,
        fits: impl Fn(&TemplateManifest) -> Result<(), Mismatch>,
    ) -> Result<Option<BakedTemplate>, OpenError> {
        for version in self.versions(name)?.into_iter().rev() {
            match self.open_version(name, &version) {
                // A project's own version is not for everybody, and a variant for nobody who does
                // not ask for its size.
                Ok(template)
                    if template.manifest().project.is_some()
                        || template.manifest().variant.is_some() => {}
                Ok(template) => match fits(template.manifest()) {
                    Ok(()) => return Ok(Some(template)),
                    Err(mismatch) => {
                        tracing::info!(template = %name, %version, %mismatch, "version does not fit");
                    }
                },
                Err(error) => {
                    tracing::warn!(template = %name, %version, error = %Chain(&error), "version is not usable");
                }
            }
        }
        Ok(None)
    }

    /// Opens one version, whatever it fits. The files' sizes are looked at, their content is not.
    ///
    /// # Errors
    /// [`OpenVersionError`], which says what is missing.
    pub fn open_version(
        &self,
        name: &TemplateName,
        version: &VersionId,
    ) -> Result<BakedTemplate, OpenVersionError> {
        let (directory, manifest) = self.read_version(name, version)?;
        require_whole(&directory, manifest.files.iter())?;
        Ok(BakedTemplate::new(version.clone(), directory, manifest))
    }

    /// As [`TemplateStore::open_version`], for its disk alone: its memory is not looked at.
    ///
    /// # Errors
    /// [`OpenVersionError`], which says what is missing.
    pub fn open_disk(
        &self,
        name: &TemplateName,
        version: &VersionId,
    ) -> Result<TemplateDisk, OpenVersionError> {
        let (directory, manifest) = self.read_version(name, version)?;
        require_whole(&directory, disk_files(&manifest))?;
        Ok(TemplateDisk::new(version.clone(), directory, manifest))
    }

    fn read_version(
        &self,
        name: &TemplateName,
        version: &VersionId,
    ) -> Result<(PathBuf, TemplateManifest), OpenVersionError> {
        let directory = self.directory.join(name.as_str()).join(version.as_str());
        let text = std::fs::read(directory.join(file_names::MANIFEST))
            .map_err(OpenVersionError::ReadManifest)?;
        let manifest = TemplateManifest::parse(&text).map_err(OpenVersionError::Manifest)?;
        Ok((directory, manifest))
    }

    /// The names of all templates that have a version, in order.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn names(&self) -> io::Result<Vec<TemplateName>> {
        let entries = match std::fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            names.extend(
                name.to_str()
                    .and_then(|name| TemplateName::parse(name).ok()),
            );
        }
        names.sort();
        Ok(names)
    }

    /// All versions of a template, oldest first, whether they can be opened or not.
    ///
    /// # Errors
    /// [`OpenError`] when the directory cannot be read.
    pub fn versions(&self, name: &TemplateName) -> Result<Vec<VersionId>, OpenError> {
        let wrap = |source| OpenError {
            name: name.clone(),
            source,
        };
        let entries = match std::fs::read_dir(self.directory.join(name.as_str())) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(wrap(error)),
        };
        let mut versions = Vec::new();
        for entry in entries {
            let entry = entry.map_err(wrap)?;
            versions.extend(entry.file_name().to_str().and_then(VersionId::parse));
        }
        versions.sort();
        Ok(versions)
    }

    /// Removes every version of a template but those in `keep`. Name the current one there, and
    /// those that any vm maps.
    ///
    /// # Errors
    /// [`RemoveError`] at the first version that cannot be removed.
    pub fn remove_old_versions(
        &self,
        name: &TemplateName,
        keep: &HashSet<VersionId>,
    ) -> Result<Vec<VersionId>, RemoveError> {
        let mut removed = Vec::new();
        for version in self.versions(name).map_err(RemoveError::List)? {
            if keep.contains(&version) {
                continue;
            }
            let directory = self.directory.join(name.as_str()).join(version.as_str());
            staging::discard(&self.directory, &directory).map_err(|source| {
                RemoveError::Remove {
                    version: version.clone(),
                    source,
                }
            })?;
            removed.push(version);
        }
        Ok(removed)
    }

    /// Removes what a crash left half-made. Returns how many directories that were.
    ///
    /// # Errors
    /// [`StagingError::Sweep`].
    pub fn sweep(&self) -> Result<usize, StagingError> {
        staging::sweep(&self.directory)
    }

    /// Takes the next number and renames the staging directory to it.
    fn name_version(
        &self,
        staging: Staging,
        manifest: &[u8],
    ) -> Result<(VersionId, PathBuf), PublishError> {
        let parent = self.directory.join(staging.name().as_str());
        let wrap = |source| PublishError::Rename {
            path: parent.clone(),
            source,
        };
        std::fs::create_dir_all(&parent)
            .and_then(|()| sync_directory(&self.directory))
            .map_err(wrap)?;
        let versions = self
            .versions(staging.name())
            .map_err(|error| wrap(error.source))?;
        let version = VersionId::new(versions.last().map_or(0, VersionId::sequence) + 1, manifest);
        let target = parent.join(version.as_str());
        // Of two publishers at once, both may take one number: then the digest tells them apart.
        staging
            .rename(&target)
            .and_then(|()| sync_directory(&parent))
            .map_err(wrap)?;
        Ok((version, target))
    }
}

fn require_whole<'a>(
    directory: &Path,
    files: impl Iterator<Item = &'a SealedFile>,
) -> Result<(), OpenVersionError> {
    for entry in files {
        let metadata = std::fs::symlink_metadata(directory.join(&entry.name));
        let whole = metadata.is_ok_and(|data| data.is_file() && data.len() == entry.bytes);
        if !whole {
            return Err(OpenVersionError::File {
                name: entry.name.clone(),
            });
        }
    }
    Ok(())
}

/// Why one version cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenVersionError {
    #[error("cannot read the manifest")]
    ReadManifest(#[source] io::Error),
    #[error("cannot use the manifest")]
    Manifest(#[source] ManifestError),
    #[error("the file {name} is missing or has another size")]
    File { name: String },
}

/// Prints an error with its causes, once, where it stops.
struct Chain<'a>(&'a (dyn std::error::Error + 'static));

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(error) = next {
            write!(f, ": {error}")?;
            next = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
pub(crate) mod tests;
