//! The templates of this node: opens those that are baked and still fit, and bakes others when
//! somebody asks for them, one after the other.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use dayfly_node_api::{BakeState, TemplateReport};
use dayfly_snapshots::{
    BakedTemplate, CaptureStore, ImageParts, ProgressReporter, RecipeCatalog, ResolvedRecipe,
    Verifier, VersionId,
};
use dayfly_types::TemplateName;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::bake::{BakeDeps, agent_hash, bake_template, engine_identity, fingerprint};
use crate::disk_lane::off_runtime;
use crate::effects::Effect;
use crate::error_chain;
use crate::journal::{Entry, Journal};
use crate::template_list::{TemplateList, ready_template};
use crate::templates::{ReadyTemplate, TemplateSource, TemplateUnavailable};

/// Told of every change, for a display.
pub type BakeListener = Arc<dyn Fn(&TemplateReport) + Send + Sync>;

/// Asked once an image is there and before its first boot.
#[async_trait]
pub trait BeforeFirstBoot: Send + Sync + std::fmt::Debug + 'static {
    /// The kernel of the image can now be booted for a probe.
    async fn image_is_there(&self, parts: &ImageParts);
}

/// What there is to bake.
#[derive(Debug)]
pub struct BakePlan {
    pub catalog: RecipeCatalog,
    /// Baked without being asked for.
    pub at_start: BTreeSet<TemplateName>,
}

/// What a bake that became old may still be needed for.
#[derive(Debug)]
pub struct BakeUsers {
    pub journal: Journal,
    pub captures: Arc<CaptureStore>,
}

/// The source of a real node's templates.
pub struct Baker {
    deps: BakeDeps,
    plan: BakePlan,
    templates: TemplateList,
    verifier: Verifier,
    listener: BakeListener,
    before_first_boot: Arc<dyn BeforeFirstBoot>,
}

impl std::fmt::Debug for Baker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Baker")
            .field("deps", &self.deps)
            .finish_non_exhaustive()
    }
}

impl Baker {
    #[must_use]
    pub fn new(
        deps: BakeDeps,
        plan: BakePlan,
        listener: BakeListener,
        before_first_boot: Arc<dyn BeforeFirstBoot>,
    ) -> Arc<Self> {
        Arc::new(Self {
            templates: TemplateList::new(&plan.catalog, &plan.at_start),
            deps: deps.observed(),
            plan,
            verifier: Verifier::new(),
            listener,
            before_first_boot,
        })
    }

