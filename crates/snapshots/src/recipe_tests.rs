//! What recipes say and what is wrong with some.

use super::*;

const LEAST: &str = "name = 'x'\nversion = 1\nmemory_mib = 512\nvcpus = 1\ndisk_mib = 1024\n";

fn parse(text: &str) -> Result<Recipe, RecipeError> {
    match RecipeText::parse(text)? {
        RecipeText::Recipe(recipe) => Ok(*recipe),
        RecipeText::Alias(alias) => panic!("{alias:?} is an alias"),
    }
}

fn with(more: &str) -> Recipe {
    parse(&format!("{LEAST}{more}")).unwrap()
}

fn error_text(more: &str) -> String {
    let error = RecipeText::parse(&format!("{LEAST}{more}")).unwrap_err();
    error.to_string()
}

fn image(recipe: &Recipe) -> &PackageImage {
    let ImageSource::Own(ImageRecipe::Packages(image)) = &recipe.source else {
        panic!("the disk is not made of packages: {:?}", recipe.source);
    };
    image
}

#[test]
fn an_image_of_a_container_is_a_disk_of_its_own() {
    let recipe = with("image = 'docker.io/library/debian:12'");
    let ImageSource::Own(ImageRecipe::Container(container)) = &recipe.source else {
        panic!("{:?}", recipe.source);
    };
    assert_eq!(container.image.to_string(), "docker.io/library/debian:12");
    assert_eq!(recipe.entry_point, EntryPointUse::Start);
    let ignoring = with("image = 'docker.io/library/debian:12'\nentry_point = 'ignore'");
    assert_eq!(ignoring.entry_point, EntryPointUse::Ignore);
}

#[test]
fn least_recipe_is_enough() {
    let recipe = with("");
    assert_eq!(recipe.name.as_str(), "x");
    assert!(recipe.warm.is_empty() && recipe.start.is_empty());
    assert_eq!(recipe.run, RunMeaning::Shell);
    assert!(recipe.contexts.is_empty());
    assert!(image(&recipe).registries.is_empty());
}

#[test]
fn errors_name_the_key() {
    for (more, key) in [
        ("pakages = []", "pakages"),
        ("packages = 'git'", "packages"),
        ("warm = [1]", "warm"),
        ("from = '../x'", "from"),
        ("from = 'base'\npackages = []", "packages"),
        ("from = 'base'\nsetup = 'true'", "setup"),
        ("from = 'base'\nnode = '24.1.0'", "node"),
        ("from = 'base'\npip = []", "pip"),
        ("image = 'debian'", "image"),
        ("image = 'a.b/c:1'\nfrom = 'base'", "from"),
        ("image = 'a.b/c:1'\npackages = []", "packages"),
        ("image = 'a.b/c:1'\nentry_point = 'maybe'", "entry_point"),
        ("entry_point = 'ignore'", "entry_point"),
        ("run = 'perl'", "run"),
        ("run = 'python_context'", "contexts"),
        ("contexts = ['cobol']", "contexts"),
        ("packages = ['a b']", "packages"),
        ("pip = ['-r']", "pip"),
        ("pip = ['uv']", "python3-pip"),
        (
            "packages = ['python3-pip']\nnode = '24'\nnpm = ['../x']",
            "npm",
        ),
        ("packages = ['python3-pip']\nnode = 'latest'", "node"),
        ("npm = ['left-pad']", "node"),
    ] {
        let text = error_text(more);
        assert!(text.contains(key), "{more:?}: {text}");
    }
    let missing = parse("name = 'x'").unwrap_err().to_string();
    assert!(missing.contains("version"), "{missing}");
    for (from, to, key) in [("512", "1", "memory_mib"), ("1024", "-5", "disk_mib")] {
        let text = parse(&LEAST.replace(from, to)).unwrap_err().to_string();
        assert!(text.contains(key), "{text}");
    }
}

#[test]
fn a_name_that_is_a_path_of_the_api_is_refused() {
    for name in ["build", "builds", "images"] {
        let text = parse(&LEAST.replacen("'x'", &format!("'{name}'"), 1));
        assert!(
            matches!(text, Err(RecipeError::ReservedName { .. })),
            "{name}"
        );
    }
}

#[test]
fn package_order_means_nothing() {
    let one = with("packages = ['git', 'curl']");
    assert_eq!(one, with("packages = ['curl', 'git', 'curl']"));
}

#[test]
fn contexts_are_languages_and_run_may_mean_one() {
    let recipe = with("contexts = ['javascript', 'python', 'python']\nrun = 'python_context'");
    let languages = [ContextLanguage::Python, ContextLanguage::Javascript];
    assert_eq!(recipe.contexts, languages);
    assert_eq!(recipe.run, RunMeaning::PythonContext);
}

#[test]
fn alias_has_a_name_and_nothing_to_bake() {
    let text = "name = 'y'\ndescription = 'words'\nalias_of = 'x'";
    let RecipeText::Alias(alias) = RecipeText::parse(text).unwrap() else {
        panic!("no alias");
    };
    assert_eq!((alias.name.as_str(), alias.of.as_str()), ("y", "x"));
    assert!(error_text("alias_of = 'x'").contains("beside \"alias_of\""));
    let unknown = RecipeText::parse("name = 'y'\nalias_of = 'x'\ncolour = 'red'");
    assert!(unknown.unwrap_err().to_string().contains("colour"));
}
