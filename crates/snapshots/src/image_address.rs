//! Where a recipe says that the image of a container is.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::{Serialize, Serializer};

const LAYOUT: &str = "oci:";
const ARCHIVE: &str = "docker-archive:";
const LENGTH_MAX: usize = 1024;

/// Why a text is not the address of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidImageAddress {
    #[error("it is empty, longer than {LENGTH_MAX} bytes, or has spaces or control characters")]
    Text,
    #[error("behind \"{LAYOUT}\" and \"{ARCHIVE}\" stands an absolute path without \"..\"")]
    Path,
    #[error(
        "a registry has to be named, as in \"docker.io/library/debian:12\"; there is no default"
    )]
    NoRegistry,
    #[error("it has neither a tag nor a digest; \":latest\" has to be written")]
    NoTag,
}

/// The image of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageAddress {
    /// By host, name, and tag or digest. The grammar is checked by whoever asks the registry.
    Registry(String),
    /// In a directory of this host, in the form that the Open Container Initiative gave it.
    Layout { path: PathBuf, tag: Option<String> },
    /// In a file of this host, as `docker save` writes it.
    Archive { path: PathBuf, tag: Option<String> },
}

impl ImageAddress {
    /// # Errors
    /// [`InvalidImageAddress`]
    pub fn parse(text: &str) -> Result<Self, InvalidImageAddress> {
        let is_plain = |letter: char| !letter.is_whitespace() && !letter.is_control();
        if text.is_empty() || text.len() > LENGTH_MAX || !text.chars().all(is_plain) {
            return Err(InvalidImageAddress::Text);
        }
        if let Some(rest) = text.strip_prefix(LAYOUT) {
            return split_path(rest).map(|(path, tag)| Self::Layout { path, tag });
        }
        if let Some(rest) = text.strip_prefix(ARCHIVE) {
            return split_path(rest).map(|(path, tag)| Self::Archive { path, tag });
        }
        let (host, name) = text
            .split_once('/')
            .ok_or(InvalidImageAddress::NoRegistry)?;
        if !host.contains(['.', ':']) && host != "localhost" {
            return Err(InvalidImageAddress::NoRegistry);
        }
        if !name.contains([':', '@']) {
            return Err(InvalidImageAddress::NoTag);
        }
        Ok(Self::Registry(text.to_owned()))
    }
}

/// A path, and the name of one image among several behind the first colon.
fn split_path(text: &str) -> Result<(PathBuf, Option<String>), InvalidImageAddress> {
    let (path, tag) = match text.split_once(':') {
        Some((path, tag)) => (path, Some(tag.to_owned()).filter(|tag| !tag.is_empty())),
        None => (text, None),
    };
    let path = Path::new(path);
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(is_plain) {
        return Err(InvalidImageAddress::Path);
    }
    Ok((path.to_owned(), tag))
}

impl fmt::Display for ImageAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, path, tag) = match self {
            Self::Registry(text) => return f.write_str(text),
            Self::Layout { path, tag } => (LAYOUT, path, tag),
            Self::Archive { path, tag } => (ARCHIVE, path, tag),
        };
        write!(f, "{kind}{}", path.display())?;
        tag.iter().try_for_each(|tag| write!(f, ":{tag}"))
    }
}

impl Serialize for ImageAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for text in [
            "docker.io/library/debian:12",
            "registry.example:5000/a/b@sha256:00",
            "localhost/a:1",
            "oci:/srv/images/app:v1",
            "oci:/srv/images/app",
            "docker-archive:/srv/app.tar:team/app:v1",
        ] {
            assert_eq!(ImageAddress::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn others_are_refused() {
        use InvalidImageAddress::{NoRegistry, NoTag, Path, Text};
        for (text, why) in [
            ("", Text),
            ("a b", Text),
            ("debian:12", NoRegistry),
            ("library/debian:12", NoRegistry),
            ("docker.io/library/debian", NoTag),
            ("oci:images/app", Path),
            ("oci:/srv/../etc", Path),
            ("docker-archive:", Path),
        ] {
            assert_eq!(ImageAddress::parse(text), Err(why), "{text:?}");
        }
    }
}
