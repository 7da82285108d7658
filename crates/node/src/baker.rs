//! The templates of this node: opens those that are baked and still fit, bakes the others in the
//! background, one after the other.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dayfly_node_api::{BakeState, TemplateReport};
use dayfly_snapshots::{
    CaptureStore, ImageParts, ProgressReporter, ResolvedRecipe, Template, Verifier, VersionId,
};
use dayfly_types::TemplateName;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::bake::{BakeDeps, agent_hash, bake_template, engine_identity, fingerprint};
use crate::error_chain;
use crate::journal::{Entry, Journal};
use crate::templates::{ReadyTemplate, TemplateSource, TemplateUnavailable};

/// Told of every change, for a display.
pub type BakeListener = Arc<dyn Fn(&TemplateReport) + Send + Sync>;

/// Asked once an image is there and before its first boot.
#[async_trait]
pub trait BeforeFirstBoot: Send + Sync + std::fmt::Debug + 'static {
    /// The kernel of the image can now be booted for a probe.
    async fn image_is_there(&self, parts: &ImageParts);
}

/// The source of a real node's templates.
pub struct Baker {
    deps: BakeDeps,
    recipes: Vec<ResolvedRecipe>,
    entries: Mutex<BTreeMap<TemplateName, Known>>,
    changes: watch::Sender<u64>,
    verifier: Verifier,
    listener: BakeListener,
    before_first_boot: Arc<dyn BeforeFirstBoot>,
}

