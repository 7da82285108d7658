//! The documents that lead to an image: index, manifest and config, of OCI and of Docker's schema 2.
//!
//! All of them are a stranger's word: each is bounded, its kind must be what was announced, and what
//! is not known here is refused by name. Start reading at [`Descent`].

use std::collections::BTreeMap;
use std::fmt;

use dayfly_types::limits::{
    IMAGE_BYTES_MAX, IMAGE_CONFIG_ENTRIES_MAX, IMAGE_DOCUMENT_BYTES_MAX, IMAGE_INDEX_DEPTH_MAX,
    IMAGE_INDEX_ENTRIES_MAX, IMAGE_LAYER_BYTES_MAX, IMAGE_LAYERS_MAX, IMAGE_NAMES_TOLD_MAX,
};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::config::{self, ImageConfig};
use crate::digest::Digest;

pub(crate) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
pub(crate) const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const CONFIGS: [&str; 2] = [
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
];
/// Under which an entry of a layout's index has its name.
const NAME_ANNOTATION: &str = "org.opencontainers.image.ref.name";
const OS: &str = "linux";
const ARCHITECTURE: &str = "amd64";

/// Why a document of an image is refused.
#[derive(Debug, thiserror::Error)]
pub enum InvalidDocument {
    #[error("a document of the image is longer than {IMAGE_DOCUMENT_BYTES_MAX} bytes")]
    TooLong,
    #[error("the {what} of the image cannot be read")]
    Unreadable {
        what: &'static str,
        #[source]
        source: serde_json::Error,
    },
    #[error("the image has a manifest of schema {version}; only schema 2 is supported")]
    Schema { version: u64 },
    #[error("a document of the image is neither a manifest nor an index, or both")]
    Kind,
    #[error("a document of the image was announced as {announced:?} and is another kind")]
    OtherKind { announced: String },
    #[error("this is no image of a container but {media_type:?}")]
    NotAnImage { media_type: String },
    #[error("the image has a layer of the kind {media_type:?}, which is not supported")]
    LayerKind { media_type: String },
    #[error("the image has {found} layers; {IMAGE_LAYERS_MAX} are the most")]
    TooManyLayers { found: usize },
    #[error("a layer of the image has {size} bytes; {IMAGE_LAYER_BYTES_MAX} are the most")]
    LayerTooLarge { size: u64 },
    #[error("the layers of the image have more than {IMAGE_BYTES_MAX} bytes")]
    TooLarge,
    #[error("an index has {found} entries; {IMAGE_INDEX_ENTRIES_MAX} are the most")]
    TooManyEntries { found: usize },
    #[error("indexes lie in each other; {IMAGE_INDEX_DEPTH_MAX} are the most")]
    Nested,
    #[error("there is no image for {OS}/{ARCHITECTURE}; there is {there}")]
    NoPlatform { there: String },
    #[error("the image has {layers} layers and {diff_ids} digests of their content")]
    LayerCount { layers: usize, diff_ids: usize },
    #[error("{field} of the image's config has more than {IMAGE_CONFIG_ENTRIES_MAX} entries")]
    TooManyConfigEntries { field: &'static str },
    #[error("{field} of the image's config cannot be used: {value:?}")]
    ConfigValue { field: &'static str, value: String },
}

/// How the bytes of a layer become a tar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayerCompression {
    None,
    Gzip,
    Zstd,
}

/// A layer as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerBlob {
    /// Of the bytes as they are stored.
    pub digest: Digest,
    pub size: u64,
    /// Of the tar that they become.
    pub diff_id: Digest,
    pub compression: LayerCompression,
}

/// An image that was found. Its layers are still where they were, lowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Names the image for good. Docker's archives have no manifest: there it is the digest of the
    /// config, which Docker calls the id of the image.
    pub manifest: Digest,
    pub config: ImageConfig,
    pub layers: Vec<LayerBlob>,
}

/// What a document says about another one.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    platform: Option<Platform>,
    annotations: Option<BTreeMap<String, String>>,
}

impl Descriptor {
    /// The name that a layout gives it.
    pub(crate) fn name(&self) -> Option<&str> {
        let annotations = self.annotations.as_ref()?;
        annotations.get(NAME_ANNOTATION).map(String::as_str)
    }

