//! The baker's part in templates of other sizes.

use std::collections::HashSet;
use std::sync::Arc;

use dayfly_node_api::{BakeState, VariantReport, VariantRequest};
use dayfly_snapshots::{BakedTemplate, RecipeCatalog, ResolvedRecipe};
use dayfly_types::TemplateName;
use tokio_util::sync::CancellationToken;

use super::{BakeUsers, Baker};
use crate::bake::{agent_hash, host_fingerprint};
use crate::error_chain;
use crate::journal::Entry;
use crate::template_target::BakeTarget;
use crate::templates::{BakeWish, ReadyTemplate, TemplateUnavailable};

impl Baker {
    /// Opens the variants on the disk that belong to a recipe of now, or to the bake in use of their
    /// template. Others are baked when somebody asks for them.
    pub(super) async fn open_variants(
        self: &Arc<Self>,
        catalog: &RecipeCatalog,
        stop: &CancellationToken,
    ) {
        for recipe in catalog.iter() {
            if stop.is_cancelled() {
                return;
            }
            let (baker, wanted) = (Arc::clone(self), recipe.clone());
            let opened = tokio::task::spawn_blocking(move || baker.whole_variants(&wanted)).await;
            let opened = opened.unwrap_or_else(|error| {
                tracing::error!(%error, "cannot open the variants of a template");
                Vec::new()
            });
            for template in opened {
                let target = BakeTarget::of(template.manifest());
                self.lend(&target.name, template.version());
                self.templates.note_variant(&target, recipe);
                let sized = target.recipe(recipe);
                self.templates.set_baked(&template, Some(&sized));
            }
        }
    }

    /// Those whose bytes are what was published. Blocks.
    fn whole_variants(&self, recipe: &ResolvedRecipe) -> Vec<BakedTemplate> {
        let name = &recipe.recipe.name;
        let hash = match agent_hash(&self.deps.agent_program) {
            Ok(hash) => hash,
            Err(error) => {
                tracing::error!(%error, "cannot read the guest agent's program");
                return Vec::new();
            }
        };
        let host = host_fingerprint(self.deps.engine.capabilities(), &hash);
        let mut recipes = HashSet::from([recipe.hash()]);
        recipes.extend(self.templates.recipe_in_use(name));
        let opened = self.deps.store.open_variants(name, &host, &recipes);
        let opened = opened.unwrap_or_else(|error| {
            tracing::error!(template = %name, error = %error_chain(&error), "cannot open variants");
            Vec::new()
        });
        let is_whole = |template: &BakedTemplate| match self.verifier.verify(template) {
            Ok(()) => true,
            Err(error) => {
                // Never restored from; baked anew when it is asked for.
                tracing::error!(template = %name, error = %error_chain(&error), "damaged variant");
                false
            }
        };
        opened.into_iter().filter(is_whole).collect()
    }

    /// A variant to make a sandbox from. One that is not baked is ordered.
    pub(super) fn ready_variant(
        &self,
        name: &TemplateName,
        wanted: &VariantRequest,
    ) -> Result<Arc<ReadyTemplate>, TemplateUnavailable> {
        let target = BakeTarget::variant(&self.templates.real_name(name), wanted.size);
        if let Some(current) = self.templates.use_variant(&target) {
            return Ok(current);
        }
        let report = match self.templates.variant_report(&target) {
            Some(report) if matches!(report.state, BakeState::Failed { .. }) => report,
            _ => self.order_of(&self.catalog(), name, wanted)?,
        };
        let name = target.to_string();
        Err(match report.state {
            BakeState::Failed { reason } => TemplateUnavailable::Failed { name, reason },
            BakeState::Baking { percent, step } => TemplateUnavailable::Baking {
                name,
                percent,
                step,
            },
            BakeState::NotBaked | BakeState::Waiting | BakeState::Ready => {
                TemplateUnavailable::Baking {
                    name,
                    percent: 0,
                    step: "waiting".to_owned(),
                }
            }
        })
    }

    /// Orders a variant by the recipe as it is written now. Blocks.
    pub(super) fn order_anew(
        &self,
        name: &TemplateName,
        wanted: &VariantRequest,
    ) -> Result<VariantReport, TemplateUnavailable> {
        let target = BakeTarget::variant(&self.templates.real_name(name), wanted.size);
        let Some(report) = self
            .templates
            .variant_report(&target)
            .filter(|_| !wanted.renew)
        else {
            return self.order_of(&self.read_recipes(), name, wanted);
        };
        if report.is_usable {
            return Ok(report);
        }
        match report.state {
            // Whoever waits for it asks again and again.
            BakeState::Waiting | BakeState::Baking { .. } => {
                self.order_of(&self.catalog(), name, wanted)
            }
            BakeState::NotBaked | BakeState::Ready | BakeState::Failed { .. } => {
                self.order_of(&self.read_recipes(), name, wanted)
            }
        }
    }

    fn order_of(
        &self,
        catalog: &RecipeCatalog,
        name: &TemplateName,
        wanted: &VariantRequest,
    ) -> Result<VariantReport, TemplateUnavailable> {
        let real = self.templates.real_name(name);
        match catalog.get(&real) {
            Some(recipe) => self.templates.order_variant(recipe, wanted),
            // Its recipe is wrong or gone, which is told of it.
            None => Err(match self.templates.order(name, BakeWish::Renew) {
                Err(error) => error,
                Ok(()) => self.templates.unavailable(name),
            }),
        }
    }

    /// Removes variants of templates that have no recipe any more, unless something needs them.
    pub(super) fn remove_variants_of_nothing(&self, users: &BakeUsers, entries: &[Entry]) {
        let Ok(names) = self.deps.store.names() else {
            return;
        };
        let catalog = self.catalog();
        let is_known = |name: &TemplateName| {
            catalog.get(name).is_some() || catalog.wrong().any(|(wrong, _)| wrong == name)
        };
        for name in names.iter().filter(|name| !is_known(name)) {
            let store = &self.deps.store;
            let (Ok(all), Ok(variants)) = (store.versions(name), store.variants(name)) else {
                continue;
            };
            let needed = self.needed_versions(name, users, entries);
            let count = all.len();
            let keep = all
                .into_iter()
                .filter(|version| !variants.contains(version) || needed.contains(version));
            let keep: HashSet<_> = keep.collect();
            if keep.len() < count {
                self.remove_all_but(name, &keep);
            }
        }
    }
}
