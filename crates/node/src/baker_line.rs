//! The baker's part in baking: one template of the line after the other.

use std::collections::BTreeSet;
use std::sync::Arc;

use dayfly_core::admission::{Demand, Refusal};
use dayfly_node_api::BakeState;
use dayfly_snapshots::{BakedTemplate, ProgressReporter, ResolvedRecipe, VariantIdentity};
use tokio_util::sync::CancellationToken;

use super::{BakeUsers, Baker};
use crate::bake::{BakeError, bake_template};
use crate::capacity::Promise;
use crate::disk_lane::off_runtime;
use crate::error_chain;
use crate::template_target::BakeTarget;

impl Baker {
    /// Bakes what is in the line. Says whether something stays there because the host has promised
    /// the memory for it to sandboxes.
    pub(super) async fn bake_line(
        self: &Arc<Self>,
        users: &BakeUsers,
        stop: &CancellationToken,
    ) -> bool {
        let mut passed = BTreeSet::new();
        while let Some(target) = self.templates.take_order(&passed) {
            let baker = Arc::clone(self);
            let catalog = off_runtime(move || baker.read_recipes()).await;
            // One that is wrong or gone by now has been told so by the reading.
            let written = catalog.get(&target.name);
            let Some(written) = written.filter(|one| target.is_allowed_by(one)) else {
                continue;
            };
            let recipe = target.recipe(written);
            let memory = match memory_for(users, &recipe) {
                Ok(memory) => memory,
                Err(refusal) => {
                    tracing::info!(template = %target, %refusal, "the bake waits for memory");
                    self.templates.put_back(&target);
                    passed.insert(target);
                    continue;
                }
            };
            if !self.templates.begin(&target, &recipe) {
                continue;
            }
            let variant = target.identity(written, self.templates.ordered_by(&target));
            tokio::select! {
                () = stop.cancelled() => return false,
                () = self.templates.is_gone(&target) => {
                    tracing::info!(template = %target, "nobody wants it any more; its bake ends");
                }
                () = self.bake(&target, &recipe, variant) => {}
            }
            drop(memory);
        }
        !passed.is_empty()
    }

    async fn bake(
        self: &Arc<Self>,
        target: &BakeTarget,
        recipe: &ResolvedRecipe,
        variant: Option<VariantIdentity>,
    ) {
        let work = self.make(target, recipe, variant);
        let made = match recipe.image.project() {
            None => work.await,
            // Everybody else waits meanwhile.
            Some(_) => {
                let limit = self.deps.limits.ordered;
                let made = tokio::time::timeout(limit, work).await;
                made.unwrap_or(Err(BakeError::TookTooLong(limit)))
            }
        };
        match made {
            Ok(template) => {
                self.lend(&target.name, template.version());
                self.tell(self.templates.set_baked(&template, Some(recipe)));
            }
            Err(error) => {
                let reason = error_chain(&error);
                tracing::error!(template = %target, reason, "cannot bake");
                self.tell(self.templates.set_failed(target, reason));
            }
        }
    }

    async fn make(
        self: &Arc<Self>,
        target: &BakeTarget,
        recipe: &ResolvedRecipe,
        variant: Option<VariantIdentity>,
    ) -> Result<BakedTemplate, BakeError> {
        let (baker, listened) = (Arc::clone(self), target.clone());
        let progress = ProgressReporter::new(move |progress| {
            let state = BakeState::Baking {
                percent: progress.percent,
                step: progress.step,
            };
            baker.tell(baker.templates.set_progress(&listened, state));
        });
        progress.report("starting", 0);
        let images = &self.deps.images;
        let parts = images.ensure(&recipe.image, &progress.part(0, 60)).await;
        let parts = parts.map_err(BakeError::Image)?;
        self.before_first_boot.image_is_there(&parts).await;
        bake_template(&self.deps, recipe, variant, &progress).await
    }
}

/// The memory of the machine that makes a template of a project, promised like that of a sandbox.
/// What the operator wants baked is baked.
fn memory_for(users: &BakeUsers, recipe: &ResolvedRecipe) -> Result<Option<Promise>, Refusal> {
    if recipe.image.project().is_none() {
        return Ok(None);
    }
    let demand = Demand::of_guest(u64::from(recipe.recipe.memory.get()), 0);
    users.ledger.promise(demand).map(Some)
}
