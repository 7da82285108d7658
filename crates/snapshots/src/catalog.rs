//! All recipes that a node knows: those in the program and those of its operator.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use dayfly_types::TemplateName;
use serde::Serialize;

use crate::bridge;
use crate::image::BUILDER_VERSION;
use crate::recipe::{Alias, ImageRecipe, ImageSource, Recipe, RecipeError, RecipeText};

macro_rules! built_in_recipes {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../templates/", $name, "/recipe.toml")))),*]
    };
}

/// Recipes that are part of the program, so that one binary is enough.
const BUILT_IN: [(&str, &str); 5] = built_in_recipes![
    "agent",
    "base",
    "code-interpreter",
    "python-data",
    "ubuntu-24.04",
];
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
    #[error("{name:?} is a further name of {of:?}, which is no template with a recipe")]
    AliasOfNothing {
        name: TemplateName,
        of: TemplateName,
    },
}

/// The recipes by name.
#[derive(Debug, Clone, Default)]
pub struct RecipeCatalog {
    recipes: BTreeMap<TemplateName, ResolvedRecipe>,
    aliases: BTreeMap<TemplateName, Alias>,
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

    /// The names under which templates are baked.
    pub fn names(&self) -> impl Iterator<Item = &TemplateName> {
        self.recipes.keys()
    }

    /// The name under which the template of this name is baked.
    #[must_use]
    pub fn real_name<'a>(&'a self, name: &'a TemplateName) -> Option<&'a TemplateName> {
        let real = self.aliases.get(name).map_or(name, |alias| &alias.of);
        self.recipes.contains_key(real).then_some(real)
    }

    /// Further names of templates.
    pub fn aliases(&self) -> impl Iterator<Item = &Alias> {
        self.aliases.values()
    }

    fn resolve(texts: BTreeMap<TemplateName, RecipeText>) -> Result<Self, CatalogError> {
        let mut recipes = BTreeMap::new();
        let mut aliases = BTreeMap::new();
        for (name, text) in texts {
            match text {
                RecipeText::Recipe(recipe) => drop(recipes.insert(name, *recipe)),
                RecipeText::Alias(alias) => drop(aliases.insert(name, alias)),
            }
        }
        if let Some(alias) = aliases
            .values()
            .find(|alias| !recipes.contains_key(&alias.of))
        {
            return Err(CatalogError::AliasOfNothing {
                name: alias.name.clone(),
                of: alias.of.clone(),
            });
        }
        let mut resolved = BTreeMap::new();
        for (name, recipe) in &recipes {
            let image = image_of(&recipes, recipe)?.clone();
            let recipe = recipe.clone();
            resolved.insert(name.clone(), ResolvedRecipe { recipe, image });
        }
        Ok(Self {
            recipes: resolved,
            aliases,
        })
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
            builder: u32,
            memory_mib: u32,
            vcpus: u8,
            disk_mib: u32,
            image: &'a ImageRecipe,
            warm: &'a [String],
            start: &'a [String],
            bridge: Option<String>,
        }
        let recipe = &self.recipe;
        let baked = Baked {
            name: &recipe.name,
            version: recipe.version,
            builder: BUILDER_VERSION,
            memory_mib: recipe.memory.get(),
            vcpus: recipe.vcpus.get(),
            disk_mib: recipe.disk.get(),
            image: &self.image,
            warm: &recipe.warm,
            start: &recipe.start,
            bridge: (!recipe.contexts.is_empty()).then(bridge::digest),
        };
        crate::digest::hash_json(&baked)
    }
}

fn built_in() -> Result<BTreeMap<TemplateName, RecipeText>, CatalogError> {
    let mut recipes = BTreeMap::new();
    for (name, text) in BUILT_IN {
        let recipe = RecipeText::parse(text).map_err(|source| CatalogError::Recipe {
            path: PathBuf::from(name),
            source,
        })?;
        recipes.insert(recipe.name().clone(), recipe);
    }
    Ok(recipes)
}

fn operator_recipes(directory: &Path) -> Result<BTreeMap<TemplateName, RecipeText>, CatalogError> {
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
        let recipe = RecipeText::parse(&text).map_err(|source| CatalogError::Recipe {
            path: path.clone(),
            source,
        })?;
        let name = recipe.name().clone();
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
#[path = "catalog_tests.rs"]
mod tests;
