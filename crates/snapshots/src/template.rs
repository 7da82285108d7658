//! A published template, and the names of the files in it.

use std::fmt;
use std::path::{Path, PathBuf};

use dayfly_vmm::{DiskFiles, MemoryImage, RestoreSpec};

use crate::files;
use crate::manifest::{SealedFile, TemplateManifest, is_plain_name};

/// Names of the files in a template's directory.
pub mod file_names {
    pub const MANIFEST: &str = "manifest.json";
    /// Guest memory; every restore maps this very file, so they share its page cache.
    pub const MEMORY_IMAGE: &str = "memory.img";
    pub const DEVICE_STATE: &str = "device.state";
    /// The read-only root file system.
    pub const BASE_IMAGE: &str = "base.img";
    /// The empty raw disk that the bake began with.
    pub const LOWEST_LAYER: &str = "disk-0.raw";
    /// What was on the disk that the bake began with, if it was not empty.
    pub const TAKEN_LAYER: &str = "disk-taken.img";
    /// What the bake wrote over it.
    pub const BAKED_LAYER: &str = "disk-1.img";
    /// A layer with nothing in it, in the driver's format.
    pub const EMPTY_LAYER: &str = "empty.img";
    pub const KERNEL: &str = "vmlinuz";
    pub const INITIAL_RAM_DISK: &str = "initrd";

    /// Without these no restore is possible. Sealed layers are listed by the manifest itself.
    pub const REQUIRED: [&str; 6] = [
        MEMORY_IMAGE,
        DEVICE_STATE,
        BASE_IMAGE,
        EMPTY_LAYER,
        KERNEL,
        INITIAL_RAM_DISK,
    ];
}

/// One version of one template: a sequence number and the start of the manifest's digest.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VersionId(String);

impl VersionId {
    pub(crate) fn new(sequence: u64, manifest: &[u8]) -> Self {
        let hash = blake3::hash(manifest).to_hex();
        Self(format!("{sequence:08}-{}", &hash[..8]))
    }

    /// Reads a directory name; nothing else in a template's directory has this form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (sequence, hash) = text.split_once('-')?;
        let well_formed = is_plain_name(text)
            && sequence.len() >= 8
            && sequence.bytes().all(|byte| byte.is_ascii_digit())
            && hash.len() == 8
            && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        well_formed.then(|| Self(text.to_owned()))
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.0
            .split_once('-')
            .and_then(|(sequence, _)| sequence.parse().ok())
            .unwrap_or(0)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A published template. Its files never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BakedTemplate {
    version: VersionId,
    directory: PathBuf,
    manifest: TemplateManifest,
}

impl BakedTemplate {
    pub(crate) fn new(version: VersionId, directory: PathBuf, manifest: TemplateManifest) -> Self {
        Self {
            version,
            directory,
            manifest,
        }
    }

    #[must_use]
    pub fn version(&self) -> &VersionId {
        &self.version
    }

    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Bytes on disk of its files, most of which are full of holes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        files::bytes_on_disk(&self.directory)
    }

    #[must_use]
    pub fn manifest(&self) -> &TemplateManifest {
        &self.manifest
    }

    #[must_use]
    pub fn path(&self, file_name: &str) -> PathBuf {
        self.directory.join(file_name)
    }

    /// What an engine needs to restore this template.
    #[must_use]
    pub fn restore_spec(&self) -> RestoreSpec {
        RestoreSpec {
            machine: self.manifest.machine.clone(),
            kernel: self.path(file_names::KERNEL),
            initial_ram_disk: self.path(file_names::INITIAL_RAM_DISK),
            disks: DiskFiles {
                base: self.path(file_names::BASE_IMAGE),
                base_parts: self
                    .manifest
                    .base_parts
                    .iter()
                    .map(|names| names.within(&self.directory))
                    .collect(),
                sealed: self
                    .manifest
                    .sealed_layers
                    .iter()
                    .map(|name| self.path(name))
                    .collect(),
                empty_layer: self.path(file_names::EMPTY_LAYER),
            },
            memory_image: MemoryImage::File(self.path(file_names::MEMORY_IMAGE)),
            memory_layers: Vec::new(),
            device_state: self.path(file_names::DEVICE_STATE),
            disk: None,
            build: None,
            volumes: Vec::new(),
        }
    }
}

/// A version of which the disk is used and what boots on it. Its memory and its devices may be
/// damaged or gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateDisk(BakedTemplate);

impl TemplateDisk {
    pub(crate) fn new(version: VersionId, directory: PathBuf, manifest: TemplateManifest) -> Self {
        Self(BakedTemplate::new(version, directory, manifest))
    }

    #[must_use]
    pub fn version(&self) -> &VersionId {
        self.0.version()
    }

    #[must_use]
    pub fn directory(&self) -> &Path {
        self.0.directory()
    }

    #[must_use]
    pub fn manifest(&self) -> &TemplateManifest {
        self.0.manifest()
    }

    /// The files that are used.
    #[must_use]
    pub fn files(&self) -> Vec<SealedFile> {
        disk_files(self.manifest()).cloned().collect()
    }

    /// What an engine needs of this version to boot on its disk, or to restore what was captured
    /// of a machine that did. The device state is then the capture's.
    #[must_use]
    pub fn restore_spec(&self) -> RestoreSpec {
        RestoreSpec {
            memory_image: MemoryImage::Zeros,
            ..self.0.restore_spec()
        }
    }
}

/// The files of a version that a machine needs which has nothing of its memory.
pub(crate) fn disk_files(manifest: &TemplateManifest) -> impl Iterator<Item = &SealedFile> {
    let of_memory = [file_names::MEMORY_IMAGE, file_names::DEVICE_STATE];
    let files = manifest.files.iter();
    files.filter(move |entry| !of_memory.contains(&entry.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_ids_sort_by_age_and_parse() {
        let old = VersionId::new(9, b"b");
        let new = VersionId::new(10, b"a");
        assert!(old < new);
        assert_eq!(VersionId::parse(old.as_str()), Some(old.clone()));
        assert_eq!((old.sequence(), new.sequence()), (9, 10));
        for text in [
            "",
            "x",
            ".staging",
            "00000001",
            "00000001-xyz",
            "1-0123abcd",
        ] {
            assert_eq!(VersionId::parse(text), None, "{text:?}");
        }
    }
}
