//! The path of a file in a build context that somebody uploads.

use std::fmt;

use crate::limits::{IMAGE_FILE_NAME_BYTES_MAX, IMAGE_PATH_BYTES_MAX, IMAGE_PATH_DEPTH_MAX};

/// What cannot be such a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no path below the build context: names with `/` between them, without `.` and `..`"
)]
pub struct InvalidContextPath {
    text: String,
}

/// A path below the build context, such as `src/main.py`. It names nothing on the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextPath(String);

impl ContextPath {
    /// Of an invalid one, in an error.
    const SHOWN_CHARACTERS: usize = 80;

    /// # Errors
    /// [`InvalidContextPath`].
    pub fn parse(text: &str) -> Result<Self, InvalidContextPath> {
        let text = text.strip_prefix("./").unwrap_or(text);
        let is_name = |name: &str| {
            !matches!(name, "" | "." | "..")
                && name.len() <= IMAGE_FILE_NAME_BYTES_MAX
                && !name.chars().any(char::is_control)
        };
        let fits = text.len() <= IMAGE_PATH_BYTES_MAX
            && text.split('/').count() <= IMAGE_PATH_DEPTH_MAX
            && text.split('/').all(is_name);
        if fits {
            return Ok(Self(text.to_owned()));
        }
        let text = text.chars().take(Self::SHOWN_CHARACTERS).collect();
        Err(InvalidContextPath { text })
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directories above it, the highest first.
    pub fn directories(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(place, _)| &self.0[..place])
    }
}

impl fmt::Display for ContextPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_its_context() {
        for text in ["a", "src/main.py", ".dockerignore", "a b/ö", "..a/b.."] {
            assert_eq!(ContextPath::parse(text).unwrap().as_str(), text);
        }
        assert_eq!(ContextPath::parse("./a").unwrap().as_str(), "a");
        let deep = "a/".repeat(IMAGE_PATH_DEPTH_MAX) + "a";
        for text in [
            "", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\0b", "a\nb",
            &deep,
        ] {
            assert!(ContextPath::parse(text).is_err(), "{text:?}");
        }
        assert!(ContextPath::parse(&"a".repeat(IMAGE_FILE_NAME_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn the_directories_of_a_path_are_those_above_it() {
        let path = ContextPath::parse("a/b/c").unwrap();
        assert_eq!(path.directories().collect::<Vec<_>>(), ["a", "a/b"]);
    }
}
