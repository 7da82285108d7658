//! How people name templates of their own: `NAME`, `NAME:TAG`, `NAME@VERSION`; and images.

use dayfly_types::{RESERVED_TEMPLATE_NAMES, VolumeName};
use serde::Serialize;

use crate::input::Invalid;

/// The tag that a name without one means.
pub(crate) const LATEST: &str = "latest";
/// What the id of a version begins with.
pub(crate) const VERSION_PREFIX: &str = "tv-";
const TAG_CHARACTERS_MAX: usize = 50;
/// Where an image without a registry is, as users of Docker mean it.
const HUB: &str = "docker.io";
const HUB_OFFICIAL: &str = "library";

/// A version of a template of a project, as somebody names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VersionReference {
    pub name: String,
    pub which: Which,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    Tag(String),
    Version(String),
}

impl VersionReference {
    /// What a name without a tag or a version means.
    pub(crate) fn latest(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            which: Which::Tag(LATEST.to_owned()),
        }
    }

    /// Reads `NAME:TAG` and `NAME@VERSION`; nothing for a name alone.
    ///
    /// # Errors
    /// [`Invalid`].
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, Invalid> {
        if let Some((name, version)) = text.split_once('@') {
            check_name("template", name)?;
            let which = Which::Version(version_id("template", version)?.to_owned());
            let name = name.to_owned();
            return Ok(Some(Self { name, which }));
        }
        let Some((name, tag)) = text.split_once(':') else {
            return Ok(None);
        };
        check_name("template", name)?;
        check_tag(tag)?;
        Ok(Some(Self {
            name: name.to_owned(),
            which: Which::Tag(tag.to_owned()),
        }))
    }
}

impl std::fmt::Display for VersionReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.which {
            Which::Tag(tag) => write!(f, "{}:{tag}", self.name),
            Which::Version(version) => write!(f, "{}@{version}", self.name),
        }
    }
}

/// Refuses what cannot be the name of a project's template. It is a label, as those of volumes are, so
/// that the node's own names for templates are none.
pub(crate) fn check_name(field: &'static str, name: &str) -> Result<(), Invalid> {
    VolumeName::parse(name)
        .map_err(|error| Invalid::field(field, format!("is not a name of a template: {error}")))?;
    if RESERVED_TEMPLATE_NAMES.contains(&name) {
        let rule = format!("must not be one of {}", RESERVED_TEMPLATE_NAMES.join(", "));
        return Err(Invalid::field(field, rule));
    }
    Ok(())
}

pub(crate) fn check_tag(tag: &str) -> Result<(), Invalid> {
    let is_inner = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-')
    };
    let is_first = tag
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    if is_first && tag.len() <= TAG_CHARACTERS_MAX && tag.bytes().all(is_inner) {
        return Ok(());
    }
    let rule = format!(
        "must be a tag of at most {TAG_CHARACTERS_MAX} lower-case letters, digits, `.`, `_` or `-`"
    );
    Err(Invalid::field("tag", rule))
}

pub(crate) fn version_id<'a>(field: &'static str, text: &'a str) -> Result<&'a str, Invalid> {
    let rest = text.strip_prefix(VERSION_PREFIX);
    let is_plain = |rest: &&str| {
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !rest.is_empty() && rest.len() <= 40 && rest.bytes().all(is_inner)
    };
    match rest.filter(is_plain) {
        Some(_) => Ok(text),
        None => Err(Invalid::field(field, "is not the id of a version (tv-…)")),
    }
}

/// The whole address of an image: users of Docker leave out the registry, and the tag.
pub(crate) fn whole_address(image: &str) -> String {
    let first = image.split('/').next().unwrap_or(image);
    let has_host = image.contains('/') && (first.contains(['.', ':']) || first == "localhost");
    let mut address = if has_host {
        image.to_owned()
    } else if image.contains('/') {
        format!("{HUB}/{image}")
    } else {
        format!("{HUB}/{HUB_OFFICIAL}/{image}")
    };
    let last = address.rsplit('/').next().unwrap_or(&address);
    if !last.contains([':', '@']) {
        address.push(':');
        address.push_str(LATEST);
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_named_by_tag_or_id() {
        for text in ["web:1.2", "web:latest", "my-app@tv-0abc"] {
            let parsed = VersionReference::parse(text).unwrap().unwrap();
            assert_eq!(parsed.to_string(), text);
        }
        assert_eq!(VersionReference::parse("web").unwrap(), None);
        for text in [
            "a.b:1", "web:", "web:A", "web:-", "web@1", "web@tv-", ":1", "images:1",
        ] {
            assert!(VersionReference::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn images_are_named_as_users_of_docker_do() {
        for (written, meant) in [
            ("debian", "docker.io/library/debian:latest"),
            ("debian:12", "docker.io/library/debian:12"),
            ("grafana/k6", "docker.io/grafana/k6:latest"),
            ("ghcr.io/a/b", "ghcr.io/a/b:latest"),
            ("localhost/a:1", "localhost/a:1"),
            ("r.example:5000/a@sha256:00", "r.example:5000/a@sha256:00"),
        ] {
            assert_eq!(whole_address(written), meant);
        }
    }
}
