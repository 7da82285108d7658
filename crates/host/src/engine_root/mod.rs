//! The read-only root directory of an engine's jail: its program, the libraries that it loads, the
//! files that it was said to need, and empty places to mount on. Nothing else of the host.
//!
//! A root is named by a hash over its sources, built aside and renamed into place. So it exists
//! whole or not at all, it is built again only when a source has changed, and engines that run in
//! an older one keep it. It must not know which engine it is for.

mod build;
mod elf;
mod libraries;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::files::{RemoveTreeError, remove_tree, sync_directory};

/// Part of the hash: raise it when the same sources would be laid out differently.
const LAYOUT_VERSION: u32 = 1;
/// What a directory that is being filled is called.
const UNFINISHED_PREFIX: &str = ".building-";

/// What goes into a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineRootSpec {
    /// Kept at the same path. It cannot be read there, only executed, which also makes the kernel
    /// treat the process as not dumpable.
    pub program: PathBuf,
    /// Firmware, modules, a preloaded library. Libraries that these need come along.
    pub files: Vec<RootFile>,
    /// Directories to mount on, beside `/dev`, which is always there.
    pub mount_directories: Vec<PathBuf>,
    /// Empty files to mount on.
    pub mount_files: Vec<PathBuf>,
}

/// A file of the host and where it goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RootFile {
    pub source: PathBuf,
    pub target: PathBuf,
}

impl RootFile {
    /// The same path inside as outside.
    #[must_use]
    pub fn same(path: impl Into<PathBuf>) -> Self {
        let source = path.into();
        Self {
            target: source.clone(),
            source,
        }
    }
}

/// A root that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineRoot {
    /// For [`crate::JailSpec::root`].
    pub path: PathBuf,
    /// False when it was there already.
    pub was_built: bool,
}

/// Makes sure that there is a root for `spec` below the directory `store`, which must exist.
///
/// # Errors
/// See [`EngineRootError`]. A root is never left half made under its final name.
pub fn ensure_engine_root(
    spec: &EngineRootSpec,
    store: &Path,
) -> Result<EngineRoot, EngineRootError> {
    let plan = plan(spec)?;
    let name = fingerprint(spec, &plan)?;
    let path = store.join(&name);
    if path.is_dir() {
        return Ok(EngineRoot {
            path,
            was_built: false,
        });
    }
    let unfinished = store.join(format!("{UNFINISHED_PREFIX}{name}-{}", std::process::id()));
    let clean = |path: &Path| remove_tree(path).map_err(|source| EngineRootError::Clean { source });
    clean(&unfinished)?;
    let built = build::build(spec, &plan, &unfinished).and_then(|()| {
        let failed = |source| EngineRootError::Write {
            path: path.clone(),
            source,
        };
        match fs::rename(&unfinished, &path) {
            // Somebody else was faster; theirs is as good.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
            other => other.map(|()| true).map_err(failed),
        }
    });
    if !matches!(built, Ok(true)) {
        clean(&unfinished)?;
    }
    let was_built = built?;
    sync_directory(store).map_err(|source| EngineRootError::Write {
        path: path.clone(),
        source,
    })?;
    Ok(EngineRoot { path, was_built })
}

/// Why there is no root.
#[derive(Debug, thiserror::Error)]
pub enum EngineRootError {
    #[error("{path} is not an absolute path without '..'")]
    Path { path: PathBuf },
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot list the libraries of {path}")]
    ListLibraries { path: PathBuf, source: io::Error },
    #[error("{path} needs library {library}, which is not on this host")]
    MissingLibrary { path: PathBuf, library: String },
    #[error("cannot write {path}")]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot remove an unfinished root")]
    Clean { source: RemoveTreeError },
}

/// Every file of a root: source by target.
type Plan = BTreeMap<PathBuf, PathBuf>;

fn plan(spec: &EngineRootSpec) -> Result<Plan, EngineRootError> {
    let targets = spec.files.iter().map(|file| &file.target);
    let mounts = spec.mount_directories.iter().chain(&spec.mount_files);
    for path in targets.chain(mounts).chain([&spec.program]) {
        check_path(path)?;
    }
    let mut plan = Plan::new();
    let mut sources = vec![spec.program.clone()];
    plan.insert(spec.program.clone(), spec.program.clone());
    for file in &spec.files {
        plan.insert(file.target.clone(), file.source.clone());
        sources.push(file.source.clone());
    }
    for library in libraries::libraries_of(&spec.program, &sources)? {
        plan.entry(library.clone()).or_insert(library);
    }
    Ok(plan)
}

fn fingerprint(spec: &EngineRootSpec, plan: &Plan) -> Result<String, EngineRootError> {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &str| {
        // Length first, so that no two lists of texts run together into the same bytes.
        hasher.update(&text.len().to_le_bytes());
        hasher.update(text.as_bytes());
    };
    add(&LAYOUT_VERSION.to_string());
    for (target, source) in plan {
        let failed = |error| EngineRootError::Read {
            path: source.clone(),
            source: error,
        };
        let status = fs::metadata(source).map_err(failed)?;
        add(&target.to_string_lossy());
        add(&source.to_string_lossy());
        let (size, mode, inode) = (status.len(), status.mode(), status.ino());
        let (seconds, nanoseconds) = (status.mtime(), status.mtime_nsec());
        add(&format!("{size} {mode} {inode} {seconds}.{nanoseconds}"));
    }
    add("directories");
    spec.mount_directories
        .iter()
        .for_each(|path| add(&path.to_string_lossy()));
    add("files");
    spec.mount_files
        .iter()
        .for_each(|path| add(&path.to_string_lossy()));
    Ok(hasher.finalize().to_hex()[..32].to_owned())
}

fn check_path(path: &Path) -> Result<(), EngineRootError> {
    let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if path.is_absolute() && path.file_name().is_some() && path.components().all(plain) {
        Ok(())
    } else {
        Err(EngineRootError::Path {
            path: path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
