//! The templates of this node: opens those that are baked and still fit, and bakes others when
//! somebody asks for them, one after the other.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use dayfly_node_api::{TemplateReport, VariantReport, VariantRequest};
use dayfly_snapshots::{
    BakedTemplate, CaptureStore, ImageParts, ImageRecipe, OrderedTemplates, RecipeCatalog,
    ResolvedRecipe, TemplateDisk, Verifier, VersionId,
};
use dayfly_types::ordered_template::is_ordered_name;
use dayfly_types::{OrderedTemplate, TemplateName};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::bake::{BakeDeps, agent_hash, fingerprint, host_fingerprint};
use crate::capacity::Ledger;
use crate::disk_lane::off_runtime;
use crate::effects::Effect;
use crate::engine_users::{EngineUser, captured_users, running_users, template_users};
use crate::error_chain;
use crate::journal::{Entry, Journal};
use crate::template_forgotten::Forgotten;
use crate::template_known::{bootable_template, ready_template};
use crate::template_list::TemplateList;
use crate::templates::{
    BakeWish, BootableTemplate, ReadyTemplate, TakeOrderError, TemplateSource, TemplateUnavailable,
};

/// Before memory that was missing for a bake is looked for again.
const MEMORY_PAUSE: Duration = Duration::from_secs(5);
/// Before it is looked again for what can be removed, when something could not be read.
const LOOK_PAUSE: Duration = Duration::from_secs(60);

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
    /// Where the operator's recipes are; they are read again for each bake.
    pub recipes: Option<PathBuf>,
    /// What was ordered over the API.
    pub ordered: OrderedTemplates,
    /// Baked without being asked for.
    pub at_start: BTreeSet<TemplateName>,
}

/// What a bake that became old may still be needed for.
#[derive(Debug)]
pub struct BakeUsers {
    pub journal: Journal,
    pub captures: Arc<CaptureStore>,
    /// The memory that a bake for a project needs is promised there.
    pub ledger: Arc<Ledger>,
    pub builds: Arc<dyn KeptBuilds>,
}

/// The builds of the engine that this host keeps beside the installed one.
pub trait KeptBuilds: Send + Sync + std::fmt::Debug + 'static {
    /// Removes those that none of `users` needs. May block.
    fn remove_unneeded(&self, users: &[EngineUser]);
}

