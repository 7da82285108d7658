//! The one document that makes a directory of files a template.
//!
//! Readers accept keys that they do not know, so the format only grows; a change that an older
//! reader would misread raises [`MANIFEST_FORMAT`], and an older reader then refuses.

use std::time::SystemTime;

use dayfly_types::container_image::MadeImage;
use dayfly_types::{ContextLanguage, ProjectId, RunMeaning, TemplateName};
use dayfly_vmm::{Accelerator, EngineBuild, EngineKind, MachineSpec};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::base_disk::BasePartNames;
use crate::digest::ContentDigest;
use crate::variant::VariantIdentity;

/// The newest format that this program reads. It writes it where an older reader would take a part
/// of the base disk for all of it.
pub const MANIFEST_FORMAT: u32 = 3;
/// The format of everything else, and the oldest that is restored.
pub const MANIFEST_FORMAT_WHOLE_BASE: u32 = 2;

/// What a published template is and what it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateManifest {
    pub format: u32,
    pub name: TemplateName,
    /// None for the operator's templates, which all projects share.
    pub project: Option<ProjectId>,
    /// The template version that this one was captured on top of.
    pub parent: Option<ParentIdentity>,
    pub recipe: RecipeIdentity,
    /// It has another size than its recipe says. Absent from a template's own bakes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<VariantIdentity>,
    /// What the recipe said of its use. Absent from versions that were made before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    pub machine: MachineSpec,
    pub engine: EngineIdentity,
    pub kernel_version: String,
    pub agent: AgentIdentity,
    /// Sealed disk layers by file name, lowest first.
    pub sealed_layers: Vec<String>,
    /// The parts of the base disk, lowest first. Absent where it is one file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base_parts: Vec<BasePartNames>,
    /// How [`SealedFile::digest`] is computed: [`crate::DIGEST_KIND`].
    pub digest_kind: String,
    pub files: Vec<SealedFile>,
}

/// What is known about a template before its files are digested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestDraft {
    pub name: TemplateName,
    pub project: Option<ProjectId>,
    pub parent: Option<ParentIdentity>,
    pub recipe: RecipeIdentity,
    pub variant: Option<VariantIdentity>,
    pub offer: Offer,
    pub created_at: SystemTime,
    pub machine: MachineSpec,
    pub engine: EngineIdentity,
    pub kernel_version: String,
    pub agent: AgentIdentity,
    pub sealed_layers: Vec<String>,
    pub base_parts: Vec<BasePartNames>,
}

impl ManifestDraft {
    pub(crate) fn finish(self, files: Vec<SealedFile>) -> TemplateManifest {
        TemplateManifest {
            format: if self.base_parts.is_empty() {
                MANIFEST_FORMAT_WHOLE_BASE
            } else {
                MANIFEST_FORMAT
            },
            name: self.name,
            project: self.project,
            parent: self.parent,
            recipe: self.recipe,
            variant: self.variant,
            offer: Some(self.offer),
            created_at: OffsetDateTime::from(self.created_at),
            machine: self.machine,
            engine: self.engine,
            kernel_version: self.kernel_version,
            agent: self.agent,
            sealed_layers: self.sealed_layers,
            base_parts: self.base_parts,
            digest_kind: crate::DIGEST_KIND.to_owned(),
            files,
        }
    }
}

/// A template version by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentIdentity {
    pub name: TemplateName,
    pub version: String,
}

/// Which recipe was baked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipeIdentity {
    pub version: u32,
    pub hash: String,
}

/// What those who use a template are told of it, and what the host does with its sandboxes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub description: String,
    pub run: RunMeaning,
    pub contexts: Vec<ContextLanguage>,
    /// Programs that run in every sandbox of it, for one that boots instead of going on with them.
    /// Versions of before it was kept do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<String>,
    /// The program of the image of a container, if it runs in every sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entry_point: Vec<String>,
    /// What is said of the use of its disk, if that was an image of a container or a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<MadeImage>,
}

/// The engine that captured, and that a restore needs again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineIdentity {
    pub kind: EngineKind,
    pub version: String,
    pub accelerator: Accelerator,
    pub cpu_model: String,
    /// The very build, which is kept for it. What older programs wrote does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<EngineBuild>,
}

impl EngineIdentity {
    /// Says whether `wanted` can load what this engine saved. Builds of one version can.
    ///
    /// # Errors
    /// The first [`Mismatch`].
    pub fn fits(&self, wanted: &Self) -> Result<(), Mismatch> {
        if self.kind != wanted.kind {
            return Err(Mismatch::Engine {
                found: self.kind,
                wanted: wanted.kind,
            });
        }
        if self.version != wanted.version {
            let (found, wanted) = (self.version.clone(), wanted.version.clone());
            return Err(Mismatch::EngineVersion { found, wanted });
        }
        if self.accelerator != wanted.accelerator {
            let (found, wanted) = (self.accelerator, wanted.accelerator);
            return Err(Mismatch::Accelerator { found, wanted });
        }
        if !is_same_processor(&self.cpu_model, &wanted.cpu_model) {
            let (found, wanted) = (self.cpu_model.clone(), wanted.cpu_model.clone());
            return Err(Mismatch::CpuModel { found, wanted });
        }
        Ok(())
    }
}

/// The guest agent that is alive in the captured memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentIdentity {
    pub protocol_generation: u32,
    pub hash: String,
}

/// One file of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedFile {
    pub name: String,
    pub bytes: u64,
    pub digest: ContentDigest,
}

