use std::path::Path;
use std::time::SystemTime;

use dayfly_snapshots::{
    AgentIdentity, EngineIdentity, ManifestDraft, RecipeIdentity, TemplateStore, file_names,
};
use dayfly_types::container_image::MadeImage;
use dayfly_types::{GuestDefaults, ProjectId, RunMeaning};
use dayfly_vmm::{Accelerator, EngineKind, MachineSpec};

use super::*;

fn name(text: &str) -> TemplateName {
    TemplateName::parse(text).unwrap()
}

fn own(text: &str) -> BakeTarget {
    BakeTarget::own(&name(text))
}

fn list(wanted: &[&str]) -> TemplateList {
    let catalog = RecipeCatalog::load(None).unwrap();
    TemplateList::new(&catalog, &wanted.iter().map(|one| name(one)).collect())
}

fn report_of(list: &TemplateList, wanted: &str) -> TemplateReport {
    let reports = list.reports();
    let found = reports.into_iter().find(|one| one.name.as_str() == wanted);
    found.unwrap()
}

fn state_of(list: &TemplateList, wanted: &str) -> BakeState {
    report_of(list, wanted).state
}

/// What an image says of its use.
fn image() -> MadeImage {
    MadeImage {
        digest: "sha256:0".to_owned(),
        layers: Vec::new(),
        defaults: GuestDefaults::default(),
        entry_point: vec!["/serve".to_owned()],
        command: Vec::new(),
        shell: Vec::new(),
        on_build: None,
        health: None,
    }
}

/// An operator's recipes, and a store with what was baked from them.
struct Kitchen {
    directory: tempfile::TempDir,
}

impl Kitchen {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("recipes")).unwrap();
        Self { directory }
    }

    fn recipe_file(&self) -> std::path::PathBuf {
        self.directory.path().join("recipes/own.toml")
    }

    fn write(&self, version: u32, run: &str) {
        let text = format!(
            "name = 'own'\nversion = {version}\ndescription = 'number {version}'\nrun = '{run}'\n\
             memory_mib = {}\nvcpus = 1\ndisk_mib = 64\npackages = ['jq']\n",
            128 * version
        );
        std::fs::write(self.recipe_file(), text).unwrap();
    }

    fn remove_recipe(&self) {
        std::fs::remove_file(self.recipe_file()).unwrap();
    }

    fn catalog(&self) -> RecipeCatalog {
        RecipeCatalog::load(Some(&self.directory.path().join("recipes"))).unwrap()
    }

    fn list(&self) -> TemplateList {
        TemplateList::new(&self.catalog(), &BTreeSet::new())
    }

    /// Publishes what a bake of the recipe as it is now would be.
    fn baked(&self) -> (BakedTemplate, ResolvedRecipe) {
        self.baked_as(&own("own"), None)
    }

    /// The same in another size, for a project.
    fn baked_as(
        &self,
        target: &BakeTarget,
        by: Option<ProjectId>,
    ) -> (BakedTemplate, ResolvedRecipe) {
        let written = self.catalog().get(&name("own")).unwrap().clone();
        let recipe = target.recipe(&written);
        let store = TemplateStore::new(self.directory.path().join("templates"));
        let staging = store.begin(&name("own")).unwrap();
        for file in file_names::REQUIRED {
            std::fs::write(staging.path(file), file).unwrap();
        }
        let draft = ManifestDraft {
            name: name("own"),
            project: None,
            parent: None,
            recipe: RecipeIdentity {
                version: recipe.recipe.version,
                hash: recipe.hash(),
            },
            variant: target.identity(&written, by),
            offer: crate::bake::offer(&recipe.recipe, Some(&image())),
            created_at: SystemTime::UNIX_EPOCH,
            machine: MachineSpec {
                memory: recipe.recipe.memory,
                vcpus: recipe.recipe.vcpus,
                disk: recipe.recipe.disk,
                spare_disks: 3,
            },
            engine: EngineIdentity {
                kind: EngineKind::Qemu,
                version: "1".to_owned(),
                accelerator: Accelerator::Tcg,
                cpu_model: "max".to_owned(),
                build: None,
            },
            kernel_version: "6".to_owned(),
            agent: AgentIdentity {
                protocol_generation: 1,
                hash: "aa".to_owned(),
            },
            sealed_layers: Vec::new(),
            base_parts: Vec::new(),
        };
        (store.publish(staging, draft).unwrap(), recipe)
    }

    /// A list whose template was just baked.
    fn ready(&self) -> TemplateList {
        let list = self.list();
        let (template, recipe) = self.baked();
        list.note_opened(&template, Some(&recipe));
        assert_eq!(state_of(&list, "own"), BakeState::Ready);
        list
    }
}

