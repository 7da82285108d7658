//! All recipes that a node knows: those in the program and those of its operator.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use dayfly_types::TemplateName;
use serde::Serialize;

use crate::recipe::{ImageRecipe, ImageSource, Recipe, RecipeError};

/// Recipes that are part of the program, so that one binary is enough.
const BUILT_IN: [(&str, &str); 1] = [("base", include_str!("../../../templates/base/recipe.toml"))];
/// How many templates may borrow an image from one another in a row.
const BORROW_DEPTH_MAX: usize = 8;
/// More files than this in an operator's directory are a mistake.
const OPERATOR_RECIPES_MAX: usize = 1000;

/// Why the recipes could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("cannot read the recipe directory {path}")]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot read the recipe {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the recipe {path} is wrong")]
    Recipe {
        path: PathBuf,
        #[source]
        source: RecipeError,
    },
    #[error("two recipes are named {name:?}; the second is {path}")]
    Twice { name: TemplateName, path: PathBuf },
    #[error("more than {OPERATOR_RECIPES_MAX} recipes in {path}")]
    TooMany { path: PathBuf },
    #[error("the template {name:?} takes its image from {from:?}, which does not exist")]
    NoSuchImage {
        name: TemplateName,
        from: TemplateName,
    },
    #[error("the template {name:?} takes its image from itself, or over too many others")]
    Circle { name: TemplateName },
}

/// The recipes by name.
#[derive(Debug, Clone, Default)]
pub struct RecipeCatalog {
    recipes: BTreeMap<TemplateName, ResolvedRecipe>,
}

/// A recipe together with the image that it ends up with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedRecipe {
    pub recipe: Recipe,
    pub image: ImageRecipe,
}

impl RecipeCatalog {
    /// Reads the built-in recipes and the `*.toml` files of a directory, if one is given. An
    /// operator's recipe takes the place of a built-in one of the same name.
    ///
    /// # Errors
    /// [`CatalogError`], which names the file.
    pub fn load(operator_directory: Option<&Path>) -> Result<Self, CatalogError> {
        let mut recipes = built_in()?;
        if let Some(directory) = operator_directory {
            recipes.extend(operator_recipes(directory)?);
        }
        Self::resolve(recipes)
    }

    #[must_use]
    pub fn get(&self, name: &TemplateName) -> Option<&ResolvedRecipe> {
        self.recipes.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &ResolvedRecipe> {
        self.recipes.values()
    }

    fn resolve(recipes: BTreeMap<TemplateName, Recipe>) -> Result<Self, CatalogError> {
        let mut resolved = BTreeMap::new();
        for (name, recipe) in &recipes {
            let image = image_of(&recipes, recipe)?.clone();
            resolved.insert(
                name.clone(),
                ResolvedRecipe {
                    recipe: recipe.clone(),
                    image,
                },
            );
        }
        Ok(Self { recipes: resolved })
    }
}

impl ResolvedRecipe {
    /// A digest of everything that ends up in the template. Words for people do not count.
    #[must_use]
    pub fn hash(&self) -> String {
        /// The order of these fields is part of the digest.
        #[derive(Serialize)]
        struct Baked<'a> {
            name: &'a TemplateName,
            version: u32,
            memory_mib: u32,
            vcpus: u8,
            disk_mib: u32,
            image: &'a ImageRecipe,
            warm: &'a [String],
            start: &'a [String],
        }
        let recipe = &self.recipe;
        let baked = Baked {
            name: &recipe.name,
            version: recipe.version,
            memory_mib: recipe.memory.get(),
            vcpus: recipe.vcpus.get(),
            disk_mib: recipe.disk.get(),
            image: &self.image,
            warm: &recipe.warm,
            start: &recipe.start,
        };
        crate::digest::hash_json(&baked)
    }
}

fn built_in() -> Result<BTreeMap<TemplateName, Recipe>, CatalogError> {
    let mut recipes = BTreeMap::new();
    for (name, text) in BUILT_IN {
        let recipe = Recipe::parse(text).map_err(|source| CatalogError::Recipe {
            path: PathBuf::from(name),
            source,
        })?;
        recipes.insert(recipe.name.clone(), recipe);
    }
    Ok(recipes)
}

fn operator_recipes(directory: &Path) -> Result<BTreeMap<TemplateName, Recipe>, CatalogError> {
    let wrap = |source| CatalogError::Directory {
        path: directory.to_owned(),
        source,
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(wrap)? {
        let path = entry.map_err(wrap)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            paths.push(path);
        }
        if paths.len() > OPERATOR_RECIPES_MAX {
            return Err(CatalogError::TooMany {
                path: directory.to_owned(),
            });
        }
    }
    paths.sort();
    let mut recipes = BTreeMap::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|source| CatalogError::Read {
            path: path.clone(),
            source,
        })?;
        let recipe = Recipe::parse(&text).map_err(|source| CatalogError::Recipe {
            path: path.clone(),
            source,
        })?;
        let name = recipe.name.clone();
        if recipes.insert(name.clone(), recipe).is_some() {
            return Err(CatalogError::Twice { name, path });
        }
    }
    Ok(recipes)
}

/// Follows `from` until a recipe with an image of its own.
fn image_of<'a>(
    recipes: &'a BTreeMap<TemplateName, Recipe>,
    recipe: &'a Recipe,
) -> Result<&'a ImageRecipe, CatalogError> {
    let mut current = recipe;
    for _ in 0..BORROW_DEPTH_MAX {
        match &current.source {
            ImageSource::Own(image) => return Ok(image),
            ImageSource::Of(from) => {
                current = recipes.get(from).ok_or_else(|| CatalogError::NoSuchImage {
                    name: current.name.clone(),
                    from: from.clone(),
                })?;
            }
        }
    }
    Err(CatalogError::Circle {
        name: recipe.name.clone(),
    })
}

#[cfg(test)]
mod tests {
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
    }
}
