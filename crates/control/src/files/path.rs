//! Paths in a guest.

use crate::input::Invalid;
use crate::input::invalid::without_nul;

/// What Linux takes.
pub const PATH_CHARACTERS_MAX: usize = 4096;
/// Where a relative path starts, as for a command.
const DEFAULT_DIRECTORY: &str = "/workspace";

/// An absolute path without a NUL. What it leads to is for the guest to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsolutePath(String);

impl AbsolutePath {
    /// Checks a path that came from outside.
    ///
    /// # Errors
    /// [`Invalid`] when it is empty, too long or holds a NUL.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::parse_field("path", text)
    }

    /// The same for a path under another name.
    ///
    /// # Errors
    /// [`Invalid`] when it is empty, too long or holds a NUL.
    pub fn parse_field(field: &'static str, text: &str) -> Result<Self, Invalid> {
        if text.is_empty() {
            return Err(Invalid::field(field, "must not be empty"));
        }
        if text.chars().count() > PATH_CHARACTERS_MAX {
            let rule = format!("must have at most {PATH_CHARACTERS_MAX} characters");
            return Err(Invalid::field(field, rule));
        }
        without_nul(field, text)?;
        if text.starts_with('/') {
            return Ok(Self(text.to_owned()));
        }
        Ok(Self(format!("{DEFAULT_DIRECTORY}/{text}")))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_start_where_commands_do() {
        assert_eq!(
            AbsolutePath::parse("a/b").unwrap().as_str(),
            "/workspace/a/b"
        );
        assert_eq!(
            AbsolutePath::parse("/etc/hosts").unwrap().as_str(),
            "/etc/hosts"
        );
    }

    #[test]
    fn paths_that_no_guest_can_have_are_refused() {
        for text in ["", "a\0b", &"x".repeat(PATH_CHARACTERS_MAX + 1)] {
            assert!(AbsolutePath::parse(text).is_err());
        }
    }
}
