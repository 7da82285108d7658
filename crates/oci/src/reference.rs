//! What somebody writes to name an image of a registry.

use std::fmt;
use std::str::FromStr;

use dayfly_types::limits::{IMAGE_NAME_BYTES_MAX, IMAGE_REFERENCE_BYTES_MAX, IMAGE_TAG_BYTES_MAX};
use dayfly_types::registry_host::{DOCKER_HUB, DOCKER_HUB_API};
use url::Url;

use crate::digest::{Digest, InvalidDigest};

const DOCKER_HUB_FOLDER: &str = "library/";

/// Why a text names no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReference {
    #[error("a reference of an image has at most {IMAGE_REFERENCE_BYTES_MAX} bytes")]
    TooLong,
    #[error("{text:?} names no registry; write it in full, for example {example}")]
    NoRegistry { text: String, example: String },
    #[error("{text:?} names neither a tag nor a digest; write for example {text}:latest")]
    NoVersion { text: String },
    #[error("{host:?} is not a host, or a host and a port")]
    Host { host: String },
    #[error(
        "{repository:?} is not a repository: lower-case letters and digits, joined by one of . _ __ - and separated by /, at most {IMAGE_NAME_BYTES_MAX} bytes with the registry"
    )]
    Repository { repository: String },
    #[error(
        "{tag:?} is not a tag: letters, digits, _ . and -, not beginning with . or -, at most {IMAGE_TAG_BYTES_MAX} bytes"
    )]
    Tag { tag: String },
    #[error("the digest of the reference cannot be used")]
    Digest(#[from] InvalidDigest),
}

/// An image of a registry, by tag or digest. With both, the digest decides.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ImageReference {
    /// As it was written: a host, perhaps with a port.
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl ImageReference {
    /// # Errors
    /// [`InvalidReference`]
    pub fn parse(text: &str) -> Result<Self, InvalidReference> {
        if text.len() > IMAGE_REFERENCE_BYTES_MAX {
            return Err(InvalidReference::TooLong);
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(Digest::parse(digest)?)),
            None => (text, None),
        };
        let (registry, path) = split_registry(rest)?;
        let (path, tag) = match path.split_once(':') {
            Some((path, tag)) => (path, Some(check_tag(tag)?)),
            None => (path, None),
        };
        if tag.is_none() && digest.is_none() {
            let text = text.to_owned();
            return Err(InvalidReference::NoVersion { text });
        }
        let is_in_folder = registry == DOCKER_HUB && !path.contains('/');
        let folder = if is_in_folder { DOCKER_HUB_FOLDER } else { "" };
        let repository = format!("{folder}{path}");
        let is_short = registry.len() + 1 + repository.len() <= IMAGE_NAME_BYTES_MAX;
        if !is_short || !repository.split('/').all(is_path_component) {
            return Err(InvalidReference::Repository { repository });
        }
        Ok(Self {
            registry: registry.to_owned(),
            repository,
            tag,
            digest,
        })
    }

    /// As it was written.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The host, perhaps with a port, that has the API of this registry.
    #[must_use]
    pub fn api_host(&self) -> &str {
        match self.registry.as_str() {
            DOCKER_HUB => DOCKER_HUB_API,
            other => other,
        }
    }

    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// What a registry is asked for.
    pub(crate) fn version(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, tag) => tag.clone().unwrap_or_default(),
        }
    }
}

/// The part before the first slash is a registry when it cannot be a part of a repository.
fn split_registry(text: &str) -> Result<(&str, &str), InvalidReference> {
    let found = text.split_once('/').filter(|(first, _)| {
        first.contains(['.', ':', '[']) || *first == "localhost" || has_upper_case(first)
    });
    let Some((registry, path)) = found else {
        let has_folder = text.contains('/');
        let folder = if has_folder { "" } else { DOCKER_HUB_FOLDER };
        return Err(InvalidReference::NoRegistry {
            text: text.to_owned(),
            example: format!("{DOCKER_HUB}/{folder}{text}"),
        });
    };
    if is_host(registry) {
        return Ok((registry, path));
    }
    let host = registry.to_owned();
    Err(InvalidReference::Host { host })
}

fn has_upper_case(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// One that an address can be made of, and that means what it looks like: no `127.1`, no `0x7f.1`,
/// no user before it.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_port = |port: &str| {
        let number = port.parse::<u16>().ok();
        number.is_some_and(|number| number > 0 && number.to_string() == port)
    };
    let is_component = |part: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !part.is_empty() && part.bytes().all(is_letter) && !part.starts_with('-')
    };
    let is_address = host.starts_with('[') && host.ends_with(']');
    if !port.is_none_or(is_port) || !(is_address || host.split('.').all(is_component)) {
        return false;
    }
    let url = Url::parse(&format!("https://{host}/"));
    url.is_ok_and(|url| url.host_str() == Some(&host.to_ascii_lowercase()))
}

