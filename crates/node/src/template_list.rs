//! What a node knows of its templates: which there are, what state each is in, and what was asked
//! for.
//!
//! ```text
//! waiting (is it on the disk?) --> ready <-----------------.
//!        |                           | asked for anew       |
//!        v           order           v                      |
//!    not_baked ----------------> waiting --> baking --------+--> failed
//! ```
//! The state is that of the last bake. Whether sandboxes can be made is another matter: a template
//! that was baked once goes on being used until another bake of it is there (`is_usable`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_node_api::{BakeState, TemplateReport};
use dayfly_snapshots::{Alias, BakedTemplate, RecipeCatalog, ResolvedRecipe, WrongRecipe};
use dayfly_types::TemplateName;
use tokio::sync::{Notify, watch};

use crate::template_known::{Asked, Known};
use crate::template_line::TemplateLine;
use crate::template_reports::reason_of;
use crate::template_target::BakeTarget;
use crate::templates::{BakeWish, ReadyTemplate, TemplateUnavailable};

/// The templates of a node and their further names.
#[derive(Debug)]
pub(crate) struct TemplateList {
    entries: Mutex<Entries>,
    ordered: Notify,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Entries {
    known: BTreeMap<BakeTarget, Known>,
    aliases: BTreeMap<TemplateName, Alias>,
    /// To be baked, one after the other.
    orders: TemplateLine,
}

impl TemplateList {
    /// All templates of a catalog, none of which has been looked for yet.
    pub(crate) fn new(catalog: &RecipeCatalog, wanted: &BTreeSet<TemplateName>) -> Self {
        let mut entries = Entries::default();
        entries.learn(catalog, &BakeState::Waiting);
        for (target, known) in &mut entries.known {
            known.is_wanted = wanted.contains(&target.name);
        }
        Self {
            entries: Mutex::new(entries),
            ordered: Notify::new(),
            changes: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what recipes say now. What is baked stays as it is until somebody asks for it anew.
    pub(crate) fn learn(&self, catalog: &RecipeCatalog) {
        self.lock().learn(catalog, &BakeState::NotBaked);
        self.changes.send_modify(|count| *count += 1);
    }

    /// The name under which a template is baked.
    pub(crate) fn real_name(&self, name: &TemplateName) -> TemplateName {
        self.lock().real_name(name).clone()
    }

    /// A template that was looked for is not on the disk, or not as this node needs it.
    pub(crate) fn note_missing(&self, name: &TemplateName) {
        self.change(&BakeTarget::own(name), Known::is_missing);
    }

    /// A bake that was looked for is on the disk. One of another recipe is used, and then baked anew.
    pub(crate) fn note_opened(&self, template: &BakedTemplate, recipe: Option<&ResolvedRecipe>) {
        self.set_baked(template, recipe);
        let target = BakeTarget::of(template.manifest());
        if target.size.is_none() {
            self.change(&target, Known::renew_if_outdated);
        }
    }

    /// Asks for a bake. One that is there, under way or asked for already is left as it is; one that
    /// failed is tried again.
    pub(crate) fn order(
        &self,
        name: &TemplateName,
        wish: BakeWish,
    ) -> Result<(), TemplateUnavailable> {
        let real = BakeTarget::own(&self.real_name(name));
        match self.change(&real, |known| known.ask(wish)) {
            Some(Asked::ToBeBaked | Asked::Nothing) => Ok(()),
            Some(Asked::Refused { reason }) => Err(TemplateUnavailable::Failed {
                name: name.to_string(),
                reason,
            }),
            None => Err(self.lock().unknown(name)),
        }
    }

    /// Does something to a template, and puts it into the line if that follows.
    fn change(
        &self,
        target: &BakeTarget,
        change: impl FnOnce(&mut Known) -> Asked,
    ) -> Option<Asked> {
        let mut entries = self.lock();
        let asked = change(entries.known.get_mut(target)?);
        self.follow(&mut entries, target, &asked);
        Some(asked)
    }

    fn follow(&self, entries: &mut Entries, target: &BakeTarget, asked: &Asked) {
        if *asked == Asked::ToBeBaked {
            let known = entries.known.get(target);
            let project = known.and_then(|known| known.whose().cloned());
            entries.orders.push(target.clone(), project);
            self.ordered.notify_one();
        }
    }

    /// Nobody can ask for it any more, whatever there is of it.
    pub(crate) fn forget(&self, name: &TemplateName) {
        let mut entries = self.lock();
        // In every size.
        entries.known.retain(|target, _| target.name != *name);
        entries.orders.forget(name);
        drop(entries);
        self.changes.send_modify(|count| *count += 1);
    }

    /// The next template to bake but for `passed`, if any.
    pub(crate) fn take_order(&self, passed: &BTreeSet<BakeTarget>) -> Option<BakeTarget> {
        let mut entries = self.lock();
        let target = entries.orders.take(passed)?;
        if let Some(known) = entries.known.get_mut(&target) {
            known.leave_line();
        }
        Some(target)
    }

    /// Puts one back that cannot be baked now, and wakes nobody.
    pub(crate) fn put_back(&self, target: &BakeTarget) {
        let mut entries = self.lock();
        let known = entries.known.get_mut(target);
        if let Some(known) = known.filter(|known| !known.is_in_line()) {
            known.come_back_into_line();
            let project = known.whose().cloned();
            entries.orders.push(target.clone(), project);
        }
    }

    /// Waits until nobody wants a template any more: it was forgotten.
    pub(crate) async fn is_gone(&self, target: &BakeTarget) {
        let mut changes = self.changes.subscribe();
        while self.lock().known.contains_key(target) {
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Waits until something was ordered. An order before the call counts.
    pub(crate) async fn wait_for_order(&self) {
        self.ordered.notified().await;
    }

    /// Whether this recipe has to be baked; from then on it is being baked.
    pub(crate) fn begin(&self, target: &BakeTarget, recipe: &ResolvedRecipe) -> bool {
        let mut entries = self.lock();
        let known = entries.known.get_mut(target);
        known.is_some_and(|known| known.begin(recipe.hash()))
    }

    pub(crate) fn set_baked(
        &self,
        template: &BakedTemplate,
        recipe: Option<&ResolvedRecipe>,
    ) -> Option<TemplateReport> {
        let target = BakeTarget::of(template.manifest());
        let report = self.report_after(&target, |known| known.baked(template, recipe));
        if target.size.is_none() {
            let hash = &template.manifest().recipe.hash;
            self.lock().forget_outdated_variants(&target.name, hash);
        }
        self.changes.send_modify(|count| *count += 1);
        report
    }

    pub(crate) fn set_progress(
        &self,
        target: &BakeTarget,
        state: BakeState,
    ) -> Option<TemplateReport> {
        self.report_after(target, |known| known.progress(state))
    }

    pub(crate) fn set_failed(&self, target: &BakeTarget, reason: String) -> Option<TemplateReport> {
        self.report_after(target, |known| known.failed(reason))
    }

    /// Changes one, and says what is told of it then. Of a variant nothing is told: the report is
    /// that of a template.
    fn report_after(
        &self,
        target: &BakeTarget,
        change: impl FnOnce(&mut Known),
    ) -> Option<TemplateReport> {
        let mut entries = self.lock();
        let known = entries.known.get_mut(target)?;
        change(known);
        target.size.is_none().then(|| known.report())
    }

    /// The template in its own size.
    pub(crate) fn current(&self, name: &TemplateName) -> Option<Arc<ReadyTemplate>> {
        self.lock().find(name)?.current()
    }

    pub(crate) fn all_ready(&self) -> Vec<Arc<ReadyTemplate>> {
        let entries = self.lock();
        entries.known.values().filter_map(Known::current).collect()
    }

    /// Why a template is not ready. One that nobody has asked for is asked for by this.
    pub(crate) fn unavailable(&self, name: &TemplateName) -> TemplateUnavailable {
        if let Some(BakeState::Failed { reason }) = self.state(name) {
            return TemplateUnavailable::Failed {
                name: name.to_string(),
                reason,
            };
        }
        if let Err(error) = self.order(name, BakeWish::IfMissing) {
            return error;
        }
        let (percent, step) = match self.state(name) {
            Some(BakeState::Baking { percent, step }) => (percent, step),
            _ => (0, "waiting".to_owned()),
        };
        TemplateUnavailable::Baking {
            name: name.to_string(),
            percent,
            step,
        }
    }

    pub(crate) fn state(&self, name: &TemplateName) -> Option<BakeState> {
        Some(self.lock().find(name)?.state().clone())
    }

    /// All templates, and then their further names. Without what their images say of themselves: a
    /// project decides how long that is, and a list goes to everybody.
    pub(crate) fn reports(&self) -> Vec<TemplateReport> {
        let entries = self.lock();
        let own = entries.known.keys().filter(|target| target.size.is_none());
        let own = own.filter_map(|target| entries.report(&target.name));
        let aliases = entries.aliases.values();
        let aliases = aliases.filter_map(|alias| entries.report_as(alias));
        let short = |report| TemplateReport {
            image: None,
            ..report
        };
        own.chain(aliases).map(short).collect()
    }

    /// All that is told of one, under any of its names.
    pub(crate) fn report(&self, name: &TemplateName) -> Option<TemplateReport> {
        let entries = self.lock();
        match entries.aliases.get(name) {
            Some(alias) => entries.report_as(alias),
            None => entries.report(name),
        }
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Entries {
    fn real_name<'a>(&'a self, name: &'a TemplateName) -> &'a TemplateName {
        self.aliases.get(name).map_or(name, |alias| &alias.of)
    }

    fn report_as(&self, alias: &Alias) -> Option<TemplateReport> {
        Some(TemplateReport {
            name: alias.name.clone(),
            description: alias.description.clone(),
            alias_of: Some(alias.of.clone()),
            ..self.report(&alias.of)?
        })
    }

    fn find(&self, name: &TemplateName) -> Option<&Known> {
        self.known.get(&BakeTarget::own(self.real_name(name)))
    }

    fn learn(&mut self, catalog: &RecipeCatalog, fresh: &BakeState) {
        for recipe in catalog.iter() {
            let own = BakeTarget::own(&recipe.recipe.name);
            match self.known.get_mut(&own) {
                Some(known) => known.learn(recipe, fresh.clone()),
                None => {
                    let known = Known::of_recipe(recipe, fresh.clone());
                    self.known.insert(own, known);
                }
            }
        }
        self.aliases = aliases_of(catalog);
        self.learn_variants(catalog);
        for (name, error) in catalog.wrong() {
            if !self.aliases.contains_key(name) {
                self.learn_wrong(name, &reason_of(error));
            }
        }
        self.forget_what_is_gone(catalog);
    }

    fn learn_wrong(&mut self, name: &TemplateName, reason: &str) {
        let own = BakeTarget::own(name);
        let is_news = match self.known.get_mut(&own) {
            Some(known) => known.learn_wrong(reason.to_owned()),
            None => {
                let known = Known::wrong(name, reason.to_owned());
                self.known.extend(known.map(|known| (own, known)));
                true
            }
        };
        if is_news {
            tracing::error!(template = %name, reason, "a recipe cannot be used");
        }
    }

    /// A name without a recipe stays only while there is a bake to use.
    fn forget_what_is_gone(&mut self, catalog: &RecipeCatalog) {
        let is_wrong = |name: &TemplateName| catalog.wrong().any(|(wrong, _)| wrong == name);
        let aliases = &self.aliases;
        self.known.retain(|target, known| {
            let name = &target.name;
            if target.size.is_some() {
                return true;
            }
            if aliases.contains_key(name) {
                return false;
            }
            if catalog.get(name).is_some() || is_wrong(name) {
                return true;
            }
            known.learn_wrong("its recipe was removed".to_owned());
            !known.is_idle()
        });
    }

    fn unknown(&self, name: &TemplateName) -> TemplateUnavailable {
        let own = self.known.keys().filter(|target| target.size.is_none());
        let known = own.map(|target| &target.name).chain(self.aliases.keys());
        let known: Vec<&str> = known.map(TemplateName::as_str).collect();
        TemplateUnavailable::Unknown {
            name: name.to_string(),
            known: known.join(", "),
        }
    }
}

/// The further names, also of templates whose recipe is wrong: those may be baked.
fn aliases_of(catalog: &RecipeCatalog) -> BTreeMap<TemplateName, Alias> {
    let right = catalog.aliases().cloned();
    let wrong = catalog.wrong().filter_map(|(name, error)| {
        let WrongRecipe::AliasOfNothing { of } = error else {
            return None;
        };
        let is_known = catalog.wrong().any(|(wrong, error)| {
            wrong == of && !matches!(error, WrongRecipe::AliasOfNothing { .. })
        });
        is_known.then(|| Alias {
            name: name.clone(),
            description: String::new(),
            of: of.clone(),
        })
    });
    let aliases = right.chain(wrong);
    aliases.map(|alias| (alias.name.clone(), alias)).collect()
}

#[path = "template_list_variants.rs"]
mod variants;

#[cfg(test)]
#[path = "template_list_tests.rs"]
mod tests;