/// What this node would bake now. A template that differs is baked anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    pub host: HostFingerprint,
    pub recipe_hash: String,
}

/// The part of it that no recipe decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFingerprint {
    pub engine: EngineIdentity,
    pub agent_hash: String,
}

/// Why a text is not a manifest that this program can use.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("the manifest is not valid")]
    Syntax(#[source] serde_json::Error),
    #[error("the manifest has format {found}; this program reads up to {MANIFEST_FORMAT}")]
    Newer { found: u32 },
    #[error("the manifest uses the digest {found:?}, which this program does not know")]
    UnknownDigest { found: String },
    #[error("the manifest names a file {name:?}, which is not a plain file name")]
    BadFileName { name: String },
    #[error("the manifest names parts of the base disk as no program does")]
    BaseParts,
    #[error("the manifest does not list the file {name:?}")]
    MissingFile { name: String },
}

/// The first thing in which a template differs from what is wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("manifest format {found} is older than {MANIFEST_FORMAT_WHOLE_BASE}")]
    Format { found: u32 },
    #[error("engine is {}, not {}", found.as_str(), wanted.as_str())]
    Engine {
        found: EngineKind,
        wanted: EngineKind,
    },
    #[error("engine version is {found}, not {wanted}")]
    EngineVersion { found: String, wanted: String },
    #[error("accelerator is {}, not {}", found.as_str(), wanted.as_str())]
    Accelerator {
        found: Accelerator,
        wanted: Accelerator,
    },
    #[error("CPU model is {found}, not {wanted}")]
    CpuModel { found: String, wanted: String },
    #[error("guest agent is {found}, not {wanted}")]
    Agent { found: String, wanted: String },
    #[error("recipe is {found}, not {wanted}")]
    Recipe { found: String, wanted: String },
}

impl TemplateManifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// [`ManifestError::Newer`] for a format of the future, whatever else it holds.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        #[derive(Deserialize)]
        struct FormatOnly {
            format: u32,
        }
        let FormatOnly { format } = serde_json::from_slice(bytes).map_err(ManifestError::Syntax)?;
        if format > MANIFEST_FORMAT {
            return Err(ManifestError::Newer { found: format });
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(ManifestError::Syntax)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// The text that goes to disk.
    ///
    /// # Errors
    /// [`ManifestError::Syntax`] when a value has no JSON form, such as a year beyond 9999.
    pub fn to_json(&self) -> Result<Vec<u8>, ManifestError> {
        let mut text = serde_json::to_vec_pretty(self).map_err(ManifestError::Syntax)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Says whether a restore on this node may use the template.
    ///
    /// # Errors
    /// The first [`Mismatch`].
    pub fn fits(&self, wanted: &Fingerprint) -> Result<(), Mismatch> {
        self.fits_host(&wanted.host)?;
        let (found, wanted) = (&self.recipe.hash, &wanted.recipe_hash);
        if found != wanted {
            let (found, wanted) = (found.clone(), wanted.clone());
            return Err(Mismatch::Recipe { found, wanted });
        }
        Ok(())
    }

    /// Says the same of a template whose recipe may be another.
    ///
    /// # Errors
    /// The first [`Mismatch`].
    pub fn fits_host(&self, wanted: &HostFingerprint) -> Result<(), Mismatch> {
        if self.format < MANIFEST_FORMAT_WHOLE_BASE {
            return Err(Mismatch::Format { found: self.format });
        }
        self.engine.fits(&wanted.engine)?;
        let (found, wanted) = (&self.agent.hash, &wanted.agent_hash);
        if found != wanted {
            let (found, wanted) = (found.clone(), wanted.clone());
            return Err(Mismatch::Agent { found, wanted });
        }
        Ok(())
    }

    /// The files of the base disk without their maps: the last part, then those below it.
    pub(crate) fn base_contents(&self) -> Vec<String> {
        let last = crate::file_names::BASE_IMAGE;
        let parts = self.base_parts.iter().map(|part| &part.content);
        let lower = parts.filter(|name| *name != last).cloned();
        std::iter::once(last.to_owned()).chain(lower).collect()
    }

    fn check(&self) -> Result<(), ManifestError> {
        if self.digest_kind != crate::DIGEST_KIND {
            return Err(ManifestError::UnknownDigest {
                found: self.digest_kind.clone(),
            });
        }
        if let Some(entry) = self.files.iter().find(|entry| !is_plain_name(&entry.name)) {
            return Err(ManifestError::BadFileName {
                name: entry.name.clone(),
            });
        }
        let listed = |name: &str| self.files.iter().any(|entry| entry.name == name);
        let needed = crate::file_names::REQUIRED.into_iter();
        let layers = self.sealed_layers.iter().map(String::as_str);
        // The names are those that every program gives to them, so that none is another file's.
        if self.base_parts != BasePartNames::of(self.base_parts.len()) {
            return Err(ManifestError::BaseParts);
        }
        let parts = self.base_parts.iter();
        let parts = parts.flat_map(|part| [part.content.as_str(), part.map.as_str()]);
        match needed.chain(layers).chain(parts).find(|name| !listed(name)) {
            Some(name) => Err(ManifestError::MissingFile {
                name: name.to_owned(),
            }),
            None => Ok(()),
        }
    }
}

/// Older programs noted the processor's name alone; a digest of what it can do follows it now.
fn is_same_processor(found: &str, wanted: &str) -> bool {
    let rest = wanted.strip_prefix(found);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// A name that stays in its directory.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
pub(crate) mod tests;