#[test]
fn what_an_image_says_is_told_of_one_template_and_not_in_a_list_of_all() {
    let kitchen = Kitchen::new();
    kitchen.write(1, "shell");
    let list = kitchen.ready();
    assert_eq!(report_of(&list, "own").image, None);
    let report = list.report(&name("own")).unwrap();
    assert_eq!(report.image, Some(image()));
    assert_eq!(list.report(&name("other")), None);
}

#[tokio::test]
async fn whoever_bakes_learns_that_nobody_wants_it_any_more() {
    let list = list(&[]);
    let target = own("base");
    let mut gone = std::pin::pin!(list.is_gone(&target));
    assert!(futures::poll!(gone.as_mut()).is_pending());
    list.forget(&name("base"));
    gone.await;
}

#[test]
fn what_is_put_back_is_in_the_line_once() {
    let list = list(&["base"]);
    list.note_missing(&name("base"));
    let all = BTreeSet::new();
    let base = list.take_order(&all).unwrap();
    list.put_back(&base);
    list.put_back(&base);
    list.order(&name("base"), BakeWish::IfMissing).unwrap();
    assert_eq!(list.take_order(&BTreeSet::from([base.clone()])), None);
    assert_eq!(list.take_order(&all), Some(base));
    assert_eq!(list.take_order(&all), None, "it was put back twice");
}

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
    for wish in [BakeWish::IfMissing, BakeWish::Renew] {
        let refused = list.order(&name("own"), wish);
        assert!(matches!(refused, Err(TemplateUnavailable::Failed { .. })));
    }
    assert_eq!(list.take_order(&BTreeSet::new()), None);
}

#[test]
fn only_wanted_templates_are_baked_by_themselves() {
    let list = list(&["base"]);
    for one in ["agent", "base"] {
        assert_eq!(state_of(&list, one), BakeState::Waiting);
        list.note_missing(&name(one));
    }
    assert_eq!(state_of(&list, "agent"), BakeState::NotBaked);
    assert_eq!(list.take_order(&BTreeSet::new()), Some(own("base")));
    assert_eq!(list.take_order(&BTreeSet::new()), None);
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
    assert_eq!(list.take_order(&BTreeSet::new()), Some(own("agent")));
    assert_eq!(list.take_order(&BTreeSet::new()), None);
    let unknown = list.unavailable(&name("nowhere"));
    assert!(unknown.to_string().contains("ubuntu-24.04"), "{unknown}");
}

#[test]
fn asking_while_the_disk_is_searched_counts() {
    let list = list(&[]);
    list.order(&name("agent"), BakeWish::IfMissing).unwrap();
    assert_eq!(list.take_order(&BTreeSet::new()), None);
    list.note_missing(&name("agent"));
    assert_eq!(list.take_order(&BTreeSet::new()), Some(own("agent")));
    assert_eq!(state_of(&list, "agent"), BakeState::Waiting);
}

#[test]
fn failed_bake_is_told_and_tried_again_only_by_an_order() {
    let list = list(&[]);
    list.set_failed(&own("agent"), "no disk".to_owned());
    let answer = list.unavailable(&name("agent"));
    assert!(matches!(answer, TemplateUnavailable::Failed { .. }));
    assert_eq!(list.take_order(&BTreeSet::new()), None);
    list.order(&name("agent"), BakeWish::IfMissing).unwrap();
    assert_eq!(list.take_order(&BTreeSet::new()), Some(own("agent")));
}

#[test]
fn alias_shows_and_orders_the_other_template() {
    let list = list(&[]);
    list.note_missing(&name("base"));
    let reports = list.reports();
    let alias = reports.last().unwrap();
    assert_eq!(alias.alias_of, Some(name("base")));
    assert_eq!(alias.state, BakeState::NotBaked);
    let ordered = list.order(&name("ubuntu-24.04"), BakeWish::IfMissing);
    ordered.unwrap();
    assert_eq!(list.take_order(&BTreeSet::new()), Some(own("base")));
    assert_eq!(state_of(&list, "ubuntu-24.04"), BakeState::Waiting);
}

