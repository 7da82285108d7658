//! What a template is made from: a small TOML file that a person writes.
//!
//! Everything is checked here once, so that the code behind it can hand package names to a program
//! and template names to the file system without a second look.

use dayfly_types::{DiskMib, InvalidId, InvalidSize, MemoryMib, TemplateName, Vcpus};
use serde::{Deserialize, Serialize};

/// Every key that a recipe may have.
const KEYS: [&str; 11] = [
    "name",
    "description",
    "version",
    "memory_mib",
    "vcpus",
    "disk_mib",
    "packages",
    "from",
    "setup",
    "warm",
    "start",
];
/// Enough for any recipe that a person still reads.
const RECIPE_BYTES_MAX: usize = 256 << 10;
const PACKAGES_MAX: usize = 1000;
const COMMANDS_MAX: usize = 64;

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
}

/// Where a recipe's disk image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageSource {
    /// Built from packages and a setup script.
    Own(ImageRecipe),
    /// The image of another template; only the warm-up differs.
    Of(TemplateName),
}

/// The part of a recipe that decides what is on the disk. Equal ones share one image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageRecipe {
    pub version: u32,
    /// Sorted, without repeats: order means nothing to the package manager.
    pub packages: Vec<String>,
    /// Shell text that runs in the new root as its root user.
    pub setup: Option<String>,
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
    #[error("the value of {key:?} is out of range")]
    BadSize {
        key: &'static str,
        #[source]
        source: InvalidSize,
    },
    #[error("{key:?} has more than {limit} entries")]
    TooMany { key: &'static str, limit: usize },
    #[error("{package:?} in \"packages\" is not the name of a Debian package")]
    BadPackage { package: String },
    #[error("{key:?} cannot stand beside \"from\": the image is the other template's")]
    ImageIsBorrowed { key: &'static str },
}

/// The file as it is written; types only, no rules.
#[derive(Debug, Deserialize)]
struct RecipeFile {
    name: String,
    #[serde(default)]
    description: String,
    version: u32,
    memory_mib: u64,
    vcpus: u64,
    disk_mib: u64,
    packages: Option<Vec<String>>,
    from: Option<String>,
    setup: Option<String>,
    #[serde(default)]
    warm: Vec<String>,
    #[serde(default)]
    start: Vec<String>,
}

impl Recipe {
    /// Parses and checks a recipe.
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
        check_keys(&table)?;
        let file: RecipeFile = read_keys(table)?;
        let size = |key| move |source| RecipeError::BadSize { key, source };
        Ok(Self {
            name: parse_name("name", &file.name)?,
            description: file.description.clone(),
            version: file.version,
            memory: MemoryMib::new(file.memory_mib).map_err(size("memory_mib"))?,
            vcpus: Vcpus::new(file.vcpus).map_err(size("vcpus"))?,
            disk: DiskMib::new(file.disk_mib).map_err(size("disk_mib"))?,
            source: image_source(&file)?,
            warm: limited("warm", file.warm)?,
            start: limited("start", file.start)?,
        })
    }
}

fn check_keys(table: &toml::Table) -> Result<(), RecipeError> {
    match table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        Some(key) => Err(RecipeError::UnknownKey { key: key.clone() }),
        None => Ok(()),
    }
}

/// Reads the table, and finds the key to blame when that fails: the parser's own message names
/// types, which a person who wrote a recipe need not know.
fn read_keys(table: toml::Table) -> Result<RecipeFile, RecipeError> {
    const REQUIRED: [&str; 5] = ["name", "version", "memory_mib", "vcpus", "disk_mib"];
    if let Some(key) = REQUIRED.into_iter().find(|key| !table.contains_key(*key)) {
        return Err(RecipeError::MissingKey { key });
    }
    let wrong = table
        .iter()
        .find(|(key, value)| !has_right_type(key, value));
    if let Some((key, _)) = wrong {
        return Err(RecipeError::WrongType { key: key.clone() });
    }
    table
        .try_into()
        .map_err(|error| RecipeError::Syntax(Box::new(error)))
}

fn has_right_type(key: &str, value: &toml::Value) -> bool {
    match key {
        "version" => value
            .as_integer()
            .is_some_and(|number| u32::try_from(number).is_ok()),
        "memory_mib" | "vcpus" | "disk_mib" => value.as_integer().is_some_and(|n| n >= 0),
        "packages" | "warm" | "start" => value
            .as_array()
            .is_some_and(|items| items.iter().all(toml::Value::is_str)),
        _ => value.is_str(),
    }
}

