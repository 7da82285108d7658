//! What a node knows of its templates: which there are, what state each is in, and what was asked
//! for.
//!
//! ```text
//! waiting (is it on the disk?) --> ready
//!        |                           ^
//!        v           order           |
//!    not_baked ----------------> waiting --> baking --> failed
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_node_api::{BakeState, TemplateReport};
use dayfly_snapshots::{
    Alias, BakedTemplate, RecipeCatalog, RecipeError, ResolvedRecipe, WrongRecipe,
};
use dayfly_types::{InvalidSize, MemoryMib, RunMeaning, TemplateName, Vcpus, limits};
use tokio::sync::{Notify, watch};

use crate::templates::{ReadyTemplate, TemplateUnavailable};

/// The templates of a node and their further names.
#[derive(Debug)]
pub(crate) struct TemplateList {
    entries: Mutex<Entries>,
    aliases: BTreeMap<TemplateName, Alias>,
    ordered: Notify,
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct Entries {
    known: BTreeMap<TemplateName, Known>,
    /// To be baked, one after the other.
    orders: VecDeque<TemplateName>,
}

#[derive(Debug)]
struct Known {
    report: TemplateReport,
    ready: Option<Arc<ReadyTemplate>>,
    /// Somebody wants it baked if it is not on the disk.
    is_wanted: bool,
    /// Its recipe cannot be used: it has failed for good.
    is_wrong: bool,
}

impl TemplateList {
    /// All templates of a catalog, none of which has been looked for yet.
    pub(crate) fn new(catalog: &RecipeCatalog, wanted: &BTreeSet<TemplateName>) -> Self {
        let right = catalog.iter().map(|recipe| Known {
            is_wanted: wanted.contains(&recipe.recipe.name),
            report: waiting_report(recipe),
            ready: None,
            is_wrong: false,
        });
        let wrong = catalog.wrong().filter_map(|(name, error)| {
            let reason = reason_of(error);
            tracing::error!(template = %name, reason, "a recipe cannot be used");
            Some(Known {
                is_wanted: false,
                report: failed_report(name, reason).ok()?,
                ready: None,
                is_wrong: true,
            })
        });
        let known = right.chain(wrong);
        let known = known.map(|one| (one.report.name.clone(), one));
        let aliases = catalog.aliases();
        Self {
            entries: Mutex::new(Entries {
                known: known.collect(),
                orders: VecDeque::new(),
            }),
            aliases: aliases
                .map(|alias| (alias.name.clone(), alias.clone()))
                .collect(),
            ordered: Notify::new(),
            changes: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name under which a template is baked.
    pub(crate) fn real_name<'a>(&'a self, name: &'a TemplateName) -> &'a TemplateName {
        self.aliases.get(name).map_or(name, |alias| &alias.of)
    }

    /// A template that was looked for is not on the disk, or not as this node needs it.
    pub(crate) fn note_missing(&self, name: &TemplateName) {
        let mut entries = self.lock();
        let Entries { known, orders } = &mut *entries;
        let Some(entry) = known.get_mut(name) else {
            return;
        };
        if entry.is_wanted {
            orders.push_back(name.clone());
        } else {
            entry.report.state = BakeState::NotBaked;
        }
    }

    /// Asks for a bake. One that is there, under way or asked for already is left as it is; one
    /// that failed is tried again.
    pub(crate) fn order(&self, name: &TemplateName) -> Result<(), TemplateUnavailable> {
        let real = self.real_name(name);
        let mut entries = self.lock();
        let Entries { known, orders } = &mut *entries;
        let Some(entry) = known.get_mut(real) else {
            let known = known.keys().chain(self.aliases.keys());
            return Err(unknown(name, known));
        };
        entry.is_wanted = true;
        match &entry.report.state {
            BakeState::Failed { reason } if entry.is_wrong => {
                return Err(TemplateUnavailable::Failed {
                    name: name.to_string(),
                    reason: reason.clone(),
                });
            }
            BakeState::NotBaked | BakeState::Failed { .. } => {
                entry.report.state = BakeState::Waiting;
                orders.push_back(real.clone());
                self.ordered.notify_one();
            }
            BakeState::Waiting | BakeState::Baking { .. } | BakeState::Ready => {}
        }
        Ok(())
    }

    /// The next template to bake, if any.
    pub(crate) fn take_order(&self) -> Option<TemplateName> {
        self.lock().orders.pop_front()
    }

    /// Waits until something was ordered. An order before the call counts.
    pub(crate) async fn wait_for_order(&self) {
        self.ordered.notified().await;
    }

    pub(crate) fn set_ready(&self, template: &BakedTemplate) -> Option<TemplateReport> {
        let manifest = template.manifest();
        if let Some(entry) = self.lock().known.get_mut(&manifest.name) {
            entry.ready = Some(Arc::new(ready_template(template)));
            entry.report.size_bytes = template.size_bytes();
            entry.report.baked_at = Some(manifest.created_at.unix_timestamp());
        }
        let report = self.set_state(&manifest.name, BakeState::Ready);
        self.changes.send_modify(|count| *count += 1);
        report
    }

    pub(crate) fn set_state(
        &self,
        name: &TemplateName,
        state: BakeState,
    ) -> Option<TemplateReport> {
        let mut entries = self.lock();
        let entry = entries.known.get_mut(name)?;
        entry.report.state = state;
        Some(entry.report.clone())
    }

    pub(crate) fn current(&self, name: &TemplateName) -> Option<Arc<ReadyTemplate>> {
        let entries = self.lock();
        entries.known.get(self.real_name(name))?.ready.clone()
    }

    pub(crate) fn all_ready(&self) -> Vec<Arc<ReadyTemplate>> {
        let entries = self.lock();
        let known = entries.known.values();
        known.filter_map(|entry| entry.ready.clone()).collect()
    }

    /// Why a template is not ready. One that nobody has asked for is asked for by this.
    pub(crate) fn unavailable(&self, name: &TemplateName) -> TemplateUnavailable {
        if let Some(BakeState::Failed { reason }) = self.state(name) {
            return TemplateUnavailable::Failed {
                name: name.to_string(),
                reason,
            };
        }
        if let Err(error) = self.order(name) {
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

    fn state(&self, name: &TemplateName) -> Option<BakeState> {
        let entries = self.lock();
        let entry = entries.known.get(self.real_name(name))?;
        Some(entry.report.state.clone())
    }

    /// All templates, and then their further names.
    pub(crate) fn reports(&self) -> Vec<TemplateReport> {
        let entries = self.lock();
        let own = entries.known.values().map(|entry| entry.report.clone());
        let aliases = self.aliases.values().filter_map(|alias| {
            let entry = entries.known.get(&alias.of)?;
            Some(TemplateReport {
                name: alias.name.clone(),
                description: alias.description.clone(),
                alias_of: Some(alias.of.clone()),
                ..entry.report.clone()
            })
        });
        own.chain(aliases).collect()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

pub(crate) fn ready_template(template: &BakedTemplate) -> ReadyTemplate {
    ReadyTemplate {
        name: template.manifest().name.clone(),
        version: template.version().as_str().to_owned(),
        restore: template.restore_spec(),
    }
}

fn unknown<'a>(
    name: &TemplateName,
    known: impl Iterator<Item = &'a TemplateName>,
) -> TemplateUnavailable {
    let known: Vec<&str> = known.map(TemplateName::as_str).collect();
    TemplateUnavailable::Unknown {
        name: name.to_string(),
        known: known.join(", "),
    }
}

fn waiting_report(recipe: &ResolvedRecipe) -> TemplateReport {
    let recipe = &recipe.recipe;
    TemplateReport {
        name: recipe.name.clone(),
        description: recipe.description.clone(),
        alias_of: None,
        memory: recipe.memory,
        vcpus: recipe.vcpus,
        disk_mib: recipe.disk.into(),
        run: recipe.run,
        contexts: recipe.contexts.clone(),
        state: BakeState::Waiting,
        size_bytes: 0,
        baked_at: None,
    }
}

/// Without the line that was not understood: it may hold what is nobody's business.
fn reason_of(error: &WrongRecipe) -> String {
    if let WrongRecipe::Text {
        path,
        source: RecipeError::Syntax(syntax),
    } = error
    {
        let (file, what) = (path.display(), syntax.message());
        return format!("the recipe {file} is no TOML: {what}");
    }
    crate::error_chain(error)
}

/// Of a template whose recipe cannot be used. Its sizes are the smallest there are.
fn failed_report(name: &TemplateName, reason: String) -> Result<TemplateReport, InvalidSize> {
    Ok(TemplateReport {
        name: name.clone(),
        description: String::new(),
        alias_of: None,
        memory: MemoryMib::new(limits::MEMORY_MIB_MIN)?,
        vcpus: Vcpus::new(1)?,
        disk_mib: limits::DISK_MIB_MIN,
        run: RunMeaning::default(),
        contexts: Vec::new(),
        state: BakeState::Failed { reason },
        size_bytes: 0,
        baked_at: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_recipe_fails_alone_and_shows_nothing_of_itself() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("own.toml");
        std::fs::write(&file, "setup = 'export TOKEN=secret' nonsense").unwrap();
        let catalog = RecipeCatalog::load(Some(directory.path())).unwrap();
        let list = TemplateList::new(&catalog, &BTreeSet::from([name("own"), name("base")]));
        let BakeState::Failed { reason } = state_of(&list, "own") else {
            panic!("it can be baked");
        };
        assert!(reason.contains("own.toml"), "{reason}");
        let place = directory.path().display().to_string();
        assert!(
            !reason.contains("secret") && !reason.contains(&place),
            "{reason}"
        );
        assert_eq!(state_of(&list, "base"), BakeState::Waiting);
        assert!(matches!(
            list.order(&name("own")),
            Err(TemplateUnavailable::Failed { .. })
        ));
        assert_eq!(list.take_order(), None);
    }

    fn name(text: &str) -> TemplateName {
        TemplateName::parse(text).unwrap()
    }

    fn list(wanted: &[&str]) -> TemplateList {
        let catalog = RecipeCatalog::load(None).unwrap();
        TemplateList::new(&catalog, &wanted.iter().map(|one| name(one)).collect())
    }

    fn state_of(list: &TemplateList, wanted: &str) -> BakeState {
        let reports = list.reports();
        let found = reports.into_iter().find(|one| one.name.as_str() == wanted);
        found.unwrap().state
    }

    #[test]
    fn only_wanted_templates_are_baked_by_themselves() {
        let list = list(&["base"]);
        for one in ["agent", "base"] {
            assert_eq!(state_of(&list, one), BakeState::Waiting);
            list.note_missing(&name(one));
        }
        assert_eq!(state_of(&list, "agent"), BakeState::NotBaked);
        assert_eq!(list.take_order(), Some(name("base")));
        assert_eq!(list.take_order(), None);
    }

    #[test]
    fn asking_for_a_template_orders_it_once() {
        let list = list(&[]);
        list.note_missing(&name("agent"));
        for _ in 0..2 {
            let answer = list.unavailable(&name("agent"));
            assert!(matches!(
                answer,
                TemplateUnavailable::Baking { percent: 0, .. }
            ));
        }
        assert_eq!(list.take_order(), Some(name("agent")));
        assert_eq!(list.take_order(), None);
        let unknown = list.unavailable(&name("nowhere"));
        assert!(unknown.to_string().contains("ubuntu-24.04"), "{unknown}");
    }

    #[test]
    fn asking_while_the_disk_is_searched_counts() {
        let list = list(&[]);
        list.order(&name("agent")).unwrap();
        assert_eq!(list.take_order(), None);
        list.note_missing(&name("agent"));
        assert_eq!(list.take_order(), Some(name("agent")));
        assert_eq!(state_of(&list, "agent"), BakeState::Waiting);
    }

    #[test]
    fn failed_bake_is_told_and_tried_again_only_by_an_order() {
        let list = list(&[]);
        let reason = "no disk".to_owned();
        list.set_state(&name("agent"), BakeState::Failed { reason });
        let answer = list.unavailable(&name("agent"));
        assert!(matches!(answer, TemplateUnavailable::Failed { .. }));
        assert_eq!(list.take_order(), None);
        list.order(&name("agent")).unwrap();
        assert_eq!(list.take_order(), Some(name("agent")));
    }

    #[test]
    fn alias_shows_and_orders_the_other_template() {
        let list = list(&[]);
        list.note_missing(&name("base"));
        let reports = list.reports();
        let alias = reports.last().unwrap();
        assert_eq!(alias.alias_of, Some(name("base")));
        assert_eq!(alias.state, BakeState::NotBaked);
        list.order(&name("ubuntu-24.04")).unwrap();
        assert_eq!(list.take_order(), Some(name("base")));
        assert_eq!(state_of(&list, "ubuntu-24.04"), BakeState::Waiting);
    }
}
