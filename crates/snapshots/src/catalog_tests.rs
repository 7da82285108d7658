//! Which recipes a node knows, and which of them do not go together.

use super::*;

const SIZES: &str = "version = 1\nmemory_mib = 512\nvcpus = 1\ndisk_mib = 1024\n";

fn directory_of(recipes: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, more) in recipes {
        let text = format!("name = {name:?}\n{SIZES}{more}\n");
        std::fs::write(directory.path().join(format!("{name}.toml")), text).unwrap();
    }
    directory
}

fn name(text: &str) -> TemplateName {
    TemplateName::parse(text).unwrap()
}

#[test]
fn base_is_built_in_with_its_promised_size() {
    let catalog = RecipeCatalog::load(None).unwrap();
    let base = &catalog.get(&name("base")).unwrap().recipe;
    assert_eq!(
        (base.memory.get(), base.vcpus.get(), base.disk.get()),
        (512, 1, 2048)
    );
}

#[test]
fn borrowed_image_is_the_other_templates() {
    let directory = directory_of(&[
        ("warm", "from = 'tools'\nwarm = ['true']"),
        ("tools", "packages = ['jq']"),
    ]);
    let catalog = RecipeCatalog::load(Some(directory.path())).unwrap();
    let warm = catalog.get(&name("warm")).unwrap();
    let tools = catalog.get(&name("tools")).unwrap();
    assert_eq!(warm.image, tools.image);
    assert_ne!(warm.hash(), tools.hash());
}

/// What is wrong with the recipe of this name.
fn wrong(directory: &tempfile::TempDir, wanted: &str) -> String {
    let catalog = RecipeCatalog::load(Some(directory.path())).unwrap();
    assert!(catalog.get(&name(wanted)).is_none());
    let found = catalog.wrong().find(|(one, _)| one.as_str() == wanted);
    found.unwrap().1.to_string()
}

#[test]
fn circles_and_missing_images_are_refused() {
    let circle = directory_of(&[("a", "from = 'b'"), ("b", "from = 'a'")]);
    assert!(wrong(&circle, "a").contains("from itself"));
    let missing = directory_of(&[("a", "from = 'nowhere'"), ("b", "from = 'a'")]);
    assert!(wrong(&missing, "a").contains("nowhere"));
}

#[test]
fn one_wrong_recipe_leaves_the_others_alone() {
    let directory = directory_of(&[
        ("broken", "package = ['jq']"),
        ("fine", "packages = ['jq']"),
    ]);
    std::fs::write(directory.path().join("Not A Name.toml"), "name = 1").unwrap();
    std::fs::write(directory.path().join("base.toml"), "nonsense").unwrap();
    let catalog = RecipeCatalog::load(Some(directory.path())).unwrap();
    assert!(catalog.get(&name("fine")).is_some());
    assert!(catalog.get(&name("agent")).is_some());
    assert_eq!(catalog.nameless().count(), 1);
    assert!(wrong(&directory, "broken").contains("broken.toml"));
    // The operator's own base is meant, and nobody else's takes its place.
    assert!(wrong(&directory, "base").contains("base.toml"));
    assert!(wrong(&directory, "ubuntu-24.04").contains("base"));
}

#[test]
fn of_two_recipes_with_one_name_neither_is_used() {
    let directory = directory_of(&[("a", "packages = ['jq']")]);
    let text = format!("name = 'a'\n{SIZES}");
    std::fs::write(directory.path().join("b.toml"), text).unwrap();
    assert!(wrong(&directory, "a").contains("b.toml"));
}

#[test]
fn description_does_not_change_the_hash_and_warm_up_does() {
    let hash = |more: &str| {
        let directory = directory_of(&[("a", more)]);
        RecipeCatalog::load(Some(directory.path()))
            .unwrap()
            .get(&name("a"))
            .unwrap()
            .hash()
    };
    assert_eq!(hash(""), hash("description = 'words'"));
    assert_ne!(hash(""), hash("warm = ['true']"));
    assert_ne!(hash("start = ['true']"), hash("warm = ['true']"));
    assert_ne!(hash(""), hash("contexts = ['bash']"));
    assert_eq!(hash(""), hash("run = 'python'"));
}

#[test]
fn built_in_templates_declare_what_run_means() {
    let catalog = RecipeCatalog::load(None).unwrap();
    let runs: Vec<_> = catalog
        .iter()
        .map(|one| (one.recipe.name.as_str(), one.recipe.run.as_str()))
        .collect();
    let expected = [
        ("agent", "shell"),
        ("base", "shell"),
        ("code-interpreter", "shell"),
        ("python-data", "python_context"),
    ];
    assert_eq!(runs, expected);
    let data = catalog.get(&name("python-data")).unwrap();
    let interpreter = catalog.get(&name("code-interpreter")).unwrap();
    assert_eq!(data.image, interpreter.image);
    assert_eq!(data.recipe.contexts.len(), 3);
}

#[test]
fn alias_is_no_recipe_and_needs_one() {
    let catalog = RecipeCatalog::load(None).unwrap();
    let alias = catalog.aliases().next().unwrap();
    assert_eq!(
        (alias.name.as_str(), alias.of.as_str()),
        ("ubuntu-24.04", "base")
    );
    assert!(catalog.get(&alias.name).is_none());
    for of in ["nowhere", "ubuntu-24.04"] {
        let directory = tempfile::tempdir().unwrap();
        let text = format!("name = 'other'\nalias_of = '{of}'");
        std::fs::write(directory.path().join("other.toml"), text).unwrap();
        assert!(wrong(&directory, "other").contains(of));
    }
    let own = directory_of(&[("ubuntu-24.04", "packages = ['jq']")]);
    let catalog = RecipeCatalog::load(Some(own.path())).unwrap();
    assert_eq!(catalog.aliases().count(), 0);
    assert!(catalog.get(&name("ubuntu-24.04")).is_some());
}
