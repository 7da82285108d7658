//! The read-only root directory of an engine's jail: its program, the libraries that it loads, the
//! files that it was said to need, and empty places to mount on. Nothing else of the host.
//!
//! A root is named by a digest over what is in it, built aside and renamed into place, with a
//! record beside it ([`KeptRoot`]). So it exists whole or not at all, it is built again only when a
//! byte of it is another, and what needs an older one finds it again. It must not know which engine
//! it is for.

mod build;
mod elf;
mod libraries;
mod record;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

pub use record::{
    KeptRoot, RemoveRootError, RootDamage, check_root, kept_roots, remove_root, retired_mark,
    roots_without_record, sweep_roots,
};
use record::{RecordedFile, RootRecord};

use crate::files::{RemoveTreeError, WriteAtomicError, remove_tree, sync_directory};

/// Part of the hash: raise it when the same sources would be laid out differently.
const LAYOUT_VERSION: u32 = 2;
/// What a directory that is being filled is called.
const UNFINISHED_PREFIX: &str = ".building-";

/// What goes into a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineRootSpec {
    /// What it is the root of, for whoever lists roots. Not part of the digest.
    pub label: String,
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
    /// The digest, which is also the directory's name.
    pub id: String,
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
    let files = digest_files(&plan)?;
    let id = digest_of(spec, &files);
    let path = store.join(&id);
    if path.is_dir() && record::exists(store, &id) {
        let was_built = false;
        return Ok(EngineRoot {
            id,
            path,
            was_built,
        });
    }
    let record = RootRecord::new(spec, files);
    record.write(store, &id)?;
    let built = build_aside(spec, &plan, store, &id, &record);
    if built.is_err() && !path.is_dir() {
        record::forget(store, &id);
    }
    let was_built = built?;
    sync_directory(store).map_err(|source| EngineRootError::Write {
        path: path.clone(),
        source,
    })?;
    Ok(EngineRoot {
        id,
        path,
        was_built,
    })
}

/// False when somebody else was faster; theirs is as good.
fn build_aside(
    spec: &EngineRootSpec,
    plan: &Plan,
    store: &Path,
    id: &str,
    record: &RootRecord,
) -> Result<bool, EngineRootError> {
    let path = store.join(id);
    let unfinished = store.join(format!("{UNFINISHED_PREFIX}{id}-{}", std::process::id()));
    let clean = |path: &Path| remove_tree(path).map_err(|source| EngineRootError::Clean { source });
    clean(&unfinished)?;
    let built = build::build(spec, plan, &unfinished).and_then(|()| {
        // A package may have been installed since the sources were read.
        record
            .check(&unfinished)
            .map_err(|source| EngineRootError::Changed { source })?;
        match fs::rename(&unfinished, &path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
            other => other
                .map(|()| true)
                .map_err(|source| EngineRootError::Write { path, source }),
        }
    });
    if !matches!(built, Ok(true)) {
        clean(&unfinished)?;
    }
    built
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
    #[error("cannot write the record of a root")]
    Record {
        #[source]
        source: WriteAtomicError,
    },
    #[error("a file changed while it was copied; try again")]
    Changed {
        #[source]
        source: RootDamage,
    },
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

fn digest_files(plan: &Plan) -> Result<Vec<RecordedFile>, EngineRootError> {
    let digest = |(target, source): (&PathBuf, &PathBuf)| {
        let digest = record::digest_file(source).map_err(|error| EngineRootError::Read {
            path: source.clone(),
            source: error,
        })?;
        Ok(RecordedFile {
            path: target.clone(),
            digest,
        })
    };
    plan.iter().map(digest).collect()
}

fn digest_of(spec: &EngineRootSpec, files: &[RecordedFile]) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &str| {
        // Length first, so that no two lists of texts run together into the same bytes.
        hasher.update(&text.len().to_le_bytes());
        hasher.update(text.as_bytes());
    };
    add(&LAYOUT_VERSION.to_string());
    add(&spec.program.to_string_lossy());
    for file in files {
        add(&file.path.to_string_lossy());
        add(&file.digest);
    }
    add("directories");
    spec.mount_directories
        .iter()
        .for_each(|path| add(&path.to_string_lossy()));
    add("files");
    spec.mount_files
        .iter()
        .for_each(|path| add(&path.to_string_lossy()));
    hasher.finalize().to_hex()[..32].to_owned()
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
