//! All recipes that a node knows: those in the program and those of its operator.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use dayfly_types::TemplateName;
use serde::Serialize;

use crate::bridge;
use crate::image::BUILDER_VERSION;
use crate::ordered::{self, OrderError, OrderedTemplates, Orders};
use crate::recipe::{
    Alias, EntryPointUse, ImageRecipe, ImageSource, Recipe, RecipeError, RecipeText,
};

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

/// Why the recipes could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("cannot read the recipe directory {path}")]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot read the templates that were ordered")]
    Orders(#[source] io::Error),
    #[error("more than {OPERATOR_RECIPES_MAX} recipes in {path}")]
    TooMany { path: PathBuf },
}

/// Why one recipe cannot be used. The others can.
#[derive(Debug, thiserror::Error)]
pub enum WrongRecipe {
    #[error("cannot read the recipe {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the recipe {path} is wrong")]
    Text {
        path: PathBuf,
        #[source]
        source: RecipeError,
    },
    #[error("the template cannot be made as it was ordered")]
    Order {
        #[source]
        source: OrderError,
    },
    #[error("two recipes are named {name}; the second is {path}")]
    Twice { name: TemplateName, path: PathBuf },
    #[error("it takes its image from the template {from}, which does not exist or is wrong")]
    NoSuchImage { from: TemplateName },
    #[error("it takes its image from itself, or over too many others")]
    Circle,
    #[error("it is a further name of {of}, which is no template with a recipe")]
    AliasOfNothing { of: TemplateName },
}

/// The recipes by name.
#[derive(Debug, Default)]
pub struct RecipeCatalog {
    recipes: BTreeMap<TemplateName, ResolvedRecipe>,
    aliases: BTreeMap<TemplateName, Alias>,
    wrong: BTreeMap<TemplateName, WrongRecipe>,
    /// Those whose file has a name that no template can have.
    nameless: Vec<WrongRecipe>,
}

/// A recipe together with the image that it ends up with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedRecipe {
    pub recipe: Recipe,
    pub image: ImageRecipe,
}

impl RecipeCatalog {
    /// Reads the built-in recipes and the `*.toml` files of a directory, if one is given. An
    /// operator's recipe takes the place of a built-in one of the same name, also when it is wrong.
    ///
    /// # Errors
    /// [`CatalogError`] when the directory cannot be read.
    pub fn load(operator_directory: Option<&Path>) -> Result<Self, CatalogError> {
        let files = operator_directory.map(recipe_files).transpose()?;
        Ok(Self::of_files(&files.unwrap_or_default()))
    }

    /// The same, and what was ordered over the API.
    ///
    /// # Errors
    /// [`CatalogError`] when one of the directories cannot be read.
    pub fn load_with_orders(
        operator_directory: Option<&Path>,
        ordered: &OrderedTemplates,
    ) -> Result<Self, CatalogError> {
        let recipes = Self::load(operator_directory)?;
        let orders = ordered.all().map_err(CatalogError::Orders)?;
        Ok(recipes.with_orders(orders))
    }

    /// The built-in recipes, and those of these files.
    #[must_use]
    pub fn of_files(files: &[PathBuf]) -> Self {
        let mut texts = Texts::default();
        for (name, text) in BUILT_IN {
            texts.add(Path::new(name), text);
        }
        let mut own = Texts::default();
        for path in files {
            own.add_file(path);
        }
        for name in own.wrong.keys() {
            texts.right.remove(name);
            own.right.remove(name);
        }
        texts.right.extend(own.right);
        texts.wrong.extend(own.wrong);
        texts.nameless.extend(own.nameless);
        Self::resolve(texts)
    }

    /// The same with templates that were ordered over the API. A recipe's name is the recipe's.
    #[must_use]
    pub fn with_orders(mut self, orders: Orders) -> Self {
        for order in &orders.read {
            let name = &order.name;
            if self.is_taken(name) {
                continue;
            }
            match ordered::resolve(order) {
                Ok(resolved) => drop(self.recipes.insert(name.clone(), resolved)),
                Err(source) => {
                    let wrong = WrongRecipe::Order { source };
                    self.wrong.insert(name.clone(), wrong);
                }
            }
        }
        for (stem, source) in orders.unreadable {
            let path = PathBuf::from(&stem);
            let wrong = WrongRecipe::Read { path, source };
            match TemplateName::parse(&stem).ok() {
                Some(name) if !self.is_taken(&name) => drop(self.wrong.insert(name, wrong)),
                Some(_) | None => self.nameless.push(wrong),
            }
        }
        self
    }

