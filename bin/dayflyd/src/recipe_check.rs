//! `dayflyd recipe check`: whether recipes can be baked, as far as their text tells.

use std::path::{Path, PathBuf};

use dayfly_snapshots::{RecipeCatalog, recipe_files};
use dayfly_types::error_chain;
use serde::Serialize;

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct RecipeReport {
    /// Templates that these files make.
    pub(crate) right: Vec<String>,
    pub(crate) wrong: Vec<Wrong>,
}

/// One that cannot be baked.
#[derive(Debug, Serialize)]
pub(crate) struct Wrong {
    /// The template, or the file when its name is no template's.
    pub(crate) name: String,
    pub(crate) reason: String,
}

impl RecipeReport {
    pub(crate) fn is_well(&self) -> bool {
        self.wrong.is_empty()
    }
}

/// Reads the files, and the recipes in directories among them, together with those of the program,
/// whose images they may take.
pub(crate) fn run(given: &[PathBuf]) -> RecipeReport {
    let mut wrong = Vec::new();
    let mut files = Vec::new();
    for path in given {
        match files_of(path) {
            Ok(found) => files.extend(found),
            Err(reason) => wrong.push(Wrong {
                name: path.display().to_string(),
                reason,
            }),
        }
    }
    let built_in = RecipeCatalog::of_files(&[]);
    let catalog = RecipeCatalog::of_files(&files);
    let own = catalog.iter().filter(|one| {
        let before = built_in.get(&one.recipe.name);
        before != Some(one)
    });
    let right = own.map(|one| one.recipe.name.to_string()).collect();
    wrong.extend(catalog.wrong().map(|(name, error)| Wrong {
        name: name.to_string(),
        reason: error_chain(error),
    }));
    wrong.extend(catalog.nameless().map(|error| Wrong {
        name: "-".to_owned(),
        reason: error_chain(error),
    }));
    RecipeReport { right, wrong }
}

fn files_of(path: &Path) -> Result<Vec<PathBuf>, String> {
    if path.is_dir() {
        return recipe_files(path).map_err(|error| error_chain(&error));
    }
    Ok(vec![path.to_owned()])
}

pub(crate) fn render(report: &RecipeReport) -> String {
    let right = report.right.iter().map(|name| format!("ok     {name}\n"));
    let wrong = report
        .wrong
        .iter()
        .map(|wrong| format!("wrong  {}: {}\n", wrong.name, wrong.reason));
    right.chain(wrong).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recipe that the page on templates shows can be used as it stands.
    #[test]
    fn the_example_of_the_documents_is_right() {
        let page = include_str!("../../../docs/templates.md");
        let example = page.split("```toml\n").nth(1).unwrap();
        let example = example.split("```").next().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tools.toml");
        std::fs::write(&file, example).unwrap();
        let report = run(&[file]);
        assert!(report.is_well() && report.right == ["tools"], "{report:?}");
    }

    #[test]
    fn right_and_wrong_ones_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).unwrap();
        };
        write(
            "fine.toml",
            "name = 'fine'\nversion = 1\nmemory_mib = 128\nvcpus = 1\ndisk_mib = 64\n",
        );
        write("broken.toml", "nonsense");
        let report = run(&[directory.path().to_owned()]);
        assert_eq!(report.right, ["fine"]);
        assert!(!report.is_well());
        assert!(render(&report).contains("broken.toml"), "{report:?}");
        assert!(!run(&[PathBuf::from("/nonexistent.toml")]).is_well());
        assert!(run(&[directory.path().join("fine.toml")]).is_well());
    }
}
