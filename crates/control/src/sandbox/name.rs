//! Names of sandboxes, which stand for them wherever a path names one.
//!
//! A name is put for its id before a request is checked and routed: nothing behind that knows of
//! names, and a key that is for one sandbox is for it under both.

use dayfly_types::{ProjectId, SandboxId};
use http::Uri;
use serde::{Deserialize, Serialize};

use crate::http::address::with_path;
use crate::store::{Store, StoreError};

/// What the ids of all sandboxes begin with. A name that did could be taken for one that is gone.
const ID_MARK: &str = "sb-";
const PLACE: &str = "/v1/sandboxes/";

/// What a project calls one of its sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxName(String);

/// What a name must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is 1 to 50 of a-z, 0-9 and inner hyphens, and does not begin with `sb-`, as ids do")]
pub struct NotAName;

impl SandboxName {
    /// Parses a text that came from outside.
    ///
    /// # Errors
    /// [`NotAName`].
    pub fn parse(text: &str) -> Result<Self, NotAName> {
        let is_name = !text.starts_with(ID_MARK) && SandboxId::parse(text).is_ok();
        is_name.then(|| Self(text.to_owned())).ok_or(NotAName)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SandboxName {
    type Error = NotAName;

    fn try_from(text: String) -> Result<Self, NotAName> {
        Self::parse(&text)
    }
}

impl From<SandboxName> for String {
    fn from(name: SandboxName) -> Self {
        name.0
    }
}

/// The sandbox that is meant by a text where an id may stand: the one that the project calls so, or
/// the text itself.
///
/// # Errors
/// [`StoreError`].
pub(crate) async fn meant(
    store: &Store,
    project: &ProjectId,
    text: SandboxId,
) -> Result<SandboxId, StoreError> {
    let Ok(name) = SandboxName::parse(text.as_str()) else {
        return Ok(text);
    };
    let found = store.sandbox_named(project, &name).await?;
    Ok(found.unwrap_or(text))
}

/// The sandbox that an address names by name, and the address with its id instead. `None` when it
/// names none of this project so, or another than the one that the caller's key is for.
///
/// # Errors
/// [`StoreError`].
pub(crate) async fn in_address(
    store: &Store,
    project: &ProjectId,
    only: Option<&SandboxId>,
    address: &Uri,
) -> Result<Option<(SandboxId, Uri)>, StoreError> {
    let Some(name) = name_in(address.path()) else {
        return Ok(None);
    };
    let found = store.sandbox_named(project, &name).await?;
    let id = found.filter(|id| only.is_none_or(|only| only == id));
    Ok(id.and_then(|id| {
        let address = put(address, &name, &id)?;
        Some((id, address))
    }))
}

fn name_in(path: &str) -> Option<SandboxName> {
    let rest = path.strip_prefix(PLACE)?;
    SandboxName::parse(rest.split('/').next()?).ok()
}

fn put(address: &Uri, name: &SandboxName, id: &SandboxId) -> Option<Uri> {
    let whole = address.path_and_query()?.as_str();
    let rest = whole.get(PLACE.len() + name.as_str().len()..)?;
    with_path(address, &format!("{PLACE}{id}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_no_name() {
        for name in ["notebook", "team-7", "a"] {
            assert!(SandboxName::parse(name).is_ok(), "{name}");
        }
        let long = "a".repeat(51);
        for name in ["", "Notebook", "a b", "-a", "a/b", "sb-local-1", &long] {
            assert_eq!(SandboxName::parse(name), Err(NotAName), "{name}");
        }
    }

    #[test]
    fn the_rest_of_an_address_stays() {
        let id = SandboxId::parse("sb-local-1").unwrap();
        for (asked, meant) in [
            ("/v1/sandboxes/box", "/v1/sandboxes/sb-local-1"),
            (
                "/v1/sandboxes/box/fs?path=%2Fbox",
                "/v1/sandboxes/sb-local-1/fs?path=%2Fbox",
            ),
        ] {
            let address: Uri = asked.parse().unwrap();
            let name = name_in(address.path()).unwrap();
            assert_eq!(put(&address, &name, &id).unwrap().to_string(), meant);
        }
        for path in [
            "/v1/sandboxes",
            "/v1/sandboxes/",
            "/v1/snapshots/box",
            "/v1/sandboxes/sb-x",
        ] {
            assert_eq!(name_in(path), None, "{path}");
        }
    }
}