    fn is_index(&self) -> bool {
        matches!(self.media_type.as_str(), OCI_INDEX | DOCKER_INDEX)
    }

    pub(crate) fn is_for_us(&self) -> bool {
        let platform = self.platform.as_ref();
        platform.is_some_and(|one| one.os == OS && one.architecture == ARCHITECTURE)
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Platform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDocument {
    schema_version: u64,
    media_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    fs_layers: Option<IgnoredAny>,
}

/// What one document of the way says.
#[derive(Debug)]
pub(crate) enum Step {
    /// Read this one next.
    Down(Descriptor),
    Arrived(Manifest),
}

/// The way from a reference to a manifest, through an index and perhaps one that lies in it.
#[derive(Debug, Default)]
pub(crate) struct Descent {
    indexes: usize,
}

impl Descent {
    /// `announced` is what the way here said that this is: a descriptor, or a registry's header.
    pub(crate) fn step(
        &mut self,
        document: &[u8],
        announced: &str,
    ) -> Result<Step, InvalidDocument> {
        let raw = read(document)?;
        // A document that two programs read as two kinds would be two images with one digest.
        let is_index = match (&raw.manifests, &raw.config, &raw.layers, &raw.fs_layers) {
            (Some(_), None, None, None) => true,
            (None, Some(_), Some(_), None) => false,
            _ => return Err(InvalidDocument::Kind),
        };
        for kind in raw.media_type.as_deref().into_iter().chain([announced]) {
            let is_fitting = match kind {
                OCI_INDEX | DOCKER_INDEX => is_index,
                OCI_MANIFEST | DOCKER_MANIFEST => !is_index,
                _ => false,
            };
            if !is_fitting
                || raw
                    .media_type
                    .as_deref()
                    .is_some_and(|own| own != announced)
            {
                let announced = announced.chars().take(100).collect();
                return Err(InvalidDocument::OtherKind { announced });
            }
        }
        if let Some(entries) = raw.manifests {
            self.indexes += 1;
            if self.indexes > IMAGE_INDEX_DEPTH_MAX {
                return Err(InvalidDocument::Nested);
            }
            return choose(entries).map(Step::Down);
        }
        let parts = raw.config.zip(raw.layers).ok_or(InvalidDocument::Kind)?;
        Manifest::check(parts.0, &parts.1).map(Step::Arrived)
    }
}

fn read(document: &[u8]) -> Result<RawDocument, InvalidDocument> {
    if document.len() as u64 > IMAGE_DOCUMENT_BYTES_MAX {
        return Err(InvalidDocument::TooLong);
    }
    /// Older schemas have other fields, so the version is looked at first.
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Version {
        schema_version: u64,
    }
    let unreadable = |source| InvalidDocument::Unreadable {
        what: "manifest",
        source,
    };
    let version: Version = serde_json::from_slice(document).map_err(unreadable)?;
    if version.schema_version != 2 {
        let version = version.schema_version;
        return Err(InvalidDocument::Schema { version });
    }
    let raw: RawDocument = serde_json::from_slice(document).map_err(unreadable)?;
    debug_assert_eq!(raw.schema_version, 2);
    Ok(raw)
}

/// The entries of a layout's own index, from which somebody chooses by name.
pub(crate) fn read_names(document: &[u8]) -> Result<Vec<Descriptor>, InvalidDocument> {
    let raw = read(document)?;
    let entries = raw.manifests.ok_or(InvalidDocument::Kind)?;
    if raw.config.is_some() || raw.layers.is_some() {
        return Err(InvalidDocument::Kind);
    }
    check_count(&entries)?;
    Ok(entries)
}

fn check_count(entries: &[Descriptor]) -> Result<(), InvalidDocument> {
    if entries.len() > IMAGE_INDEX_ENTRIES_MAX {
        let found = entries.len();
        return Err(InvalidDocument::TooManyEntries { found });
    }
    Ok(())
}

/// The first that is for our platform; else an index that lies in this one, or the only entry when
/// it does not say what it is for. The config has to say it in any case.
fn choose(entries: Vec<Descriptor>) -> Result<Descriptor, InvalidDocument> {
    check_count(&entries)?;
    let is_silent = entries.len() == 1 && entries.iter().all(|one| one.platform.is_none());
    let is_meant = |one: &&Descriptor| {
        is_silent || one.is_for_us() || (one.platform.is_none() && one.is_index())
    };
    let for_us = entries.iter().find(|one| one.is_for_us());
    if let Some(chosen) = for_us.or_else(|| entries.iter().find(is_meant)) {
        return Ok(chosen.clone());
    }
    let platforms = entries.iter().filter_map(|one| one.platform.as_ref());
    let there = list(platforms.map(ToString::to_string));
    Err(InvalidDocument::NoPlatform { there })
}

/// Some names in a row, for an error.
pub(crate) fn list(names: impl Iterator<Item = String>) -> String {
    let mut told: Vec<String> = Vec::new();
    for name in names {
        let name: String = name.escape_debug().take(100).collect();
        if told.len() == IMAGE_NAMES_TOLD_MAX {
            told.push("more".to_owned());
            break;
        }
        if !told.contains(&name) {
            told.push(name);
        }
    }
    match told.is_empty() {
        true => "none".to_owned(),
        false => told.join(", "),
    }
}

/// A manifest whose layers can all be read.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) config: Descriptor,
    layers: Vec<(Digest, u64, LayerCompression)>,
}

impl Manifest {
    fn check(config: Descriptor, layers: &[Descriptor]) -> Result<Self, InvalidDocument> {
        if !CONFIGS.contains(&config.media_type.as_str()) {
            let media_type = config.media_type;
            return Err(InvalidDocument::NotAnImage { media_type });
        }
        if config.size > IMAGE_DOCUMENT_BYTES_MAX {
            return Err(InvalidDocument::TooLong);
        }
        if layers.len() > IMAGE_LAYERS_MAX {
            let found = layers.len();
            return Err(InvalidDocument::TooManyLayers { found });
        }
        let mut checked = Vec::with_capacity(layers.len());
        for layer in layers {
            let compression = compression(&layer.media_type)?;
            checked.push((layer.digest.clone(), layer.size, compression));
        }
        check_sizes(checked.iter().map(|(_, size, _)| *size))?;
        Ok(Self {
            config,
            layers: checked,
        })
    }