    /// Opens what is baked already, then bakes what is asked for until `stop`.
    pub async fn run(self: Arc<Self>, users: BakeUsers, stop: CancellationToken) {
        let (baker, users) = (Arc::clone(&self), Arc::new(users));
        let sweep = move || {
            let BakeDeps { effects, store, .. } = &baker.deps;
            effects.around(Effect::TemplateSweep, || store.sweep())
        };
        if let Err(error) = off_runtime(sweep).await {
            tracing::warn!(error = %error_chain(&error), "cannot sweep unfinished bakes");
        }
        for recipe in self.in_order_of_opening() {
            if stop.is_cancelled() {
                return;
            }
            if !self.open(recipe).await {
                self.templates.note_missing(&recipe.recipe.name);
            }
        }
        loop {
            while let Some(name) = self.templates.take_order() {
                let Some(recipe) = self.plan.catalog.get(&name) else {
                    continue;
                };
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.bake(recipe) => {}
                }
            }
            let (baker, here) = (Arc::clone(&self), Arc::clone(&users));
            off_runtime(move || baker.remove_unused(&here)).await;
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.templates.wait_for_order() => {}
            }
        }
    }

    /// Those of the start first, and small ones before large ones: reading their bytes, or baking
    /// them, takes a while, and somebody may wait.
    fn in_order_of_opening(&self) -> Vec<&ResolvedRecipe> {
        let mut recipes: Vec<&ResolvedRecipe> = self.plan.catalog.iter().collect();
        recipes.sort_by_key(|one| {
            let is_late = !self.plan.at_start.contains(&one.recipe.name);
            (is_late, one.recipe.memory.get())
        });
        recipes
    }

    /// Opens a baked template that fits and whose bytes are what was published.
    async fn open(self: &Arc<Self>, recipe: &ResolvedRecipe) -> bool {
        let (baker, recipe) = (Arc::clone(self), recipe.clone());
        let opened = tokio::task::spawn_blocking(move || baker.open_verified(&recipe)).await;
        match opened {
            Ok(Some(template)) => {
                self.ready(&template);
                true
            }
            Ok(None) => false,
            Err(error) => {
                tracing::error!(%error, "cannot open a template");
                false
            }
        }
    }

    fn open_verified(&self, recipe: &ResolvedRecipe) -> Option<BakedTemplate> {
        let name = &recipe.recipe.name;
        let hash = match agent_hash(&self.deps.agent_program) {
            Ok(hash) => hash,
            Err(error) => {
                tracing::error!(%error, "cannot read the guest agent's program");
                return None;
            }
        };
        let wanted = fingerprint(self.deps.engine.capabilities(), recipe, &hash);
        let template = match self.deps.store.open_current(name, &wanted) {
            Ok(template) => template?,
            Err(error) => {
                tracing::error!(template = %name, error = %error_chain(&error), "cannot open");
                return None;
            }
        };
        if let Err(error) = self.verifier.verify(&template) {
            // Never restored from; baked anew instead.
            tracing::error!(template = %name, error = %error_chain(&error), "damaged");
            return None;
        }
        Some(template)
    }

    async fn bake(self: &Arc<Self>, recipe: &ResolvedRecipe) {
        let name = recipe.recipe.name.clone();
        let (baker, listened) = (Arc::clone(self), name.clone());
        let progress = ProgressReporter::new(move |progress| {
            let state = BakeState::Baking {
                percent: progress.percent,
                step: progress.step,
            };
            baker.set_state(&listened, state);
        });
        progress.report("starting", 0);
        let image = self
            .deps
            .images
            .ensure(&recipe.image, &progress.part(0, 60))
            .await;
        let parts = match image {
            Ok(parts) => parts,
            Err(error) => return self.failed(&name, &error),
        };
        self.before_first_boot.image_is_there(&parts).await;
        match bake_template(&self.deps, recipe, &progress).await {
            Ok(template) => self.ready(&template),
            Err(error) => self.failed(&name, &error),
        }
    }

    fn failed(&self, name: &TemplateName, error: &dyn std::error::Error) {
        let reason = error_chain(error);
        tracing::error!(template = %name, reason, "cannot bake");
        self.set_state(name, BakeState::Failed { reason });
    }

    fn ready(&self, template: &BakedTemplate) {
        self.tell(self.templates.set_ready(template));
    }

    fn set_state(&self, name: &TemplateName, state: BakeState) {
        self.tell(self.templates.set_state(name, state));
    }

    fn tell(&self, report: Option<TemplateReport>) {
        if let Some(report) = report {
            (self.listener)(&report);
        }
    }

    fn open_old_version(
        &self,
        name: &TemplateName,
        version: &str,
    ) -> Result<BakedTemplate, String> {
        let id = VersionId::parse(version).ok_or("it has no such version")?;
        let template = self
            .deps
            .store
            .open_version(name, &id)
            .map_err(|error| error_chain(&error))?;
        let capabilities = self.deps.engine.capabilities();
        template
            .manifest()
            .engine
            .fits(&engine_identity(capabilities))
            .map_err(|mismatch| mismatch.to_string())?;
        self.verifier
            .verify(&template)
            .map_err(|error| error_chain(&error))?;
        Ok(template)
    }

    /// Removes bakes that nothing uses: neither the newest of a template nor one that a sandbox
    /// of the journal or a capture was made from.
    fn remove_unused(&self, users: &BakeUsers) {
        let Ok(entries) = users.journal.entries() else {
            return;
        };
        let captures = &users.captures;
        // A capture that cannot be read might have named any version.
        if !captures.damaged().is_empty() {
            return;
        }
        for recipe in self.plan.catalog.iter() {
            let name = &recipe.recipe.name;
            // Without a current version any of them may be the one to go back to.
            let Some(current) = self.templates.current(name) else {
                continue;
            };
            let mut keep: HashSet<VersionId> =
                VersionId::parse(&current.version).into_iter().collect();
            for entry in &entries {
                match entry {
                    Entry::Record(record) if record.template == *name => {
                        keep.extend(VersionId::parse(&record.template_version));
                    }
                    Entry::Record(_) | Entry::Empty { .. } => {}
                    // It might have named any version.
                    Entry::Unreadable { .. } => return,
                }
            }
            let captured = captures.all();
            let captured = captured.iter().filter(|capture| capture.template == *name);
            keep.extend(captured.filter_map(|capture| VersionId::parse(&capture.template_version)));
            let remove = || self.deps.store.remove_old_versions(name, &keep);
            if let Err(error) = self.deps.effects.around(Effect::TemplateRemove, remove) {
                tracing::warn!(template = %name, error = %error_chain(&error), "cannot remove old bakes");
            }
        }
    }
}

impl TemplateSource for Baker {
    fn reports(&self) -> Vec<TemplateReport> {
        self.templates.reports()
    }

    fn all_ready(&self) -> Vec<Arc<ReadyTemplate>> {
        self.templates.all_ready()
    }

    fn ready(&self, name: &TemplateName) -> Result<Arc<ReadyTemplate>, TemplateUnavailable> {
        let current = self.templates.current(name);
        current.ok_or_else(|| self.templates.unavailable(name))
    }

    fn order(&self, name: &TemplateName) -> Result<(), TemplateUnavailable> {
        self.templates.order(name)
    }

    fn version(
        &self,
        name: &TemplateName,
        version: &str,
    ) -> Result<Arc<ReadyTemplate>, TemplateUnavailable> {
        let current = self.templates.current(name);
        if let Some(current) = current.filter(|current| current.version == version) {
            return Ok(current);
        }
        let real = self.templates.real_name(name);
        let template = self.open_old_version(real, version).map_err(|reason| {
            TemplateUnavailable::Version {
                name: name.as_str().to_owned(),
                version: version.to_owned(),
                reason,
            }
        })?;
        Ok(Arc::new(ready_template(&template)))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.templates.changes()
    }
}
