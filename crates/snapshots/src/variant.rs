//! Templates in other sizes than their recipes say.
//!
//! A variant is one more version of its template: the same recipe and the same image, booted,
//! warmed up and captured with other memory or more processors. It lies beside the template's own
//! bakes and is numbered with them, so whoever knows a name and a version finds it without knowing
//! that it is one; its manifest says so.

use std::collections::{BTreeSet, HashSet};

use dayfly_types::{ProjectId, TemplateName, TemplateSize};
use serde::{Deserialize, Serialize};

use crate::catalog::ResolvedRecipe;
use crate::manifest::{HostFingerprint, TemplateManifest};
use crate::store::{OpenError, TemplateStore};
use crate::template::{BakedTemplate, VersionId};

/// What makes a version a variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantIdentity {
    /// The digest of the recipe in the size that it says. Bakes of one recipe belong together.
    pub of: String,
    /// The project that it was baked for. `None`: for an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered_by: Option<ProjectId>,
    /// How long the bake took.
    #[serde(default)]
    pub bake_ms: u64,
}

impl ResolvedRecipe {
    /// The size that it says.
    #[must_use]
    pub fn size(&self) -> TemplateSize {
        TemplateSize {
            memory: self.recipe.memory,
            vcpus: self.recipe.vcpus,
        }
    }

    /// The same in another size. Its digest is another.
    #[must_use]
    pub fn in_size(&self, size: TemplateSize) -> Self {
        let mut sized = self.clone();
        sized.recipe.memory = size.memory;
        sized.recipe.vcpus = size.vcpus;
        sized
    }
}

impl TemplateManifest {
    #[must_use]
    pub fn size(&self) -> TemplateSize {
        TemplateSize {
            memory: self.machine.memory,
            vcpus: self.machine.vcpus,
        }
    }
}

impl TemplateStore {
    /// The newest variant of each size that this node can restore, and whose recipe is one of these.
    ///
    /// # Errors
    /// [`OpenError`] when the directory cannot be read.
    pub fn open_variants(
        &self,
        name: &TemplateName,
        wanted: &HostFingerprint,
        recipes: &HashSet<String>,
    ) -> Result<Vec<BakedTemplate>, OpenError> {
        let mut sizes = BTreeSet::new();
        let mut found = Vec::new();
        for version in self.versions(name)?.into_iter().rev() {
            let Ok(template) = self.open_version(name, &version) else {
                continue;
            };
            let manifest = template.manifest();
            let variant = manifest.variant.as_ref();
            let is_wanted = variant.is_some_and(|variant| recipes.contains(&variant.of))
                && manifest.project.is_none()
                && manifest.fits_host(wanted).is_ok();
            if is_wanted && sizes.insert(manifest.size()) {
                found.push(template);
            }
        }
        Ok(found)
    }

    /// All versions of a template that are variants and can be opened.
    ///
    /// # Errors
    /// [`OpenError`] when the directory cannot be read.
    pub fn variants(&self, name: &TemplateName) -> Result<HashSet<VersionId>, OpenError> {
        let is_variant = |version: &VersionId| {
            let opened = self.open_version(name, version);
            opened.is_ok_and(|template| template.manifest().variant.is_some())
        };
        let versions = self.versions(name)?;
        Ok(versions.into_iter().filter(is_variant).collect())
    }
}

#[cfg(test)]
#[path = "variant_tests.rs"]
mod tests;
