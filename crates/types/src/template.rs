//! What a template declares about the programs in it.

use serde::{Deserialize, Serialize};

/// Paths of the API beside the names of templates: one of such a name could not be asked for.
pub const RESERVED_TEMPLATE_NAMES: [&str; 3] = ["build", "builds", "images"];

/// What `run` means in a template's sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMeaning {
    /// A shell command.
    #[default]
    Shell,
    /// The text of a Python program, which a new process runs.
    Python,
    /// Python for the sandbox's own context: what one run defines, the next one sees.
    PythonContext,
}

impl RunMeaning {
    const ALL: [Self; 3] = [Self::Shell, Self::Python, Self::PythonContext];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Python => "python",
            Self::PythonContext => "python_context",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }
}

/// A language in which a template's sandboxes can hold contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextLanguage {
    Python,
    Bash,
    Javascript,
}

impl ContextLanguage {
    const ALL: [Self; 3] = [Self::Python, Self::Bash, Self::Javascript];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Bash => "bash",
            Self::Javascript => "javascript",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_in_recipes_and_on_the_wire() {
        for one in RunMeaning::ALL {
            assert_eq!(RunMeaning::parse(one.as_str()), Some(one));
            assert_eq!(serde_json::to_value(one).unwrap(), one.as_str());
        }
        for one in ContextLanguage::ALL {
            assert_eq!(ContextLanguage::parse(one.as_str()), Some(one));
            assert_eq!(serde_json::to_value(one).unwrap(), one.as_str());
        }
        assert_eq!(RunMeaning::parse("Shell"), None);
    }
}