/// The source of a real node's templates.
pub struct Baker {
    deps: BakeDeps,
    /// As they were read last. Held while they are read, so that what was read later holds.
    catalog: Mutex<Arc<RecipeCatalog>>,
    recipes: Option<PathBuf>,
    ordered: OrderedTemplates,
    forgotten: Forgotten,
    at_start: BTreeSet<TemplateName>,
    templates: TemplateList,
    /// Every bake that this process has given anybody. Who got one may not have written it down yet.
    lent: Mutex<HashSet<(TemplateName, String)>>,
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
            catalog: Mutex::new(Arc::new(plan.catalog)),
            recipes: plan.recipes,
            ordered: plan.ordered,
            forgotten: Forgotten::default(),
            at_start: plan.at_start,
            lent: Mutex::default(),
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
        let catalog = self.catalog();
        for (name, recipe) in in_order_of_opening(&catalog, &self.at_start) {
            if stop.is_cancelled() {
                return;
            }
            if !self.open(name, recipe).await && recipe.is_some() {
                self.templates.note_missing(name);
            }
        }
        self.open_variants(&catalog, &stop).await;
        while !stop.is_cancelled() {
            let is_short = self.bake_line(&users, &stop).await;
            let (baker, here) = (Arc::clone(&self), Arc::clone(&users));
            let is_over = is_short || off_runtime(move || baker.remove_unused(&here)).await;
            let pause = if is_short { MEMORY_PAUSE } else { LOOK_PAUSE };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.templates.wait_for_order() => {}
                () = self.forgotten.one_is_due(), if is_over && !is_short => {}
                () = tokio::time::sleep(pause), if !is_over || is_short => {}
            }
        }
    }

    fn catalog(&self) -> Arc<RecipeCatalog> {
        let catalog = self.catalog.lock();
        Arc::clone(&catalog.unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the recipes as they are written now. Those that cannot be read hold on as they were.
    /// Blocks.
    fn read_recipes(&self) -> Arc<RecipeCatalog> {
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        match RecipeCatalog::load_with_orders(self.recipes.as_deref(), &self.ordered) {
            Ok(read) => {
                self.templates.learn(&read);
                *catalog = Arc::new(read);
            }
            Err(error) => {
                let error = error_chain(&error);
                tracing::error!(error, "cannot read the recipes; those of before hold on");
            }
        }
        Arc::clone(&catalog)
    }

    /// Opens a baked template that fits this host and whose bytes are what was published: that of
    /// its recipe, or else the newest, which is better than none.
    async fn open(self: &Arc<Self>, name: &TemplateName, recipe: Option<&ResolvedRecipe>) -> bool {
        let (baker, wanted, by) = (Arc::clone(self), name.clone(), recipe.cloned());
        let open = move || baker.open_verified(&wanted, by.as_ref());
        match tokio::task::spawn_blocking(open).await {
            Ok(Some(template)) => {
                self.lend(name, template.version());
                self.templates.note_opened(&template, recipe);
                self.tell(self.templates.report(name));
                true
            }
            Ok(None) => false,
            Err(error) => {
                tracing::error!(%error, "cannot open a template");
                false
            }
        }
    }

    fn open_verified(
        &self,
        name: &TemplateName,
        recipe: Option<&ResolvedRecipe>,
    ) -> Option<BakedTemplate> {
        let hash = match agent_hash(&self.deps.agent_program) {
            Ok(hash) => hash,
            Err(error) => {
                tracing::error!(%error, "cannot read the guest agent's program");
                return None;
            }
        };
        let (store, capabilities) = (&self.deps.store, self.deps.engine.capabilities());
        let current = recipe.map(|recipe| {
            let wanted = fingerprint(capabilities, recipe, &hash);
            store.open_current(name, &wanted)
        });
        let opened = match current {
            Some(Ok(None)) | None => {
                store.open_usable(name, &host_fingerprint(capabilities, &hash))
            }
            Some(found) => found,
        };
        let template = match opened {
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

    /// Keeps a bake for as long as this process lives.
    fn lend(&self, name: &TemplateName, version: &VersionId) {
        let version = version.as_str().to_owned();
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        lent.insert((name.clone(), version));
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
        self.verifier
            .verify(&template)
            .map_err(|error| error_chain(&error))?;
        Ok(template)
    }

    fn open_disk(&self, name: &TemplateName, version: &str) -> Result<TemplateDisk, String> {
        let id = VersionId::parse(version).ok_or("it has no such version")?;
        let opened = self.deps.store.open_disk(name, &id);
        let disk = opened.map_err(|error| error_chain(&error))?;
        let verified = self.verifier.verify_disk(&disk);
        verified.map_err(|error| error_chain(&error))?;
        Ok(disk)
    }

    fn lent_versions(&self, name: &TemplateName) -> HashSet<VersionId> {
        let lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        let versions = lent.iter().filter(|(lent, _)| lent == name);
        versions
            .filter_map(|(_, version)| VersionId::parse(version))
            .collect()
    }

    /// Removes bakes that nothing uses: neither one that this process has given anybody, those in
    /// use among them, nor one that a sandbox of the journal or a capture was made from. Says whether
    /// it could look.
    fn remove_unused(&self, users: &BakeUsers) -> bool {
        let Ok(entries) = users.journal.entries() else {
            return false;
        };
        let captures = &users.captures;
        // A capture or a record that cannot be read might have named any version.
        let is_unreadable = |entry: &Entry| matches!(entry, Entry::Unreadable { .. });
        if !captures.damaged().is_empty() || entries.iter().any(is_unreadable) {
            return false;
        }
        let ready = self.templates.all_ready();
        let names: BTreeSet<&TemplateName> = ready.iter().map(|one| &one.name).collect();
        for name in names {
            let mut keep = self.needed_versions(name, users, &entries);
            let current = ready.iter().filter(|one| one.name == *name);
            keep.extend(current.filter_map(|one| VersionId::parse(&one.version)));
            // Without a current version any of them may be the one to go back to.
            if self.templates.current(name).is_some() {
                self.remove_all_but(name, &keep);
            }
        }
        self.remove_variants_of_nothing(users, &entries);
        self.remove_forgotten(users, &entries);
        self.remove_builds(users, &entries);
        true
    }

    /// Removes what is left of ordered templates that were given up: bakes that nothing was made
    /// from, and disks that no recipe needs.
    fn remove_forgotten(&self, users: &BakeUsers, entries: &[Entry]) {
        let is_unreadable = |entry: &Entry| matches!(entry, Entry::Unreadable { .. });
        if entries.iter().any(is_unreadable) {
            return;
        }
        let catalog = self.catalog();
        let names = self.deps.store.names().unwrap_or_default();
        let gone = names.iter().filter(|name| {
            let is_known = catalog.get(name).is_some() || self.templates.state(name).is_some();
            is_ordered_name(name) && !is_known && self.forgotten.is_due(name)
        });
        for name in gone {
            // Whoever was given one has written it down by now.
            self.take_back(name);
            self.remove_all_but(name, &self.needed_versions(name, users, entries));
        }
        self.forgotten.drop_due();
        // A recipe that cannot be read may need any of them.
        if catalog.wrong().next().is_none() {
            let needed: Vec<&ImageRecipe> = catalog.iter().map(|one| &one.image).collect();
            let remove = || self.deps.images.remove_unneeded(&needed);
            self.deps.effects.around(Effect::TemplateRemove, remove);
        }
    }

    /// Does not keep what it has lent of a template any more.
    fn take_back(&self, name: &TemplateName) {
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        lent.retain(|(of, _)| of != name);
    }

    /// Versions that somebody here was given, or that a sandbox or a capture was made from.
    fn needed_versions(
        &self,
        name: &TemplateName,
        users: &BakeUsers,
        entries: &[Entry],
    ) -> HashSet<VersionId> {
        let mut needed = self.lent_versions(name);
        for entry in entries {
            match entry {
                Entry::Record(record) if record.template == *name => {
                    needed.extend(VersionId::parse(&record.template_version));
                }
                Entry::Record(_) | Entry::Empty { .. } | Entry::Unreadable { .. } => {}
            }
        }
        let captured = users.captures.all();
        let captured = captured.iter().filter(|capture| capture.template == *name);
        needed.extend(captured.filter_map(|capture| VersionId::parse(&capture.template_version)));
        needed
    }

    fn remove_all_but(&self, name: &TemplateName, keep: &HashSet<VersionId>) {
        let remove = || self.deps.store.remove_old_versions(name, keep);
        if let Err(error) = self.deps.effects.around(Effect::TemplateRemove, remove) {
            tracing::warn!(template = %name, error = %error_chain(&error), "cannot remove old bakes");
        }
    }

    /// Removes builds of the engine that nothing could be restored with. When somebody's need
    /// cannot be told, all of them stay.
    fn remove_builds(&self, users: &BakeUsers, entries: &[Entry]) {
        let (Ok(running), Ok(baked)) = (running_users(entries), template_users(&self.deps.store))
        else {
            return;
        };
        let captures = users.captures.all();
        let captured = captured_users(captures.iter().map(Arc::as_ref));
        let all: Vec<EngineUser> = running.into_iter().chain(captured).chain(baked).collect();
        users.builds.remove_unneeded(&all);
    }
}

#[path = "baker_line.rs"]
mod line;
#[path = "baker_variants.rs"]
mod variants;

/// Templates, each with its recipe if that can be used. Those of the start first, and small ones
/// before large ones: reading their bytes, or baking them, takes a while, and somebody may wait.
fn in_order_of_opening<'a>(
    catalog: &'a RecipeCatalog,
    at_start: &BTreeSet<TemplateName>,
) -> Vec<(&'a TemplateName, Option<&'a ResolvedRecipe>)> {
    let mut recipes: Vec<&ResolvedRecipe> = catalog.iter().collect();
    recipes.sort_by_key(|one| {
        let is_late = !at_start.contains(&one.recipe.name);
        (is_late, one.recipe.memory.get())
    });
    let right = recipes.into_iter().map(|one| (&one.recipe.name, Some(one)));
    let wrong = catalog.wrong().map(|(name, _)| (name, None));
    right.chain(wrong).collect()
}

impl TemplateSource for Baker {
    fn reports(&self) -> Vec<TemplateReport> {
        self.templates.reports()
    }

    fn report(&self, name: &TemplateName) -> Option<TemplateReport> {
        self.templates.report(name)
    }

    fn all_ready(&self) -> Vec<Arc<ReadyTemplate>> {
        self.templates.all_ready()
    }

    fn ready(&self, name: &TemplateName) -> Result<Arc<ReadyTemplate>, TemplateUnavailable> {
        let current = self.templates.current(name);
        current.ok_or_else(|| self.templates.unavailable(name))
    }

    fn order(&self, name: &TemplateName, wish: BakeWish) -> Result<(), TemplateUnavailable> {
        if wish == BakeWish::Renew || self.templates.current(name).is_none() {
            self.read_recipes();
        }
        self.templates.order(name, wish)
    }

    fn take_order(&self, wanted: &OrderedTemplate) -> Result<(), TakeOrderError> {
        let name = &wanted.name;
        if !is_ordered_name(name) {
            return Err(TakeOrderError::Name { name: name.clone() });
        }
        let keep = || self.ordered.keep(wanted);
        let kept = self.deps.effects.around(Effect::TemplateOrder, keep);
        kept.map_err(TakeOrderError::Order)?;
        self.forgotten.remember(name);
        self.read_recipes();
        let ordered = self.templates.order(name, BakeWish::IfMissing);
        ordered.map_err(TakeOrderError::Unavailable)
    }

    fn give_up_order(&self, name: &TemplateName) -> Result<(), TakeOrderError> {
        if !is_ordered_name(name) {
            return Err(TakeOrderError::Name { name: name.clone() });
        }
        let drop_order = || self.ordered.drop_order(name);
        let dropped = self.deps.effects.around(Effect::TemplateOrder, drop_order);
        dropped.map_err(TakeOrderError::Remove)?;
        self.read_recipes();
        self.templates.forget(name);
        self.forgotten.add(name);
        Ok(())
    }

    fn ready_in(
        &self,
        name: &TemplateName,
        wanted: &VariantRequest,
    ) -> Result<Arc<ReadyTemplate>, TemplateUnavailable> {
        self.ready_variant(name, wanted)
    }

    fn order_variant(
        &self,
        name: &TemplateName,
        wanted: &VariantRequest,
    ) -> Result<VariantReport, TemplateUnavailable> {
        self.order_anew(name, wanted)
    }

    fn is_parked_ahead(&self, template: &ReadyTemplate) -> bool {
        let current = || self.templates.current(&template.name);
        self.at_start.contains(&template.name)
            && current().is_some_and(|current| current.version == template.version)
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
        // A name that stands for another template now may have been one of its own.
        let opened = self.open_old_version(name, version).or_else(|reason| {
            let real = self.templates.real_name(name);
            if real == *name {
                return Err(reason);
            }
            self.open_old_version(&real, version)
        });
        let template = opened.map_err(|reason| TemplateUnavailable::Version {
            name: name.as_str().to_owned(),
            version: version.to_owned(),
            reason,
        })?;
        self.lend(&template.manifest().name, template.version());
        Ok(Arc::new(ready_template(&template)))
    }

    fn disk_of(
        &self,
        name: &TemplateName,
        version: &str,
    ) -> Result<BootableTemplate, TemplateUnavailable> {
        let opened = self.open_disk(name, version);
        let disk = opened.map_err(|reason| TemplateUnavailable::Version {
            name: name.as_str().to_owned(),
            version: version.to_owned(),
            reason,
        })?;
        self.lend(name, disk.version());
        Ok(bootable_template(&disk))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.templates.changes()
    }
}
