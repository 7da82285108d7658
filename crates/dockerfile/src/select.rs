//! Which entries of a build context a COPY takes, and where they go.

use std::collections::BTreeMap;

use dayfly_types::limits::DOCKERFILE_SELECTED_MAX;
use thiserror::Error;

use crate::error::excerpt;
use crate::glob::{DoubleStar, Glob, PatternProblem};
use crate::path::clean;

/// An entry of a build context.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContextEntry {
    /// Below the build context, with slashes and without one before it.
    pub path: String,
    /// A directory, and not a link to one.
    pub is_directory: bool,
}

/// An entry that is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedEntry {
    /// As in the build context; empty for the build context itself.
    pub source: String,
    /// Below the destination; empty for the destination itself.
    pub below: String,
    /// As in the build context.
    pub is_directory: bool,
}

/// Why nothing is copied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectError {
    /// A source is not in the build context.
    #[error(
        "{source_text:?} is not in the build context; check the path and the .dockerignore, and add the file"
    )]
    NoMatch {
        /// As it is written; all of them if none is there.
        source_text: String,
    },
    /// A source cannot be read as a pattern.
    #[error("{source_text:?} is no pattern: {problem}")]
    Pattern {
        /// As it is written.
        source_text: String,
        /// What is wrong with it.
        problem: PatternProblem,
    },
    /// Several files, and one name for all of them.
    #[error("{source_text:?} is more than one file; end the destination with a slash")]
    NeedsDirectory {
        /// The source that brings the second.
        source_text: String,
    },
    /// A file and a directory would have the same name.
    #[error("{below:?} would be a file and a directory at once; copy one of them somewhere else")]
    Conflict {
        /// The name, below the destination.
        below: String,
    },
    /// There are more entries than one COPY takes.
    #[error(
        "a COPY may take {DOCKERFILE_SELECTED_MAX} entries and this one takes more; use a .dockerignore or several COPY"
    )]
    TooMany,
}

/// What a COPY takes from the entries of a build context, sorted by where it goes, so that a
/// directory stands before what is in it. Of a directory the contents are copied, and the directory
/// itself stands for the destination. `into_directory` says that the destination ends with a slash
/// or is a directory already. If two sources bring a file with the same name, the later one has it.
///
/// A source with wildcards may match nothing, as long as another one does: `COPY a b* /x/` copies
/// `a` where there is no `b`.
///
/// # Errors
/// When a source matches nothing or several files have no directory to go to.
pub fn select(
    entries: &[ContextEntry],
    sources: &[String],
    into_directory: bool,
) -> Result<Vec<SelectedEntry>, SelectError> {
    let mut selection = Selection::default();
    let mut tops = 0;
    let mut has_file = false;
    for source in sources {
        let found = matching(entries, source)?;
        tops += found.len();
        has_file |= found.iter().any(|top| !top.is_directory);
        let is_several = sources.len() > 1 || (tops > 1 && has_file);
        if is_several && !into_directory {
            let source_text = excerpt(source);
            return Err(SelectError::NeedsDirectory { source_text });
        }
        for top in &found {
            selection.add(entries, top, into_directory)?;
        }
    }
    if tops == 0 {
        let source_text = excerpt(&sources.join(" "));
        return Err(SelectError::NoMatch { source_text });
    }
    selection.finish()
}

/// The entries that a source names itself, without what is in them.
fn matching(entries: &[ContextEntry], source: &str) -> Result<Vec<ContextEntry>, SelectError> {
    let cleaned = clean(source);
    if !has_wildcard(&cleaned) {
        let is_directory = match entries.iter().find(|entry| entry.path == cleaned) {
            Some(entry) => entry.is_directory,
            None if is_inhabited(entries, &cleaned) => true,
            None => {
                let source_text = excerpt(source);
                return Err(SelectError::NoMatch { source_text });
            }
        };
        let path = cleaned;
        return Ok(vec![ContextEntry { path, is_directory }]);
    }
    let glob = Glob::parse(&cleaned, DoubleStar::Star).map_err(|problem| {
        let source_text = excerpt(source);
        SelectError::Pattern {
            source_text,
            problem,
        }
    })?;
    let found = entries.iter().filter(|entry| glob.matches(&entry.path));
    Ok(found.cloned().collect())
}

/// The whole build context, or a directory with something in it.
fn is_inhabited(entries: &[ContextEntry], directory: &str) -> bool {
    let mut paths = entries.iter().map(|entry| entry.path.as_str());
    directory.is_empty() || paths.any(|path| below(path, directory).is_some())
}

/// The part of a path behind a directory that it is in.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    if directory.is_empty() {
        return Some(path);
    }
    path.strip_prefix(directory)?.strip_prefix('/')
}

fn has_wildcard(source: &str) -> bool {
    let mut characters = source.chars();
    while let Some(one) = characters.next() {
        match one {
            '*' | '?' | '[' => return true,
            '\\' => drop(characters.next()),
            _ => {}
        }
    }
    false
}

/// What goes where, by where it goes.
#[derive(Default)]
struct Selection(BTreeMap<String, ContextEntry>);

impl Selection {
    fn add(
        &mut self,
        entries: &[ContextEntry],
        top: &ContextEntry,
        into_directory: bool,
    ) -> Result<(), SelectError> {
        if !top.is_directory {
            let name = top.path.rsplit('/').next().unwrap_or_default();
            let name = if into_directory { name } else { "" };
            return self.insert(name, top);
        }
        self.insert("", top)?;
        for entry in entries {
            if let Some(below) = below(&entry.path, &top.path) {
                self.insert(below, entry)?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, below: &str, entry: &ContextEntry) -> Result<(), SelectError> {
        let before = self.0.insert(below.to_owned(), entry.clone());
        if before.is_some_and(|before| before.is_directory != entry.is_directory) {
            return Err(conflict(below));
        }
        match self.0.len() > DOCKERFILE_SELECTED_MAX {
            true => Err(SelectError::TooMany),
            false => Ok(()),
        }
    }

    fn finish(self) -> Result<Vec<SelectedEntry>, SelectError> {
        let is_file = |path: &str| self.0.get(path).is_some_and(|entry| !entry.is_directory);
        for below in self.0.keys() {
            let mut ends = below.match_indices('/').map(|(at, _)| at);
            let parent = ends.find_map(|end| below.get(..end).filter(|parent| is_file(parent)));
            if let Some(parent) = parent {
                return Err(conflict(parent));
            }
        }
        let selected = |(below, entry): (String, ContextEntry)| SelectedEntry {
            source: entry.path,
            below,
            is_directory: entry.is_directory,
        };
        Ok(self.0.into_iter().map(selected).collect())
    }
}

fn conflict(below: &str) -> SelectError {
    let below = excerpt(below);
    SelectError::Conflict { below }
}
