//! Which roots a store has, what each is, and whether it is still what was built.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{EngineRootError, EngineRootSpec, UNFINISHED_PREFIX};
use crate::files::{RemoveTreeError, remove_tree, sync_directory, write_atomic};

/// Raised when an older reader would misread a record.
const RECORD_FORMAT: u32 = 1;
const RECORD_EXTENSION: &str = "json";
const RETIRED_EXTENSION: &str = "retired";
/// What a root that is being removed is called.
const DOOMED_PREFIX: &str = ".removed-";

/// Lies beside the root, as `ID.json`, and is there before it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RootRecord {
    format: u32,
    label: String,
    program: PathBuf,
    made_at_unix: u64,
    files: Vec<RecordedFile>,
}

/// A file as the engine sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedFile {
    pub(super) path: PathBuf,
    pub(super) digest: String,
}

impl RootRecord {
    pub(super) fn new(spec: &EngineRootSpec, files: Vec<RecordedFile>) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            format: RECORD_FORMAT,
            label: spec.label.clone(),
            program: spec.program.clone(),
            made_at_unix: now.unwrap_or_default().as_secs(),
            files,
        }
    }

    pub(super) fn write(&self, store: &Path, id: &str) -> Result<(), EngineRootError> {
        let path = record_path(store, id);
        let text = serde_json::to_vec_pretty(self).map_err(|error| EngineRootError::Write {
            path: path.clone(),
            source: error.into(),
        })?;
        write_atomic(&path, &text, 0o644).map_err(|source| EngineRootError::Record { source })
    }

    /// Compares every file below `root` with what it should be.
    pub(super) fn check(&self, root: &Path) -> Result<(), RootDamage> {
        for file in &self.files {
            let path = file.path.clone();
            let inside = path.strip_prefix("/").unwrap_or(&path);
            match digest_file(&root.join(inside)) {
                Ok(digest) if digest == file.digest => {}
                Ok(_) => return Err(RootDamage::Changed { path }),
                Err(source) => return Err(RootDamage::Unreadable { path, source }),
            }
        }
        Ok(())
    }

    fn read(store: &Path, id: &str) -> io::Result<Self> {
        let record: Self = serde_json::from_slice(&fs::read(record_path(store, id))?)?;
        if record.format > RECORD_FORMAT {
            let text = format!("format {} is of a later program", record.format);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(record)
    }
}

fn record_path(store: &Path, id: &str) -> PathBuf {
    store.join(id).with_extension(RECORD_EXTENSION)
}

pub(super) fn exists(store: &Path, id: &str) -> bool {
    RootRecord::read(store, id).is_ok()
}

/// Takes back the record of a root that was not built. One that stays means nothing.
pub(super) fn forget(store: &Path, id: &str) {
    let _ = fs::remove_file(record_path(store, id));
}

pub(super) fn digest_file(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// A root that was built once and is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRoot {
    pub id: String,
    pub path: PathBuf,
    /// [`EngineRootSpec::label`].
    pub label: String,
    pub program: PathBuf,
    pub made_at: SystemTime,
}

/// Every root of a store that has a record, oldest first. One without, or with a record that this
/// program cannot read, is left alone.
///
/// # Errors
/// When the store cannot be listed.
pub fn kept_roots(store: &Path) -> io::Result<Vec<KeptRoot>> {
    let mut found = Vec::new();
    for name in names(store)? {
        let path = store.join(&name);
        let Some(id) = name.to_str().filter(|_| path.is_dir()) else {
            continue;
        };
        if let Ok(record) = RootRecord::read(store, id) {
            found.push(KeptRoot {
                id: id.to_owned(),
                path,
                label: record.label,
                program: record.program,
                made_at: SystemTime::UNIX_EPOCH + Duration::from_secs(record.made_at_unix),
            });
        }
    }
    found.sort_by(|a, b| (a.made_at, &a.id).cmp(&(b.made_at, &b.id)));
    Ok(found)
}

/// The roots of a store that an older program made, which wrote no record and so can be told nothing
/// of.
///
/// # Errors
/// When the store cannot be listed.
pub fn roots_without_record(store: &Path) -> io::Result<Vec<String>> {
    let is_unknown = |name: &&str| {
        let is_left_over = name.starts_with(UNFINISHED_PREFIX) || name.starts_with(DOOMED_PREFIX);
        !is_left_over && store.join(name).is_dir() && !record_path(store, name).exists()
    };
    let names = names(store)?;
    let names = names.iter().filter_map(|name| name.to_str());
    Ok(names.filter(is_unknown).map(str::to_owned).collect())
}

fn names(store: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let entries = match fs::read_dir(store) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    entries
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect()
}

/// While a file of this name exists, nothing new is started in the root.
#[must_use]
pub fn retired_mark(store: &Path, id: &str) -> PathBuf {
    store.join(id).with_extension(RETIRED_EXTENSION)
}

/// How a root differs from what was built.
#[derive(Debug, thiserror::Error)]
pub enum RootDamage {
    #[error("the record of the root cannot be read")]
    Record(#[source] io::Error),
    #[error("{path} of the root cannot be read")]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} of the root has other bytes than when it was built")]
    Changed { path: PathBuf },
}

/// Reads every file of a root and compares it with the record.
///
/// # Errors
/// The first [`RootDamage`].
pub fn check_root(store: &Path, id: &str) -> Result<(), RootDamage> {
    let record = RootRecord::read(store, id).map_err(RootDamage::Record)?;
    record.check(&store.join(id))
}

/// Why a root is still there.
#[derive(Debug, thiserror::Error)]
pub enum RemoveRootError {
    #[error("cannot take {path} away")]
    Rename {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot remove what was a root")]
    Remove(#[source] RemoveTreeError),
}

/// Removes a root that nothing runs in and nothing needs. Repeating it changes nothing.
///
/// # Errors
/// [`RemoveRootError`]; what is left is swept later.
pub fn remove_root(store: &Path, id: &str) -> Result<(), RemoveRootError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| RemoveRootError::Rename { path, source }
    };
    let (path, doomed) = (store.join(id), store.join(format!("{DOOMED_PREFIX}{id}")));
    // The root first: a record without one means nothing.
    gone(fs::rename(&path, &doomed)).map_err(failed(&path))?;
    for file in [record_path(store, id), retired_mark(store, id)] {
        gone(fs::remove_file(&file)).map_err(failed(&file))?;
    }
    sync_directory(store).map_err(failed(store))?;
    remove_tree(&doomed).map_err(RemoveRootError::Remove)
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes what a crash left of roots that were being built or removed. Nobody else may use the
/// store meanwhile.
///
/// # Errors
/// When the store cannot be listed or something cannot be removed.
pub fn sweep_roots(store: &Path) -> Result<(), RemoveRootError> {
    let list = |source| RemoveRootError::Rename {
        path: store.to_owned(),
        source,
    };
    let is_left = |name: &&std::ffi::OsString| {
        let text = name.to_string_lossy();
        text.starts_with(UNFINISHED_PREFIX) || text.starts_with(DOOMED_PREFIX)
    };
    for name in names(store).map_err(list)?.iter().filter(is_left) {
        let path = store.join::<&OsStr>(name);
        remove_tree(&path).map_err(RemoveRootError::Remove)?;
    }
    Ok(())
}