#[test]
fn a_new_recipe_is_found_and_one_that_went_is_forgotten() {
    let kitchen = Kitchen::new();
    let list = kitchen.list();
    assert!(list.order(&name("own"), BakeWish::IfMissing).is_err());
    kitchen.write(1, "shell");
    list.learn(&kitchen.catalog());
    assert_eq!(state_of(&list, "own"), BakeState::NotBaked);
    list.order(&name("own"), BakeWish::IfMissing).unwrap();
    assert_eq!(list.take_order(&BTreeSet::new()), Some(own("own")));
    std::fs::remove_file(kitchen.recipe_file()).unwrap();
    list.learn(&kitchen.catalog());
    assert!(list.reports().iter().all(|one| one.name != name("own")));
}

#[test]
fn a_ready_template_stays_usable_until_the_next_bake_of_it_is_there() {
    let kitchen = Kitchen::new();
    kitchen.write(1, "shell");
    let list = kitchen.ready();
    let first = list.current(&name("own")).unwrap();
    kitchen.write(2, "python");
    list.learn(&kitchen.catalog());
    assert_eq!(report_of(&list, "own").description, "number 1");
    // Whoever only wants to use it has it.
    list.order(&name("own"), BakeWish::IfMissing).unwrap();
    assert_eq!(list.take_order(&BTreeSet::new()), None);
    for _ in 0..2 {
        list.order(&name("own"), BakeWish::Renew).unwrap();
    }
    assert_eq!(list.take_order(&BTreeSet::new()), Some(own("own")));
    assert_eq!(
        list.take_order(&BTreeSet::new()),
        None,
        "it was ordered twice"
    );
    let (second, recipe) = kitchen.baked();
    assert!(list.begin(&own("own"), &recipe));
    let step = "booting".to_owned();
    list.set_progress(&own("own"), BakeState::Baking { percent: 9, step });
    let report = report_of(&list, "own");
    assert!(report.is_usable && report.run == RunMeaning::Shell);
    assert_eq!(list.current(&name("own")), Some(Arc::clone(&first)));
    list.order(&name("own"), BakeWish::Renew).unwrap();
    assert_eq!(
        list.take_order(&BTreeSet::new()),
        None,
        "that recipe is being baked"
    );
    list.set_baked(&second, Some(&recipe));
    let report = report_of(&list, "own");
    assert_eq!(
        (report.state, report.run),
        (BakeState::Ready, RunMeaning::Python)
    );
    assert_eq!(
        (report.memory.get(), report.description.as_str()),
        (256, "number 2")
    );
    assert_ne!(list.current(&name("own")), Some(first));
    list.order(&name("own"), BakeWish::Renew).unwrap();
    assert_eq!(
        list.take_order(&BTreeSet::new()),
        None,
        "nothing has changed"
    );
}

#[test]
fn a_bake_that_failed_leaves_what_was_baked_before() {
    let kitchen = Kitchen::new();
    kitchen.write(1, "shell");
    let list = kitchen.ready();
    kitchen.write(2, "shell");
    list.learn(&kitchen.catalog());
    list.order(&name("own"), BakeWish::Renew).unwrap();
    list.take_order(&BTreeSet::new()).unwrap();
    let recipe = kitchen.catalog().get(&name("own")).unwrap().clone();
    assert!(list.begin(&own("own"), &recipe));
    list.set_failed(&own("own"), "no disk".to_owned());
    let report = report_of(&list, "own");
    assert!(report.is_usable && matches!(report.state, BakeState::Failed { .. }));
    assert!(list.current(&name("own")).is_some());
    // Its old recipe back: nothing is wrong any more.
    kitchen.write(1, "shell");
    list.learn(&kitchen.catalog());
    list.order(&name("own"), BakeWish::Renew).unwrap();
    assert_eq!(list.take_order(&BTreeSet::new()), None);
    assert_eq!(state_of(&list, "own"), BakeState::Ready);
}

