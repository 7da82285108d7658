//! `.dockerignore`: which entries of a directory are not in its build context.

use dayfly_types::limits::{DOCKERIGNORE_BYTES_MAX, DOCKERIGNORE_PATTERNS_MAX};
use thiserror::Error;

use crate::error::excerpt;
use crate::glob::{DoubleStar, Glob, PatternProblem};
use crate::path::clean;

/// Why a `.dockerignore` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidIgnored {
    /// The text is too long.
    #[error(
        "the .dockerignore has {found} bytes and may have {DOCKERIGNORE_BYTES_MAX}; use patterns for many files"
    )]
    TooLong {
        /// Its length in bytes.
        found: usize,
    },
    /// There are too many patterns.
    #[error(
        "the .dockerignore has more than {DOCKERIGNORE_PATTERNS_MAX} patterns; use patterns for many files"
    )]
    TooMany,
    /// A `!` stands alone.
    #[error("line {line} of the .dockerignore: a ! needs a pattern behind it; add one")]
    NoPattern {
        /// Counted from 1.
        line: usize,
    },
    /// A pattern cannot be read.
    #[error("line {line} of the .dockerignore: {pattern:?} is no pattern: {problem}")]
    Pattern {
        /// Counted from 1.
        line: usize,
        /// As it is written.
        pattern: String,
        /// What is wrong with it.
        problem: PatternProblem,
    },
}

/// The patterns of a `.dockerignore`. Without any, nothing is hidden.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ignored {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    glob: Glob,
    /// `!`: what it matches is there after all.
    shows: bool,
}

impl Ignored {
    /// Reads the text of a `.dockerignore`.
    ///
    /// # Errors
    /// What is wrong with it, with its line.
    pub fn parse(text: &str) -> Result<Self, InvalidIgnored> {
        if text.len() > DOCKERIGNORE_BYTES_MAX {
            return Err(InvalidIgnored::TooLong { found: text.len() });
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut rules = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let rule = rule(number + 1, line)?;
            rules.extend(rule);
            if rules.len() > DOCKERIGNORE_PATTERNS_MAX {
                return Err(InvalidIgnored::TooMany);
            }
        }
        Ok(Self { rules })
    }

    /// Whether an entry is hidden: the last pattern that matches it, or a directory that it is in,
    /// decides. The path is below the directory, with slashes and without one before it. Files and
    /// directories are treated alike, as Docker does.
    #[must_use]
    pub fn hides(&self, path: &str) -> bool {
        let mut decides = self.rules.iter().rev();
        let found = decides.find(|rule| rule.glob.matches_or_parent(path));
        found.is_some_and(|rule| !rule.shows)
    }

    /// Whether a directory and everything below it is hidden, so that nobody needs to look into it.
    #[must_use]
    pub fn hides_all_below(&self, directory: &str) -> bool {
        let mut shown = self.rules.iter().filter(|rule| rule.shows);
        self.hides(directory) && !shown.any(|rule| rule.glob.may_match_below(directory))
    }
}

fn rule(line: usize, text: &str) -> Result<Option<Rule>, InvalidIgnored> {
    // A comment has no space before it.
    let text = match text.starts_with('#') {
        true => "",
        false => text.trim(),
    };
    let (pattern, shows) = match text.strip_prefix('!') {
        Some(pattern) => (pattern.trim(), true),
        None => (text, false),
    };
    if pattern.is_empty() {
        return match shows {
            true => Err(InvalidIgnored::NoPattern { line }),
            false => Ok(None),
        };
    }
    let cleaned = clean(pattern);
    // The directory itself, or something outside of it: neither is hidden.
    if cleaned.is_empty() || leads_out(pattern) {
        return Ok(None);
    }
    let invalid = |problem| InvalidIgnored::Pattern {
        line,
        pattern: excerpt(pattern),
        problem,
    };
    let glob = Glob::parse(&cleaned, DoubleStar::Directories).map_err(invalid)?;
    Ok(Some(Rule { glob, shows }))
}

/// Whether a relative path has more `..` than directories, at any point.
fn leads_out(path: &str) -> bool {
    let mut depth: usize = 0;
    !path.starts_with('/')
        && path.split('/').any(|part| {
            let deeper = match part {
                "" | "." => Some(depth),
                ".." => depth.checked_sub(1),
                _ => Some(depth + 1),
            };
            depth = deeper.unwrap_or_default();
            deeper.is_none()
        })
}
