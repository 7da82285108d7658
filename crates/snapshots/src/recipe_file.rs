//! A recipe as it is written: its keys and their types, no rules.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::recipe::RecipeError;

/// Every key that a recipe may have.
const KEYS: [&str; 18] = [
    "name",
    "description",
    "version",
    "memory_mib",
    "vcpus",
    "disk_mib",
    "packages",
    "node",
    "pip",
    "npm",
    "from",
    "image",
    "entry_point",
    "setup",
    "warm",
    "start",
    "run",
    "contexts",
];
const REQUIRED: [&str; 5] = ["name", "version", "memory_mib", "vcpus", "disk_mib"];
const ALIAS_KEYS: [&str; 3] = ["name", "description", "alias_of"];
const ALIAS_REQUIRED: [&str; 2] = ["name", "alias_of"];

#[derive(Debug, Deserialize)]
pub(crate) struct RecipeFile {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) version: u32,
    pub(crate) memory_mib: u64,
    pub(crate) vcpus: u64,
    pub(crate) disk_mib: u64,
    pub(crate) packages: Option<Vec<String>>,
    pub(crate) node: Option<String>,
    pub(crate) pip: Option<Vec<String>>,
    pub(crate) npm: Option<Vec<String>>,
    pub(crate) from: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) entry_point: Option<String>,
    pub(crate) setup: Option<String>,
    #[serde(default)]
    pub(crate) warm: Vec<String>,
    #[serde(default)]
    pub(crate) start: Vec<String>,
    pub(crate) run: Option<String>,
    #[serde(default)]
    pub(crate) contexts: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct AliasFile {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) alias_of: String,
}

impl RecipeFile {
    pub(crate) fn read(table: toml::Table) -> Result<Self, RecipeError> {
        if let Some(key) = unknown_key(&table, &KEYS) {
            return Err(RecipeError::UnknownKey { key });
        }
        read_keys(table, &REQUIRED)
    }
}

impl AliasFile {
    pub(crate) fn read(table: toml::Table) -> Result<Self, RecipeError> {
        if let Some(key) = unknown_key(&table, &ALIAS_KEYS) {
            return Err(if KEYS.contains(&key.as_str()) {
                RecipeError::TemplateIsBorrowed { key }
            } else {
                RecipeError::UnknownKey { key }
            });
        }
        read_keys(table, &ALIAS_REQUIRED)
    }
}

fn unknown_key(table: &toml::Table, known: &[&str]) -> Option<String> {
    let unknown = table.keys().find(|key| !known.contains(&key.as_str()));
    unknown.cloned()
}

/// Reads the table, and finds the key to blame when that fails: the parser's own message names
/// types, which a person who wrote a recipe need not know.
fn read_keys<T: DeserializeOwned>(
    table: toml::Table,
    required: &[&'static str],
) -> Result<T, RecipeError> {
    if let Some(key) = required.iter().find(|key| !table.contains_key(**key)) {
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
        "packages" | "pip" | "npm" | "warm" | "start" | "contexts" => value
            .as_array()
            .is_some_and(|items| items.iter().all(toml::Value::is_str)),
        _ => value.is_str(),
    }
}