/// Letters and digits, joined by a dot, one or two underscores, or any number of hyphens.
fn is_path_component(text: &str) -> bool {
    let is_plain = |byte: char| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut joints = text.split(is_plain).filter(|joint| !joint.is_empty());
    let is_joint =
        |joint: &str| matches!(joint, "." | "_" | "__") || joint.bytes().all(|byte| byte == b'-');
    text.starts_with(is_plain) && text.ends_with(is_plain) && joints.all(is_joint)
}

fn check_tag(tag: &str) -> Result<String, InvalidReference> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_first = tag.bytes().next().is_some_and(is_word);
    let is_rest = |byte: u8| is_word(byte) || byte == b'.' || byte == b'-';
    if is_first && tag.len() <= IMAGE_TAG_BYTES_MAX && tag.bytes().all(is_rest) {
        return Ok(tag.to_owned());
    }
    let tag = tag.to_owned();
    Err(InvalidReference::Tag { tag })
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

impl FromStr for ImageReference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn what_is_written_in_full_is_given_back() {
        for text in [
            "registry.example:5000/team/app:tag".to_owned(),
            format!("registry.example/team/app@{DIGEST}"),
            format!("registry.example/team/app:1.2-a_B@{DIGEST}"),
            "docker.io/library/debian:12".to_owned(),
            "localhost/app:1".to_owned(),
            "localhost:5000/app:1".to_owned(),
            "127.0.0.1:5000/a/b/c:latest".to_owned(),
            "[::1]:5000/app:1".to_owned(),
            "[2001:db8::1]/app:1".to_owned(),
            "Registry.Example/app:1".to_owned(),
            "ghcr.io/a--b/c__d.e_f:1".to_owned(),
        ] {
            let found = ImageReference::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(found.to_string(), text);
        }
    }

    #[test]
    fn the_parts_are_what_a_registry_is_asked_for() {
        let both = format!("registry.example:5000/team/app:tag@{DIGEST}");
        let found = ImageReference::parse(&both).unwrap();
        assert_eq!(found.api_host(), "registry.example:5000");
        assert_eq!(found.repository(), "team/app");
        assert_eq!(found.tag(), Some("tag"));
        assert_eq!(found.version(), DIGEST);
        let hub = ImageReference::parse("docker.io/debian:12").unwrap();
        assert_eq!(hub.api_host(), "registry-1.docker.io");
        assert_eq!(hub.registry(), "docker.io");
        assert_eq!(hub.repository(), "library/debian");
        assert_eq!(hub.version(), "12");
    }

    #[test]
    fn nobody_is_taken_to_a_registry_that_was_not_named() {
        let told = |text: &str| ImageReference::parse(text).unwrap_err().to_string();
        assert!(told("debian:12").contains("docker.io/library/debian:12"));
        assert!(told("team/app:12").contains("docker.io/team/app:12"));
        assert!(told("").contains("names no registry"));
        assert!(told("ghcr.io/team/app").contains("ghcr.io/team/app:latest"));
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for text in [
            "registry.example/App:1",
            "registry.example/a//b:1",
            "registry.example//b:1",
            "registry.example/a/:1",
            "registry.example/a___b:1",
            "registry.example/a..b:1",
            "registry.example/../b:1",
            "registry.example/-a:1",
            "registry.example/a-:1",
            "registry.example/a%2fb:1",
            "registry.example/a?b:1",
            "registry.example/a:",
            "registry.example/a:.1",
            "registry.example/a:1:2",
            "registry.example/a:1/2",
            "registry.example/a:1@sha256:00",
            "registry.example/a@",
            "registry.example:/a:1",
            "registry.example:0/a:1",
            "registry.example:065/a:1",
            "registry.example:65536/a:1",
            "user@registry.example/a:1",
            "user:word@registry.example/a:1",
            "https://registry.example/a:1",
            "registry..example/a:1",
            "-registry.example/a:1",
            "registry.example\\x/a:1",
            "127.1/a:1",
            "0x7f.0.0.1/a:1",
            "2130706433:80/a:1",
            "[::1/a:1",
            "[::ffff]x/a:1",
            "[0:0:0:0:0:0:0:1]/a:1",
            "régistry.example/a:1",
        ] {
            assert!(ImageReference::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lengths_are_bounded() {
        let repository = |length| format!("r.example/{}:1", "a".repeat(length));
        assert!(ImageReference::parse(&repository(245)).is_ok());
        assert!(ImageReference::parse(&repository(246)).is_err());
        let tag = |length| format!("r.example/a:{}", "t".repeat(length));
        assert!(ImageReference::parse(&tag(128)).is_ok());
        assert!(ImageReference::parse(&tag(129)).is_err());
        let long = ImageReference::parse(&"a".repeat(513)).unwrap_err();
        assert_eq!(long, InvalidReference::TooLong);
    }
}
