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

#[test]
fn circles_and_missing_images_are_refused() {
    let circle = directory_of(&[("a", "from = 'b'"), ("b", "from = 'a'")]);
    let error = RecipeCatalog::load(Some(circle.path())).unwrap_err();
    assert!(matches!(error, CatalogError::Circle { .. }), "{error}");
    let missing = directory_of(&[("a", "from = 'nowhere'")]);
    let error = RecipeCatalog::load(Some(missing.path())).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
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
        let error = RecipeCatalog::load(Some(directory.path())).unwrap_err();
        assert!(error.to_string().contains(of), "{error}");
    }
    let own = directory_of(&[("ubuntu-24.04", "packages = ['jq']")]);
    let catalog = RecipeCatalog::load(Some(own.path())).unwrap();
    assert_eq!(catalog.aliases().count(), 0);
    assert!(catalog.get(&name("ubuntu-24.04")).is_some());
}