    fn is_taken(&self, name: &TemplateName) -> bool {
        self.recipes.contains_key(name)
            || self.aliases.contains_key(name)
            || self.wrong.contains_key(name)
    }

    /// Recipes that cannot be used, by the name of their template.
    pub fn wrong(&self) -> impl Iterator<Item = (&TemplateName, &WrongRecipe)> {
        self.wrong.iter()
    }

    /// Recipes that cannot be used and belong to no template.
    pub fn nameless(&self) -> impl Iterator<Item = &WrongRecipe> {
        self.nameless.iter()
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

    fn resolve(texts: Texts) -> Self {
        let Texts {
            right,
            mut wrong,
            nameless,
        } = texts;
        let (mut recipes, mut aliases) = (BTreeMap::new(), BTreeMap::new());
        for (name, text) in right {
            match text {
                RecipeText::Recipe(recipe) => drop(recipes.insert(name, *recipe)),
                RecipeText::Alias(alias) => drop(aliases.insert(name, alias)),
            }
        }
        let mut resolved = BTreeMap::new();
        for (name, recipe) in &recipes {
            match image_of(&recipes, recipe) {
                Ok(image) => {
                    let (recipe, image) = (recipe.clone(), image.clone());
                    resolved.insert(name.clone(), ResolvedRecipe { recipe, image });
                }
                Err(error) => drop(wrong.insert(name.clone(), error)),
            }
        }
        aliases.retain(|name, alias: &mut Alias| {
            let has_recipe = resolved.contains_key(&alias.of);
            if !has_recipe {
                let of = alias.of.clone();
                wrong.insert(name.clone(), WrongRecipe::AliasOfNothing { of });
            }
            has_recipe
        });
        Self {
            recipes: resolved,
            aliases,
            wrong,
            nameless,
        }
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
            #[serde(skip_serializing_if = "Option::is_none")]
            entry_point: Option<&'static str>,
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
            entry_point: (recipe.entry_point == EntryPointUse::Ignore).then_some("ignore"),
        };
        crate::digest::hash_json(&baked)
    }
}

/// Recipes as they were written, and those that could not be read.
#[derive(Debug, Default)]
struct Texts {
    right: BTreeMap<TemplateName, RecipeText>,
    wrong: BTreeMap<TemplateName, WrongRecipe>,
    nameless: Vec<WrongRecipe>,
}

impl Texts {
    fn add_file(&mut self, path: &Path) {
        match std::fs::read_to_string(path) {
            Ok(text) => self.add(path, &text),
            Err(source) => self.add_wrong(path, |path| WrongRecipe::Read { path, source }),
        }
    }

    fn add(&mut self, path: &Path, text: &str) {
        let recipe = match RecipeText::parse(text) {
            Ok(recipe) => recipe,
            Err(source) => return self.add_wrong(path, |path| WrongRecipe::Text { path, source }),
        };
        let name = recipe.name().clone();
        // Which of the two is meant nobody knows.
        if self.right.remove(&name).is_some() || self.wrong.contains_key(&name) {
            let twice = WrongRecipe::Twice {
                name: name.clone(),
                path: file_name(path),
            };
            self.wrong.insert(name, twice);
        } else {
            self.right.insert(name, recipe);
        }
    }

    /// What cannot be read has the name of its file.
    fn add_wrong(&mut self, path: &Path, error: impl FnOnce(PathBuf) -> WrongRecipe) {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let error = error(file_name(path));
        match stem.and_then(|stem| TemplateName::parse(stem).ok()) {
            Some(name) => drop(self.wrong.insert(name, error)),
            None => self.nameless.push(error),
        }
    }
}

/// Who uses a template is told what is wrong with it, and not where it lies.
fn file_name(path: &Path) -> PathBuf {
    path.file_name().unwrap_or(path.as_os_str()).into()
}

/// The files of a directory that are recipes.
///
/// # Errors
/// [`CatalogError`].
pub fn recipe_files(directory: &Path) -> Result<Vec<PathBuf>, CatalogError> {
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
    Ok(paths)
}

/// Follows `from` until a recipe with an image of its own.
fn image_of<'a>(
    recipes: &'a BTreeMap<TemplateName, Recipe>,
    recipe: &'a Recipe,
) -> Result<&'a ImageRecipe, WrongRecipe> {
    let mut current = recipe;
    for _ in 0..BORROW_DEPTH_MAX {
        match &current.source {
            ImageSource::Own(image) => return Ok(image),
            ImageSource::Of(from) => {
                let missing = || WrongRecipe::NoSuchImage { from: from.clone() };
                current = recipes.get(from).ok_or_else(missing)?;
            }
        }
    }
    Err(WrongRecipe::Circle)
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