    /// `config` is what the digest of the descriptor stands for.
    pub(crate) fn complete(
        self,
        manifest: Digest,
        config: &[u8],
    ) -> Result<Image, InvalidDocument> {
        let (config, diff_ids) = config::read(config)?;
        pair(&diff_ids, self.layers.len())?;
        let pairs = self.layers.into_iter().zip(diff_ids);
        let layer = |((digest, size, compression), diff_id)| LayerBlob {
            digest,
            size,
            diff_id,
            compression,
        };
        Ok(Image {
            manifest,
            config,
            layers: pairs.map(layer).collect(),
        })
    }
}

/// Each layer has one digest of its content.
pub(crate) fn pair(diff_ids: &[Digest], layers: usize) -> Result<(), InvalidDocument> {
    if layers == diff_ids.len() {
        return Ok(());
    }
    let diff_ids = diff_ids.len();
    Err(InvalidDocument::LayerCount { layers, diff_ids })
}

pub(crate) fn check_sizes(sizes: impl Iterator<Item = u64>) -> Result<(), InvalidDocument> {
    let mut sum: u64 = 0;
    for size in sizes {
        if size > IMAGE_LAYER_BYTES_MAX {
            return Err(InvalidDocument::LayerTooLarge { size });
        }
        sum = sum.saturating_add(size);
    }
    if sum > IMAGE_BYTES_MAX {
        return Err(InvalidDocument::TooLarge);
    }
    Ok(())
}

/// Not in the list: layers that may not be passed on, which lie elsewhere, and encrypted ones.
fn compression(media_type: &str) -> Result<LayerCompression, InvalidDocument> {
    match media_type {
        "application/vnd.oci.image.layer.v1.tar"
        | "application/vnd.docker.image.rootfs.diff.tar" => Ok(LayerCompression::None),
        "application/vnd.oci.image.layer.v1.tar+gzip"
        | "application/vnd.docker.image.rootfs.diff.tar.gzip" => Ok(LayerCompression::Gzip),
        "application/vnd.oci.image.layer.v1.tar+zstd"
        | "application/vnd.docker.image.rootfs.diff.tar.zstd" => Ok(LayerCompression::Zstd),
        other => Err(InvalidDocument::LayerKind {
            media_type: other.chars().take(100).collect(),
        }),
    }
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
