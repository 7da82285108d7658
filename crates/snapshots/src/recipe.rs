//! What a template is made from: a small TOML file that a person writes.
//!
//! Everything is checked here once, so that the code behind it can hand package names to a program
//! and template names to the file system without a second look.

use dayfly_types::container_image::MadeImage;
use dayfly_types::{
    ContextLanguage, DiskMib, InvalidId, InvalidSize, MemoryMib, ProjectId,
    RESERVED_TEMPLATE_NAMES, RunMeaning, SnapshotId, TemplateName, Vcpus,
};
use serde::Serialize;

use crate::image_address::{ImageAddress, InvalidImageAddress};
use crate::package_name;
use crate::recipe_file::{AliasFile, RecipeFile};

/// Enough for any recipe that a person still reads.
pub(crate) const RECIPE_BYTES_MAX: usize = 256 << 10;
const PACKAGES_MAX: usize = 1000;
const COMMANDS_MAX: usize = 64;
const CONTEXTS_MAX: usize = 16;

/// What a recipe file says: how to make a template, or by what further name one is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipeText {
    Recipe(Box<Recipe>),
    Alias(Alias),
}

/// A further name of a template. There is no bake of its own behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    pub name: TemplateName,
    pub description: String,
    pub of: TemplateName,
}

/// A template's recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    pub name: TemplateName,
    pub description: String,
    /// Raised to build the disk image anew from unchanged words.
    pub version: u32,
    pub memory: MemoryMib,
    pub vcpus: Vcpus,
    pub disk: DiskMib,
    pub source: ImageSource,
    /// Shell commands that run in the booted guest before the capture, one after the other, when
    /// those of `start` are running already. Each must succeed, so one can wait for a server.
    pub warm: Vec<String>,
    /// Shell commands that are started in the guest before the capture and left running, in every
    /// sandbox of the template.
    pub start: Vec<String>,
    /// What `run` means in its sandboxes. Only declared: nothing on the disk follows from it.
    pub run: RunMeaning,
    /// Whether the program that an image of a container is for runs in every sandbox.
    pub entry_point: EntryPointUse,
    /// Languages of the context bridge, which a bake installs when there are any.
    pub contexts: Vec<ContextLanguage>,
}

/// What is done with the entry point of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryPointUse {
    /// It is started before the capture and left running.
    Start,
    Ignore,
}

/// Where a recipe's disk image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageSource {
    Own(ImageRecipe),
    /// The image of another template; only the warm-up differs.
    Of(TemplateName),
}

/// The part of a recipe that decides what is on the disk. Equal ones share one image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ImageRecipe {
    /// Built from packages and a setup script.
    Packages(PackageImage),
    /// The image of a container.
    Container(ContainerImage),
    /// What a sandbox had on its disk.
    Snapshot(SnapshotImage),
}

impl ImageRecipe {
    /// The project that ordered it; nobody, when it is one of the operator's.
    #[must_use]
    pub fn project(&self) -> Option<&ProjectId> {
        match self {
            Self::Packages(_) => None,
            Self::Container(image) => image.project.as_ref(),
            Self::Snapshot(image) => Some(&image.project),
        }
    }
}

/// The disk of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotImage {
    pub project: ProjectId,
    pub snapshot: SnapshotId,
    /// What is said of its use.
    pub about: Box<MadeImage>,
}

/// A disk with the layers of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContainerImage {
    pub version: u32,
    pub image: ImageAddress,
    /// The project that named it; nobody, when the operator wrote it into a recipe. What one project
    /// may fetch is no other's to use, so each has a disk of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
}

/// A Debian that is made here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackageImage {
    pub version: u32,
    /// Sorted, without repeats: order means nothing to the package manager.
    pub packages: Vec<String>,
    /// What comes from the registries of languages instead of Debian.
    pub registries: RegistryPackages,
    /// Shell text that runs in the new root as its root user.
    pub setup: Option<String>,
}

/// Packages by the names that the registries' own clients know.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RegistryPackages {
    /// The version of Node, which brings npm along.
    pub node: Option<String>,
    pub pip: Vec<String>,
    pub npm: Vec<String>,
}

