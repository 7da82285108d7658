//! How large the product is and how it is cut: lines, files, functions, names.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::source::{bare, block_end, without_tests};

/// Crates that only tests use.
const NO_PRODUCT: [&str; 1] = ["crates/testkit"];
const ITEMS: [&str; 4] = ["pub struct ", "pub enum ", "pub trait ", "pub type "];

/// The figures of a tree of sources.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Figures {
    /// Lines of each production file, comments counted and tests not.
    files: Vec<usize>,
    functions: Vec<usize>,
    /// Lines of all that are neither blank nor comment.
    code: usize,
    /// Where each public type is declared, by name.
    types: BTreeMap<String, Vec<PathBuf>>,
}

impl Figures {
    /// Reads the sources under `root`.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn of(root: &Path) -> io::Result<Self> {
        let mut figures = Self::default();
        for folder in ["crates", "bin"] {
            for part in children(&root.join(folder))? {
                let name = part.strip_prefix(root).unwrap_or(&part);
                if !NO_PRODUCT.iter().any(|other| name == Path::new(other)) {
                    figures.add_folder(root, &part.join("src"))?;
                }
            }
        }
        figures.files.sort_unstable();
        figures.functions.sort_unstable();
        Ok(figures)
    }

    fn add_folder(&mut self, root: &Path, folder: &Path) -> io::Result<()> {
        for path in children(folder)? {
            let name = path
                .file_stem()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if name == "tests" || name.ends_with("_tests") {
                continue;
            }
            if path.is_dir() {
                self.add_folder(root, &path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                self.add_file(
                    path.strip_prefix(root).unwrap_or(&path),
                    &std::fs::read_to_string(&path)?,
                );
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path, text: &str) {
        let code = without_tests(&bare(text));
        self.files.push(code.trim_end().lines().count());
        self.code += code.lines().filter(|line| !line.trim().is_empty()).count();
        for (at, _) in code.match_indices("fn ") {
            let begins = code.get(..at).and_then(|before| before.chars().next_back());
            if begins.is_none_or(char::is_whitespace)
                && let Some(end) = block_end(&code, at)
            {
                self.functions
                    .push(code.get(at..end).unwrap_or_default().lines().count());
            }
        }
        for line in code.lines() {
            let Some(rest) = ITEMS.iter().find_map(|item| line.strip_prefix(item)) else {
                continue;
            };
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
            self.types.entry(name).or_default().push(path.to_owned());
        }
    }

    /// Public type names that are declared more than once, with the places.
    pub fn declared_twice(&self) -> impl Iterator<Item = (&str, &[PathBuf])> {
        let all = self
            .types
            .iter()
            .map(|(name, places)| (name.as_str(), places.as_slice()));
        all.filter(|(_, places)| places.len() > 1)
    }

    /// What the gate prints.
    #[must_use]
    pub fn report(&self) -> String {
        format!(
            "production: {} lines, {} of them code, in {} files; a file has {}; a function has {}; {} public types, {} names of them declared twice",
            self.files.iter().sum::<usize>(),
            self.code,
            self.files.len(),
            spread(&self.files),
            spread(&self.functions),
            self.types.values().map(Vec::len).sum::<usize>(),
            self.declared_twice().count(),
        )
    }
}

fn spread(sorted: &[usize]) -> String {
    let at = |percent: usize| {
        let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(index).copied().unwrap_or_default()
    };
    format!("{} (p50), {} (p95), {} (most)", at(50), at(95), at(100))
}

fn children(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_functions_and_names_are_counted() {
        let mut figures = Figures::default();
        figures.add_file(
            Path::new("a.rs"),
            "//! A.\n\npub struct One;\nfn two() {\n    // why\n    three();\n}\n",
        );
        figures.add_file(
            Path::new("b.rs"),
            "pub enum One {}\n#[cfg(test)]\nmod tests {\n    fn four() {}\n}\n",
        );
        assert_eq!(figures.files, [7, 1]);
        assert_eq!(figures.functions, [4]);
        assert_eq!(figures.code, 5);
        let twice: Vec<_> = figures.declared_twice().collect();
        assert_eq!(twice.len(), 1, "{twice:?}");
        assert_eq!(twice[0].0, "One");
    }
}