fn image_source(file: &RecipeFile) -> Result<ImageSource, RecipeError> {
    let Some(from) = &file.from else {
        let packages = file.packages.clone().unwrap_or_default();
        let packages = checked_packages(packages)?;
        let setup = file.setup.clone().filter(|text| !text.trim().is_empty());
        return Ok(ImageSource::Own(ImageRecipe {
            version: file.version,
            packages,
            setup,
        }));
    };
    if file.packages.is_some() {
        return Err(RecipeError::ImageIsBorrowed { key: "packages" });
    }
    if file.setup.is_some() {
        return Err(RecipeError::ImageIsBorrowed { key: "setup" });
    }
    parse_name("from", from).map(ImageSource::Of)
}

fn parse_name(key: &'static str, text: &str) -> Result<TemplateName, RecipeError> {
    TemplateName::parse(text).map_err(|source| RecipeError::BadName { key, source })
}

fn checked_packages(packages: Vec<String>) -> Result<Vec<String>, RecipeError> {
    let mut packages = limited_to("packages", packages, PACKAGES_MAX)?;
    if let Some(package) = packages.iter().find(|package| !is_package_name(package)) {
        return Err(RecipeError::BadPackage {
            package: package.clone(),
        });
    }
    packages.sort();
    packages.dedup();
    Ok(packages)
}

/// Debian policy 5.6.1. Nothing that passes can be taken for an option or a pattern.
fn is_package_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
    let first = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    // A trailing hyphen or plus asks the package manager to remove or to keep.
    let ends_well = !text.ends_with(['-', '+']) || text.ends_with("++");
    text.len() >= 2
        && text.len() <= 128
        && text.bytes().next().is_some_and(first)
        && text.bytes().all(inner)
        && ends_well
}

fn limited(key: &'static str, items: Vec<String>) -> Result<Vec<String>, RecipeError> {
    limited_to(key, items, COMMANDS_MAX)
}

fn limited_to(
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
mod tests {
    use super::*;

    const LEAST: &str = "name = 'x'\nversion = 1\nmemory_mib = 512\nvcpus = 1\ndisk_mib = 1024\n";

    fn error_text(more: &str) -> String {
        Recipe::parse(&format!("{LEAST}{more}"))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn least_recipe_is_enough() {
        let recipe = Recipe::parse(LEAST).unwrap();
        assert_eq!(recipe.name.as_str(), "x");
        assert!(recipe.warm.is_empty() && recipe.start.is_empty());
    }

    #[test]
    fn errors_name_the_key() {
        assert!(error_text("pakages = []").contains("pakages"));
        assert!(error_text("packages = 'git'").contains("packages"));
        assert!(error_text("warm = [1]").contains("warm"));
        assert!(error_text("from = '../x'").contains("from"));
        assert!(error_text("from = 'base'\npackages = []").contains("packages"));
        assert!(error_text("from = 'base'\nsetup = 'true'").contains("setup"));
        let missing = Recipe::parse("name = 'x'").unwrap_err().to_string();
        assert!(missing.contains("version"), "{missing}");
        let small = LEAST.replace("512", "1");
        assert!(
            Recipe::parse(&small)
                .unwrap_err()
                .to_string()
                .contains("memory_mib")
        );
        let negative = LEAST.replace("1024", "-5");
        assert!(
            Recipe::parse(&negative)
                .unwrap_err()
                .to_string()
                .contains("disk_mib")
        );
    }

    #[test]
    fn hostile_package_names_are_refused() {
        for package in [
            "-oDpkg::x",
            "a b",
            "a,b",
            "git/sid",
            "git-",
            "/etc/x.deb",
            "?all",
            "",
            "git=",
        ] {
            let text = format!("{LEAST}packages = [{package:?}]");
            assert!(Recipe::parse(&text).is_err(), "{package:?} was accepted");
        }
        let text = format!("{LEAST}packages = ['g++', 'libstdc++6', 'python3.11']");
        assert!(Recipe::parse(&text).is_ok());
    }

    #[test]
    fn package_order_means_nothing() {
        let one = Recipe::parse(&format!("{LEAST}packages = ['git', 'curl']")).unwrap();
        let two = Recipe::parse(&format!("{LEAST}packages = ['curl', 'git', 'curl']")).unwrap();
        assert_eq!(one, two);
    }
}
