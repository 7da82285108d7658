//! Fetches the guest's kernel and the modules that it needs, from Debian's package for clouds.
//!
//! The package is unpacked and not installed. The newer kernel of the backports suite is wanted;
//! where the archives do not carry it, the release's own serves.

use std::io;
use std::path::{Path, PathBuf};

use crate::debian::{BACKPORTS, DebianError, DebianRoot, RELEASE};
use crate::modules::{self, ModulesError};
use crate::progress::ProgressReporter;
use crate::sources::Sources;

/// The name of the kernel among the files.
pub(crate) const KERNEL_FILE: &str = "vmlinuz";

/// Why there is no kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    #[error("cannot make the directory {path}")]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot fetch the kernel package")]
    Fetch(#[source] DebianError),
    #[error("the kernel package holds no kernel")]
    Empty,
    #[error("cannot copy the kernel")]
    Copy(#[source] io::Error),
    #[error("cannot collect the kernel's modules")]
    Modules(#[source] ModulesError),
}

/// What was put into the target directory.
#[derive(Debug)]
pub(crate) struct FetchedKernel {
    pub(crate) version: String,
    /// The kernel first, then the modules in loading order.
    pub(crate) files: Vec<String>,
}

/// Fetches the kernel into `target`. `work` is an empty directory that the caller removes.
pub(crate) async fn fetch(
    sources: &Sources,
    work: &Path,
    target: &Path,
    progress: &ProgressReporter,
) -> Result<FetchedKernel, KernelError> {
    progress.report("fetching the kernel", 0);
    let root = unpack_package(sources, work, progress).await?;
    let version = version_in(&root)?;
    let kernel = root.join("boot").join(format!("vmlinuz-{version}"));
    std::fs::copy(kernel, target.join(KERNEL_FILE)).map_err(KernelError::Copy)?;
    progress.report("collecting kernel modules", 95);
    let tree = modules_directory(&root).join(&version);
    let modules = modules::collect(&tree, target)
        .await
        .map_err(KernelError::Modules)?;
    let mut files = vec![KERNEL_FILE.to_owned()];
    files.extend(modules);
    Ok(FetchedKernel { version, files })
}

async fn unpack_package(
    sources: &Sources,
    work: &Path,
    progress: &ProgressReporter,
) -> Result<PathBuf, KernelError> {
    if !sources.is_empty() {
        let newer = sources.with_suite_beside(RELEASE, BACKPORTS);
        let package = format!("{}/{BACKPORTS}", package_name());
        match unpack(&newer, package, &work.join("newer"), progress).await {
            Err(KernelError::Fetch(error)) => {
                tracing::warn!(%error, "no newer kernel; the release's own is used");
            }
            other => return other,
        }
    }
    unpack(sources, package_name(), &work.join("own"), progress).await
}

async fn unpack(
    sources: &Sources,
    package: String,
    work: &Path,
    progress: &ProgressReporter,
) -> Result<PathBuf, KernelError> {
    std::fs::create_dir(work).map_err(|source| KernelError::Directory {
        path: work.to_owned(),
        source,
    })?;
    let packages = [package];
    let root = DebianRoot {
        work,
        sources,
        variant: "extract",
        packages: &packages,
        options: Vec::new(),
    };
    root.make(&progress.part(0, 90))
        .await
        .map_err(KernelError::Fetch)
}

fn package_name() -> String {
    let architecture = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "amd64"
    };
    format!("linux-image-cloud-{architecture}")
}

/// Releases differ in whether `/lib` is a link; an unpacked package may have either.
fn modules_directory(root: &Path) -> PathBuf {
    let merged = root.join("usr/lib/modules");
    if merged.is_dir() {
        merged
    } else {
        root.join("lib/modules")
    }
}

/// The version is the name of the one directory of modules.
fn version_in(root: &Path) -> Result<String, KernelError> {
    let entries = std::fs::read_dir(modules_directory(root)).map_err(|_| KernelError::Empty)?;
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    names.max().ok_or(KernelError::Empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_either_layout() {
        for layout in ["lib/modules", "usr/lib/modules"] {
            let root = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(root.path().join(layout).join("6.12.1-cloud")).unwrap();
            assert_eq!(version_in(root.path()).unwrap(), "6.12.1-cloud");
        }
        let root = tempfile::tempdir().unwrap();
        assert!(matches!(version_in(root.path()), Err(KernelError::Empty)));
    }
}
