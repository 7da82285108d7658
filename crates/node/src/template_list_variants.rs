//! The variants in the list of templates: which sizes there are, and who may have another baked.

use std::sync::Arc;

use dayfly_node_api::{BakeState, TemplateReport, VariantReport, VariantRequest};
use dayfly_snapshots::{RecipeCatalog, ResolvedRecipe};
use dayfly_types::{ProjectId, TemplateName, limits};

use super::{Entries, TemplateList};
use crate::template_known::{Asked, Known};
use crate::template_target::BakeTarget;
use crate::templates::{BakeWish, ReadyTemplate, TemplateUnavailable};

impl TemplateList {
    /// Asks for the bake of a variant. One that nobody has asked for before takes a place among the
    /// sizes of its template, and among those of the project that it counts for.
    pub(crate) fn order_variant(
        &self,
        recipe: &ResolvedRecipe,
        wanted: &VariantRequest,
    ) -> Result<VariantReport, TemplateUnavailable> {
        let name = &recipe.recipe.name;
        if let Err(reason) = recipe.size().allows(wanted.size) {
            return Err(TemplateUnavailable::Size {
                name: name.to_string(),
                size: wanted.size,
                reason,
            });
        }
        let target = BakeTarget::variant(name, wanted.size);
        let mut entries = self.lock();
        if !entries.known.contains_key(&target) {
            entries.make_room(name, wanted.by.as_ref())?;
            let sized = recipe.in_size(wanted.size);
            let known = Known::of_recipe(&sized, BakeState::NotBaked);
            let known = known.ordered_by(wanted.by.clone());
            entries.known.insert(target.clone(), known);
        }
        let wish = if wanted.renew {
            BakeWish::Renew
        } else {
            BakeWish::IfMissing
        };
        let Some(known) = entries.known.get_mut(&target) else {
            return Err(entries.unknown(name));
        };
        let asked = known.ask(wish);
        if wanted.is_awaited {
            known.note_awaited();
        }
        let report = known.variant_report(wanted.size);
        self.follow(&mut entries, &target, &asked);
        match asked {
            Asked::Refused { reason } => Err(TemplateUnavailable::Failed {
                name: target.to_string(),
                reason,
            }),
            Asked::ToBeBaked | Asked::Nothing => Ok(report),
        }
    }

    /// A variant to make a sandbox from, if it is baked.
    pub(crate) fn use_variant(&self, target: &BakeTarget) -> Option<Arc<ReadyTemplate>> {
        self.lock().known.get_mut(target)?.begin_use()
    }

    pub(crate) fn variant_report(&self, target: &BakeTarget) -> Option<VariantReport> {
        let entries = self.lock();
        Some(entries.known.get(target)?.variant_report(target.size?))
    }

    /// The project that the bake of a variant counts for.
    pub(crate) fn ordered_by(&self, target: &BakeTarget) -> Option<ProjectId> {
        self.lock().known.get(target)?.orderer().cloned()
    }

    /// The digest of the recipe that sandboxes of a template are made by now.
    pub(crate) fn recipe_in_use(&self, name: &TemplateName) -> Option<String> {
        self.lock().find(name)?.recipe_in_use()
    }

    /// Takes in a variant that was found on the disk.
    pub(crate) fn note_variant(&self, target: &BakeTarget, recipe: &ResolvedRecipe) {
        let mut entries = self.lock();
        let known = || Known::of_recipe(&target.recipe(recipe), BakeState::NotBaked);
        entries.known.entry(target.clone()).or_insert_with(known);
    }
}

impl Entries {
    /// What is told of a template, with its other sizes.
    pub(super) fn report(&self, name: &TemplateName) -> Option<TemplateReport> {
        let mut report = self.known.get(&BakeTarget::own(name))?.report();
        let variants = self.variants_of(name);
        let variants = variants.filter_map(|(target, known)| {
            let size = target.size?;
            Some(known.variant_report(size))
        });
        report.variants = variants.collect();
        Some(report)
    }

    fn variants_of(&self, name: &TemplateName) -> impl Iterator<Item = (&BakeTarget, &Known)> {
        let known = self.known.range(BakeTarget::own(name)..);
        known
            .take_while(|(target, _)| target.name == *name)
            .filter(|(target, _)| target.size.is_some())
    }

    /// Says whether one more variant may be there.
    fn make_room(
        &mut self,
        name: &TemplateName,
        by: Option<&ProjectId>,
    ) -> Result<(), TemplateUnavailable> {
        // One that could not be baked need not stand in the way of another.
        self.known
            .retain(|target, known| target.size.is_none() || !known.has_come_to_nothing());
        let sizes: Vec<String> = self
            .variants_of(name)
            .filter_map(|(target, _)| Some(target.size?.to_string()))
            .collect();
        if sizes.len() >= limits::VARIANTS_OF_TEMPLATE_MAX {
            return Err(TemplateUnavailable::ManyVariants {
                name: name.to_string(),
                sizes: sizes.join(", "),
            });
        }
        let Some(project) = by else { return Ok(()) };
        let known = self.known.iter();
        let own = known.filter(|(_, known)| known.orderer() == Some(project));
        let own: Vec<String> = own.map(|(target, _)| target.to_string()).collect();
        if own.len() >= limits::VARIANTS_OF_PROJECT_MAX {
            let sizes = own.join(", ");
            return Err(TemplateUnavailable::ManyOfProject { sizes });
        }
        Ok(())
    }

    /// What is baked stays as it is; a variant that its recipe does not allow any more is only used.
    pub(super) fn learn_variants(&mut self, catalog: &RecipeCatalog) {
        let aliases = &self.aliases;
        self.known.retain(|target, known| {
            let Some(size) = target.size else { return true };
            if aliases.contains_key(&target.name) {
                return false;
            }
            let recipe = catalog.get(&target.name);
            match recipe.filter(|recipe| target.is_allowed_by(recipe)) {
                Some(recipe) => known.learn(&recipe.in_size(size), BakeState::NotBaked),
                None => {
                    let reason = "its recipe was removed, is wrong, or does not allow this size";
                    known.learn_wrong(reason.to_owned());
                    return !known.is_idle();
                }
            }
            true
        });
    }

    /// Sandboxes of a template are of one recipe, whatever their size: its variants of another are
    /// not used any more once a bake of this one is.
    pub(super) fn forget_outdated_variants(&mut self, name: &TemplateName, recipe: &str) {
        self.known.retain(|target, known| {
            let is_other = target.size.is_none() || target.name != *name;
            is_other || known.keep_if_of(recipe)
        });
    }
}