impl RegistryPackages {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Why a text is not a recipe.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    #[error("the recipe is not TOML")]
    Syntax(#[source] Box<toml::de::Error>),
    #[error("the recipe is longer than {RECIPE_BYTES_MAX} bytes")]
    TooLong,
    #[error("unknown key {key:?} in the recipe")]
    UnknownKey { key: String },
    #[error("the recipe has no key {key:?}")]
    MissingKey { key: &'static str },
    #[error("the value of {key:?} has the wrong type")]
    WrongType { key: String },
    #[error("the value of {key:?} is not a template name")]
    BadName {
        key: &'static str,
        #[source]
        source: InvalidId,
    },
    #[error("a template cannot be called {name:?}: the API has a path of that name")]
    ReservedName { name: String },
    #[error("the value of {key:?} is out of range")]
    BadSize {
        key: &'static str,
        #[source]
        source: InvalidSize,
    },
    #[error("{key:?} has more than {limit} entries")]
    TooMany { key: &'static str, limit: usize },
    #[error("{word:?} in {key:?} is not one of: {known}")]
    UnknownWord {
        key: &'static str,
        word: String,
        known: &'static str,
    },
    #[error("{package:?} in {key:?} is not the name of a package")]
    BadPackage { key: &'static str, package: String },
    #[error("the value of \"image\" is not the address of an image")]
    BadImage(#[source] InvalidImageAddress),
    #[error("{key:?} is about the image of a container, and there is no \"image\"")]
    NoImage { key: &'static str },
    #[error("{key:?} needs {needed}")]
    Needs {
        key: &'static str,
        needed: &'static str,
    },
    #[error("{key:?} cannot stand beside {other:?}: the disk is as it is there")]
    ImageIsBorrowed {
        key: &'static str,
        other: &'static str,
    },
    #[error("{key:?} cannot stand beside \"alias_of\": the template is the other one")]
    TemplateIsBorrowed { key: String },
}

impl RecipeText {
    /// Parses and checks the text of a recipe file.
    ///
    /// # Errors
    /// [`RecipeError`], which names the key that is wrong.
    pub fn parse(text: &str) -> Result<Self, RecipeError> {
        if text.len() > RECIPE_BYTES_MAX {
            return Err(RecipeError::TooLong);
        }
        let table: toml::Table = text
            .parse()
            .map_err(|error| RecipeError::Syntax(Box::new(error)))?;
        if table.contains_key("alias_of") {
            let alias = Alias::check(AliasFile::read(table)?)?;
            return Ok(Self::Alias(alias));
        }
        let recipe = Recipe::check(RecipeFile::read(table)?)?;
        Ok(Self::Recipe(Box::new(recipe)))
    }

    #[must_use]
    pub fn name(&self) -> &TemplateName {
        match self {
            Self::Recipe(recipe) => &recipe.name,
            Self::Alias(alias) => &alias.name,
        }
    }
}

impl Alias {
    fn check(file: AliasFile) -> Result<Self, RecipeError> {
        Ok(Self {
            name: parse_name("name", &file.name)?,
            of: parse_name("alias_of", &file.alias_of)?,
            description: file.description,
        })
    }
}

impl Recipe {
    fn check(file: RecipeFile) -> Result<Self, RecipeError> {
        let size = |key| move |source| RecipeError::BadSize { key, source };
        let contexts = parse_contexts(&file.contexts)?;
        let run = parse_run(file.run.as_deref())?;
        if run == RunMeaning::PythonContext && !contexts.contains(&ContextLanguage::Python) {
            return Err(RecipeError::Needs {
                key: "run",
                needed: "\"python\" in \"contexts\" to mean that",
            });
        }
        Ok(Self {
            name: parse_name("name", &file.name)?,
            version: file.version,
            memory: MemoryMib::new(file.memory_mib).map_err(size("memory_mib"))?,
            vcpus: Vcpus::new(file.vcpus).map_err(size("vcpus"))?,
            disk: DiskMib::new(file.disk_mib).map_err(size("disk_mib"))?,
            source: image_source(&file)?,
            warm: limited("warm", file.warm, COMMANDS_MAX)?,
            start: limited("start", file.start, COMMANDS_MAX)?,
            description: file.description,
            entry_point: entry_point(file.entry_point.as_deref(), file.image.is_some())?,
            run,
            contexts,
        })
    }
}

fn image_source(file: &RecipeFile) -> Result<ImageSource, RecipeError> {
    if let Some(image) = &file.image {
        nothing_beside("image", file)?;
        let image = ImageAddress::parse(image).map_err(RecipeError::BadImage)?;
        let version = file.version;
        let container = ContainerImage {
            version,
            image,
            project: None,
        };
        return Ok(ImageSource::Own(ImageRecipe::Container(container)));
    }
    if let Some(from) = &file.from {
        nothing_beside("from", file)?;
        return parse_name("from", from).map(ImageSource::Of);
    }
    let packages = names("packages", &file.packages, package_name::is_debian)?;
    let registries = registry_packages(file, &packages)?;
    let setup = file.setup.clone().filter(|text| !text.trim().is_empty());
    let packages = PackageImage {
        version: file.version,
        packages,
        registries,
        setup,
    };
    Ok(ImageSource::Own(ImageRecipe::Packages(packages)))
}

/// Refuses keys about a disk that another key decides.
fn nothing_beside(other: &'static str, file: &RecipeFile) -> Result<(), RecipeError> {
    let own = [
        ("from", file.from.is_some() && other != "from"),
        ("packages", file.packages.is_some()),
        ("node", file.node.is_some()),
        ("pip", file.pip.is_some()),
        ("npm", file.npm.is_some()),
        ("setup", file.setup.is_some()),
    ];
    match own.into_iter().find(|(_, is_there)| *is_there) {
        Some((key, _)) => Err(RecipeError::ImageIsBorrowed { key, other }),
        None => Ok(()),
    }
}

fn entry_point(word: Option<&str>, has_image: bool) -> Result<EntryPointUse, RecipeError> {
    let key = "entry_point";
    match word {
        Some(_) if !has_image => Err(RecipeError::NoImage { key }),
        None | Some("start") => Ok(EntryPointUse::Start),
        Some("ignore") => Ok(EntryPointUse::Ignore),
        Some(word) => Err(RecipeError::UnknownWord {
            key,
            word: word.to_owned(),
            known: "start, ignore",
        }),
    }
}

fn registry_packages(
    file: &RecipeFile,
    packages: &[String],
) -> Result<RegistryPackages, RecipeError> {
    let needs = |key, needed| Err(RecipeError::Needs { key, needed });
    let pip = names("pip", &file.pip, package_name::is_python)?;
    let npm = names("npm", &file.npm, package_name::is_node)?;
    if let Some(version) = &file.node
        && !package_name::is_version(version)
    {
        return needs("node", "a whole version, such as \"24.1.0\"");
    }
    let has = |name: &str| packages.iter().any(|package| package == name);
    if !has("python3-pip") && (file.node.is_some() || !pip.is_empty()) {
        let key = if pip.is_empty() { "node" } else { "pip" };
        return needs(key, "\"python3-pip\" in \"packages\"");
    }
    if !npm.is_empty() && file.node.is_none() && !has("npm") {
        return needs("npm", "the key \"node\"");
    }
    Ok(RegistryPackages {
        node: file.node.clone(),
        pip,
        npm,
    })
}

fn parse_name(key: &'static str, text: &str) -> Result<TemplateName, RecipeError> {
    if key == "name" && RESERVED_TEMPLATE_NAMES.contains(&text) {
        let name = text.to_owned();
        return Err(RecipeError::ReservedName { name });
    }
    TemplateName::parse(text).map_err(|source| RecipeError::BadName { key, source })
}

fn parse_run(word: Option<&str>) -> Result<RunMeaning, RecipeError> {
    let Some(word) = word else {
        return Ok(RunMeaning::default());
    };
    RunMeaning::parse(word).ok_or_else(|| RecipeError::UnknownWord {
        key: "run",
        word: word.to_owned(),
        known: "shell, python, python_context",
    })
}

fn parse_contexts(words: &[String]) -> Result<Vec<ContextLanguage>, RecipeError> {
    if words.len() > CONTEXTS_MAX {
        return Err(RecipeError::TooMany {
            key: "contexts",
            limit: CONTEXTS_MAX,
        });
    }
    let parse = |word: &String| {
        ContextLanguage::parse(word).ok_or_else(|| RecipeError::UnknownWord {
            key: "contexts",
            word: word.clone(),
            known: "python, bash, javascript",
        })
    };
    let mut languages: Vec<ContextLanguage> = words.iter().map(parse).collect::<Result<_, _>>()?;
    languages.sort_unstable();
    languages.dedup();
    Ok(languages)
}

/// Checked names, sorted and without repeats.
fn names(
    key: &'static str,
    written: &Option<Vec<String>>,
    is_name: impl Fn(&str) -> bool,
) -> Result<Vec<String>, RecipeError> {
    let mut names = limited(key, written.clone().unwrap_or_default(), PACKAGES_MAX)?;
    if let Some(package) = names.iter().find(|name| !is_name(name)) {
        let package = package.clone();
        return Err(RecipeError::BadPackage { key, package });
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn limited(
    key: &'static str,
    items: Vec<String>,
    limit: usize,
) -> Result<Vec<String>, RecipeError> {
    if items.len() > limit {
        return Err(RecipeError::TooMany { key, limit });
    }
    Ok(items)
}

#[cfg(test)]
#[path = "recipe_tests.rs"]
mod tests;