#[test]
fn a_recipe_that_changes_while_it_is_baked_is_baked_after_that() {
    let kitchen = Kitchen::new();
    kitchen.write(1, "shell");
    let list = kitchen.list();
    list.note_missing(&name("own"));
    list.order(&name("own"), BakeWish::IfMissing).unwrap();
    list.take_order(&BTreeSet::new()).unwrap();
    let (first, recipe) = kitchen.baked();
    assert!(list.begin(&own("own"), &recipe));
    kitchen.write(2, "shell");
    list.learn(&kitchen.catalog());
    list.order(&name("own"), BakeWish::Renew).unwrap();
    list.set_baked(&first, Some(&recipe));
    assert_eq!(state_of(&list, "own"), BakeState::Waiting);
    assert_eq!(list.take_order(&BTreeSet::new()), Some(own("own")));
    let (second, recipe) = kitchen.baked();
    assert!(list.begin(&own("own"), &recipe));
    list.set_baked(&second, Some(&recipe));
    assert!(!list.begin(&own("own"), &recipe), "it is baked already");
    assert_eq!(state_of(&list, "own"), BakeState::Ready);
}

#[test]
fn a_bake_of_another_recipe_is_used_at_the_start_and_renewed() {
    let kitchen = Kitchen::new();
    kitchen.write(1, "python");
    let (old, _) = kitchen.baked();
    kitchen.write(2, "shell");
    let list = kitchen.list();
    let catalog = kitchen.catalog();
    list.note_opened(&old, catalog.get(&name("own")));
    let report = report_of(&list, "own");
    assert!(report.is_usable && report.state == BakeState::Waiting);
    let told = (report.memory.get(), report.run, report.description.as_str());
    assert_eq!(told, (128, RunMeaning::Python, "number 1"));
    assert_eq!(list.take_order(&BTreeSet::new()), Some(own("own")));
}

#[test]
fn a_bake_whose_recipe_is_wrong_is_used_with_the_reason_shown() {
    let kitchen = Kitchen::new();
    kitchen.write(1, "python");
    let (old, _) = kitchen.baked();
    std::fs::write(kitchen.recipe_file(), "nonsense").unwrap();
    let list = kitchen.list();
    list.note_opened(&old, None);
    let report = report_of(&list, "own");
    assert!(report.is_usable && report.run == RunMeaning::Python);
    assert!(matches!(report.state, BakeState::Failed { .. }));
    list.order(&name("own"), BakeWish::IfMissing).unwrap();
    assert!(list.order(&name("own"), BakeWish::Renew).is_err());
    assert_eq!(list.take_order(&BTreeSet::new()), None);
    // Mended, it is what it was.
    kitchen.write(1, "python");
    list.learn(&kitchen.catalog());
    assert_eq!(state_of(&list, "own"), BakeState::Ready);
    // Removed, it stays for those who use it, and says so.
    std::fs::remove_file(kitchen.recipe_file()).unwrap();
    list.learn(&kitchen.catalog());
    let report = report_of(&list, "own");
    assert!(report.is_usable && matches!(report.state, BakeState::Failed { .. }));
}

#[test]
fn further_names_come_and_go_with_their_recipes() {
    let kitchen = Kitchen::new();
    kitchen.write(1, "shell");
    let list = kitchen.ready();
    let file = kitchen.directory.path().join("recipes/other.toml");
    write_alias(&file, "own");
    list.learn(&kitchen.catalog());
    assert!(report_of(&list, "other").is_usable);
    // A recipe that is wrong takes no name from those who use the bake.
    std::fs::write(kitchen.recipe_file(), "nonsense").unwrap();
    list.learn(&kitchen.catalog());
    assert!(report_of(&list, "other").is_usable);
    assert!(list.current(&name("other")).is_some());
    // A name that was a template and is a further name now is told once.
    kitchen.write(1, "shell");
    write_alias(&kitchen.recipe_file(), "base");
    write_alias(&file, "base");
    list.learn(&kitchen.catalog());
    let reports = list.reports();
    let own: Vec<_> = reports
        .iter()
        .filter(|one| one.name == name("own"))
        .collect();
    assert_eq!(own.len(), 1);
    assert_eq!(own[0].alias_of, Some(name("base")));
}

fn write_alias(file: &Path, of: &str) {
    let stem = file.file_stem().unwrap().to_str().unwrap();
    std::fs::write(file, format!("name = '{stem}'\nalias_of = '{of}'")).unwrap();
}

#[path = "template_variant_tests.rs"]
mod variants;
