//! Which bake of a template is meant.

use dayfly_snapshots::{ResolvedRecipe, TemplateManifest, VariantIdentity};
use dayfly_types::{ProjectId, TemplateName, TemplateSize};

/// A template in the size that its recipe says, or in another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BakeTarget {
    pub(crate) name: TemplateName,
    /// `None`: that of the recipe, whichever it is.
    pub(crate) size: Option<TemplateSize>,
}

impl BakeTarget {
    pub(crate) fn own(name: &TemplateName) -> Self {
        Self {
            name: name.clone(),
            size: None,
        }
    }

    pub(crate) fn variant(name: &TemplateName, size: TemplateSize) -> Self {
        Self {
            name: name.clone(),
            size: Some(size),
        }
    }

    /// What a bake was of.
    pub(crate) fn of(manifest: &TemplateManifest) -> Self {
        Self {
            name: manifest.name.clone(),
            size: manifest.variant.is_some().then(|| manifest.size()),
        }
    }

    /// The recipe as this is baked from it.
    pub(crate) fn recipe(&self, recipe: &ResolvedRecipe) -> ResolvedRecipe {
        match self.size {
            Some(size) => recipe.in_size(size),
            None => recipe.clone(),
        }
    }

    /// Whether the recipe can be baked as this.
    pub(crate) fn is_allowed_by(&self, recipe: &ResolvedRecipe) -> bool {
        self.size
            .is_none_or(|size| recipe.size().allows(size).is_ok())
    }

    /// What the manifest of a bake of `recipe` says of it.
    pub(crate) fn identity(
        &self,
        recipe: &ResolvedRecipe,
        ordered_by: Option<ProjectId>,
    ) -> Option<VariantIdentity> {
        self.size.map(|_| VariantIdentity {
            of: recipe.hash(),
            ordered_by,
            bake_ms: 0,
        })
    }
}

impl std::fmt::Display for BakeTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.size {
            Some(size) => write!(f, "{} with {size}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}
