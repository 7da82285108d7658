//! Builds the read-only root file system of a template.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::debian::{DebianError, DebianRoot};
use crate::files;
use crate::program::{Program, ProgramError};
use crate::progress::ProgressReporter;
use crate::recipe::PackageImage;
use crate::root_hooks;
use crate::sources::Sources;

const IMAGE_LIMIT: Duration = Duration::from_secs(15 * 60);
/// What nobody reads in a sandbox.
const EXCLUDED: [&str; 5] = [
    "/usr/share/man/*",
    "/usr/share/doc/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/lintian/*",
];
/// Licences stay: the image may be handed on.
const INCLUDED: &str = "/usr/share/doc/*/copyright";

/// Files that must be as they are here, whatever the packages made of them.
const FIXED_FILES: [(&str, &str); 4] = [
    ("etc/hostname", "dayfly\n"),
    ("etc/hosts", "127.0.0.1 localhost dayfly\n::1 localhost\n"),
    // There is no network before a sandbox's identity says so.
    ("etc/resolv.conf", ""),
    // Every sandbox gets its own.
    ("etc/machine-id", ""),
];

/// Why the root image was not built.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    #[error("cannot write the build file {path}")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot build the root file system")]
    Debian(#[source] DebianError),
    #[error("cannot make the root image")]
    Image(#[source] ProgramError),
}

/// Builds `image` at `target`. `work` is an empty directory that the caller removes.
pub(crate) async fn build(
    image: &PackageImage,
    sources: &Sources,
    work: &Path,
    target: &Path,
    progress: &ProgressReporter,
) -> Result<(), RootError> {
    let debian = DebianRoot {
        work,
        sources,
        variant: "minbase",
        packages: &image.packages,
        options: options(image, work)?,
    };
    let root = debian
        .make(&progress.part(0, 90))
        .await
        .map_err(RootError::Debian)?;
    for (name, text) in FIXED_FILES {
        replace(&root.join(name), text)?;
    }
    progress.report("making the root image", 92);
    // Not compressed: its pages are shared by all sandboxes of the host, and what the guest does
    // not unpack it does not pay for.
    Program::new("mkfs.erofs", IMAGE_LIMIT)
        // Times are kept: Python compares them with those in its byte code.
        .arguments(["--quiet", "--preserve-mtime", "-U"])
        .argument(uuid_of(image))
        .argument(target)
        .argument(&root)
        .run_quietly()
        .await
        .map_err(RootError::Image)?;
    progress.report("root image made", 100);
    Ok(())
}

fn options(image: &PackageImage, work: &Path) -> Result<Vec<String>, RootError> {
    let mut options: Vec<String> = EXCLUDED
        .iter()
        .map(|path| format!("--dpkgopt=path-exclude={path}"))
        .collect();
    options.push(format!("--dpkgopt=path-include={INCLUDED}"));
    let hooks = root_hooks::write(image, work).map_err(|unwritten| RootError::Write {
        path: unwritten.path,
        source: unwritten.source,
    })?;
    let option = |hook: &PathBuf| format!("--customize-hook={}", hook.display());
    options.extend(hooks.iter().map(option));
    Ok(options)
}

/// Removes first and creates anew, so that a link in the new root is never followed to the host's
/// own file.
fn replace(path: &Path, text: &str) -> Result<(), RootError> {
    let removed = match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    removed
        .and_then(|()| files::write_new(path, text.as_bytes(), 0o644))
        .map_err(|source| RootError::Write {
            path: path.to_owned(),
            source,
        })
}

/// A file system id that equal recipes share, so that images differ only where content does.
fn uuid_of(image: &PackageImage) -> String {
    let hash = crate::digest::hash_json(image);
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default();
    // Version 8 is the one whose bits are the maker's own.
    format!(
        "{}-{}-8{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::RegistryPackages;

    #[test]
    fn links_are_replaced_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let outside = directory.path().join("outside");
        let inside = directory.path().join("resolv.conf");
        std::fs::write(&outside, "mine").unwrap();
        std::os::unix::fs::symlink(&outside, &inside).unwrap();
        replace(&inside, "theirs").unwrap();
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine");
        assert_eq!(std::fs::read_to_string(&inside).unwrap(), "theirs");
    }

    #[test]
    fn uuid_has_its_form() {
        let image = PackageImage {
            version: 1,
            packages: Vec::new(),
            registries: RegistryPackages::default(),
            setup: None,
        };
        let uuid = uuid_of(&image);
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
    }
}