#[derive(Debug)]
struct Known {
    report: TemplateReport,
    ready: Option<Arc<ReadyTemplate>>,
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
        recipes: Vec<ResolvedRecipe>,
        listener: BakeListener,
        before_first_boot: Arc<dyn BeforeFirstBoot>,
    ) -> Arc<Self> {
        let entries = recipes.iter().map(|recipe| {
            let report = waiting_report(recipe);
            (
                report.name.clone(),
                Known {
                    report,
                    ready: None,
                },
            )
        });
        Arc::new(Self {
            entries: Mutex::new(entries.collect()),
            deps,
            recipes,
            changes: watch::Sender::new(0),
            verifier: Verifier::new(),
            listener,
            before_first_boot,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TemplateName, Known>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings every template up, those that are baked already first.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        if let Err(error) = self.deps.store.sweep() {
            tracing::warn!(error = %error_chain(&error), "cannot sweep unfinished bakes");
        }
        let mut missing = Vec::new();
        for recipe in &self.recipes {
            if !self.open(recipe).await {
                missing.push(recipe.clone());
            }
        }
        for recipe in missing {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.bake(&recipe) => {}
            }
        }
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

    fn open_verified(&self, recipe: &ResolvedRecipe) -> Option<Template> {
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

    fn ready(&self, template: &Template) {
        let manifest = template.manifest();
        let name = manifest.name.clone();
        let ready = ready_template(template);
        if let Some(entry) = self.lock().get_mut(&name) {
            entry.ready = Some(Arc::new(ready));
            entry.report.size_bytes = manifest.files.iter().map(|file| file.bytes).sum();
            entry.report.baked_at = Some(manifest.created_at.unix_timestamp());
        }
        self.set_state(&name, BakeState::Ready);
        self.changes.send_modify(|count| *count += 1);
    }

    fn set_state(&self, name: &TemplateName, state: BakeState) {
        let report = {
            let mut entries = self.lock();
            let Some(entry) = entries.get_mut(name) else {
                return;
            };
            entry.report.state = state;
            entry.report.clone()
        };
        (self.listener)(&report);
    }

    fn open_old_version(&self, name: &TemplateName, version: &str) -> Result<Template, String> {
        let id = VersionId::parse(version).ok_or("it has no such version")?;
        let template = self
            .deps
            .store
            .open_version(name, &id)
            .map_err(|error| error_chain(&error))?;
        let capabilities = self.deps.engine.capabilities();
        template
            .manifest()
            .engine_fits(&engine_identity(capabilities))
            .map_err(|mismatch| mismatch.to_string())?;
        self.verifier
            .verify(&template)
            .map_err(|error| error_chain(&error))?;
        Ok(template)
    }

    /// Removes bakes that nothing uses: neither the newest of a template nor one that a sandbox
    /// of the journal or a capture was made from.
    pub fn remove_unused(&self, journal: &Journal, captures: &CaptureStore) {
        let Ok(entries) = journal.entries() else {
            return;
        };
        // A capture that cannot be read might have named any version.
        if !captures.damaged().is_empty() {
            return;
        }
        for recipe in &self.recipes {
            let name = &recipe.recipe.name;
            let current = self.lock().get(name).and_then(|entry| entry.ready.clone());
            // Without a current version any of them may be the one to go back to.
            let Some(current) = current else { continue };
            let mut keep: HashSet<VersionId> =
                VersionId::parse(&current.version).into_iter().collect();
            for entry in &entries {
                match entry {
                    Entry::Record(record) if record.template == *name => {
                        keep.extend(VersionId::parse(&record.template_version));
                    }
                    Entry::Record(_) => {}
                    // It might have named any version.
                    Entry::Unreadable { .. } => return,
                }
            }
            let captured = captures.all();
            let captured = captured.iter().filter(|capture| capture.template == *name);
            keep.extend(captured.filter_map(|capture| VersionId::parse(&capture.template_version)));
            if let Err(error) = self.deps.store.remove_old_versions(name, &keep) {
                tracing::warn!(template = %name, error = %error_chain(&error), "cannot remove old bakes");
            }
        }
    }
}

impl TemplateSource for Baker {
    fn reports(&self) -> Vec<TemplateReport> {
        self.lock()
            .values()
            .map(|entry| entry.report.clone())
            .collect()
    }

    fn all_ready(&self) -> Vec<Arc<ReadyTemplate>> {
        self.lock()
            .values()
            .filter_map(|entry| entry.ready.clone())
            .collect()
    }

    fn ready(&self, name: &TemplateName) -> Result<Arc<ReadyTemplate>, TemplateUnavailable> {
        let entries = self.lock();
        let Some(entry) = entries.get(name) else {
            let known: Vec<&str> = entries.keys().map(TemplateName::as_str).collect();
            return Err(TemplateUnavailable::Unknown {
                name: name.as_str().to_owned(),
                known: known.join(", "),
            });
        };
        if let Some(ready) = &entry.ready {
            return Ok(Arc::clone(ready));
        }
        let name = name.as_str().to_owned();
        Err(match &entry.report.state {
            BakeState::Baking { percent, step } => TemplateUnavailable::Baking {
                name,
                percent: *percent,
                step: step.clone(),
            },
            BakeState::Failed { reason } => TemplateUnavailable::Failed {
                name,
                reason: reason.clone(),
            },
            BakeState::Waiting | BakeState::Ready => TemplateUnavailable::Baking {
                name,
                percent: 0,
                step: "waiting".to_owned(),
            },
        })
    }

    fn version(
        &self,
        name: &TemplateName,
        version: &str,
    ) -> Result<Arc<ReadyTemplate>, TemplateUnavailable> {
        let current = self.lock().get(name).and_then(|entry| entry.ready.clone());
        if let Some(current) = current.filter(|current| current.version == version) {
            return Ok(current);
        }
        let template = self.open_old_version(name, version).map_err(|reason| {
            TemplateUnavailable::Version {
                name: name.as_str().to_owned(),
                version: version.to_owned(),
                reason,
            }
        })?;
        Ok(Arc::new(ready_template(&template)))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

fn ready_template(template: &Template) -> ReadyTemplate {
    ReadyTemplate {
        name: template.manifest().name.clone(),
        version: template.version().as_str().to_owned(),
        restore: template.restore_spec(),
    }
}

fn waiting_report(recipe: &ResolvedRecipe) -> TemplateReport {
    let recipe = &recipe.recipe;
    TemplateReport {
        name: recipe.name.clone(),
        description: recipe.description.clone(),
        memory: recipe.memory,
        vcpus: recipe.vcpus,
        disk_mib: recipe.disk.into(),
        state: BakeState::Waiting,
        size_bytes: 0,
        baked_at: None,
    }
}
