//! The programs that the image builder runs on a new root, in their order.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::recipe::{PackageImage, RegistryPackages};

const ACCOUNT: &str = include_str!("hooks/account.sh");
const REGISTRIES: &str = include_str!("hooks/registries.sh");
const AS_TYPED: &str = include_str!("hooks/as_typed.sh");
const CLEAN: &str = include_str!("hooks/clean.sh");

/// A file of the build that could not be written.
#[derive(Debug)]
pub(crate) struct Unwritten {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// Writes the hooks of an image into `work` and gives their paths in the order of running.
pub(crate) fn write(image: &PackageImage, work: &Path) -> Result<Vec<PathBuf>, Unwritten> {
    let mut hooks = vec![hook(work, "account", ACCOUNT)?];
    if !image.registries.is_empty() {
        write_lists(&image.registries, work)?;
        hooks.push(hook(work, "registries", REGISTRIES)?);
    }
    hooks.push(hook(work, "as-typed", AS_TYPED)?);
    if let Some(setup) = &image.setup {
        hooks.push(hook(work, "setup", &setup_hook(setup))?);
    }
    hooks.push(hook(work, "clean", CLEAN)?);
    Ok(hooks)
}

/// Writes a hook as a program of its own, so that no shell takes its text apart on the way.
fn hook(work: &Path, name: &str, text: &str) -> Result<PathBuf, Unwritten> {
    let path = work.join(format!("hook-{name}"));
    let written = std::fs::write(&path, text)
        .and_then(|()| std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)));
    match written {
        Ok(()) => Ok(path),
        Err(source) => Err(Unwritten { path, source }),
    }
}

fn write_lists(packages: &RegistryPackages, work: &Path) -> Result<(), Unwritten> {
    let node: Vec<String> = packages.node.iter().cloned().collect();
    for (name, list) in [
        ("node", &node),
        ("pip", &packages.pip),
        ("npm", &packages.npm),
    ] {
        let path = work.join(name);
        std::fs::write(&path, list.join("\n")).map_err(|source| Unwritten { path, source })?;
    }
    Ok(())
}

/// The recipe's own text goes to a shell inside the new root, through its standard input.
fn setup_hook(setup: &str) -> String {
    let mut marker = "END_OF_SETUP".to_owned();
    while setup.lines().any(|line| line == marker) {
        marker.push('_');
    }
    format!("#!/bin/sh\nexec chroot \"$1\" /bin/sh -eu <<'{marker}'\n{setup}\n{marker}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(image: &PackageImage, work: &Path) -> Vec<String> {
        let hooks = write(image, work).unwrap();
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        hooks.into_iter().map(name).collect()
    }

    #[test]
    fn setup_text_cannot_end_its_own_quotation() {
        let text = setup_hook("echo a\nEND_OF_SETUP\necho b");
        assert!(text.contains("<<'END_OF_SETUP_'"));
        assert!(text.ends_with("\nEND_OF_SETUP_\n"));
    }

    #[test]
    fn registries_are_asked_only_for_what_a_recipe_names() {
        let work = tempfile::tempdir().unwrap();
        let mut image = PackageImage {
            version: 1,
            packages: Vec::new(),
            registries: RegistryPackages::default(),
            setup: None,
        };
        let plain = ["hook-account", "hook-as-typed", "hook-clean"];
        assert_eq!(names(&image, work.path()), plain);
        image.registries.pip = vec!["a".to_owned(), "b==1".to_owned()];
        image.setup = Some("true".to_owned());
        let all = ["account", "registries", "as-typed", "setup", "clean"];
        assert_eq!(
            names(&image, work.path()),
            all.map(|name| format!("hook-{name}"))
        );
        let list = std::fs::read_to_string(work.path().join("pip")).unwrap();
        assert_eq!(list, "a\nb==1");
    }
}
