//! The captures on a node's disk.
//!
//! A capture appears by one rename, after all of its bytes are durable. All manifests are held in
//! memory: they are few, and every question about a capture is about its relations.
//!
//! A capture whose manifest cannot be read is damaged. It is known by its id alone: nothing can be
//! restored from it or from what lies on it, and while it is there nothing else is collected,
//! because nobody can say what it lies on. Other captures do not mind.
//!
//! Three locks, taken in this order: `flattening` for as long as a merge takes, `changing` for the
//! reading and writing of one manifest, `state` for a look.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_host::files::{remove_tree, sync_directory, write_atomic};
use dayfly_types::SnapshotId;

use super::document::{self, DocumentError};
use super::error::{CaptureError, file_error};
use super::file_names;
use super::manifest::{CaptureDraft, CaptureManifest, CapturePurpose};
use crate::files;
use crate::sealing::seal_and_digest;
use crate::verify::Verifier;

/// What a directory that is being filled is called.
const UNFINISHED_SUFFIX: &str = ".new";
/// What a directory that is being emptied is called.
const DOOMED_SUFFIX: &str = ".old";
/// In the directory of a damaged capture, whose manifest cannot say it: it was deleted.
const HIDDEN: &str = "hidden";

/// All captures of one node.
#[derive(Debug)]
pub struct CaptureStore {
    pub(super) directory: PathBuf,
    pub(super) verifier: Verifier,
    state: Mutex<State>,
    changing: Mutex<()>,
    pub(super) flattening: Mutex<()>,
}

/// What is known without looking at the disk.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) known: BTreeMap<SnapshotId, Known>,
    pub(super) damaged: BTreeMap<SnapshotId, Damaged>,
    /// Captures with files that their manifest does not name any more.
    pub(super) superseded: BTreeSet<SnapshotId>,
    /// Captures that could not be flattened and never can.
    pub(super) given_up: BTreeSet<SnapshotId>,
}

#[derive(Debug)]
pub(super) struct Known {
    pub(super) manifest: Arc<CaptureManifest>,
    /// Of the text on disk, to tell whether it is still that.
    pub(super) text: blake3::Hash,
}

/// A capture whose manifest cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged {
    pub(super) is_hidden: bool,
}

impl CaptureStore {
    /// Reads every manifest, and removes what an interrupted merge left. A manifest that cannot be
    /// read is left where it is, with a line in the log; see [`CaptureStore::damaged`].
    ///
    /// # Errors
    /// When the directory cannot be made or listed.
    pub fn open(directory: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&directory)?;
        let store = Self {
            directory: directory.canonicalize()?,
            verifier: Verifier::new(),
            state: Mutex::default(),
            changing: Mutex::default(),
            flattening: Mutex::default(),
        };
        for entry in std::fs::read_dir(&store.directory)? {
            let name = entry?.file_name();
            if let Some(id) = name.to_str().and_then(|name| SnapshotId::parse(name).ok()) {
                store.discover(&id);
            }
        }
        Ok(store)
    }

    fn discover(&self, id: &SnapshotId) {
        let is_hidden = self.path(id).join(HIDDEN).exists();
        match read_capture(&self.path(id), id) {
            Ok((manifest, text)) => {
                let manifest = self.learn(manifest, &text);
                let hidden = if is_hidden { self.hide(id) } else { Ok(()) };
                if let Err(error) = hidden.and_then(|()| self.drop_unnamed(&manifest).map(drop)) {
                    tracing::warn!(capture = %id, %error, "leftovers of a capture stay");
                }
            }
            Err(error) => {
                tracing::error!(capture = %id, %error, "a capture cannot be read");
                let damaged = Damaged { is_hidden };
                self.state().damaged.insert(id.clone(), damaged);
            }
        }
    }

    /// Reads damaged captures again, and those that are missed: a fault of the disk may be over, or
    /// somebody has put them back. Answers how many are there again.
    pub fn look_again(&self, missed: Vec<SnapshotId>) -> usize {
        let mut found = 0;
        for id in self.damaged().into_iter().chain(missed) {
            if self.get(&id).is_none() && read_capture(&self.path(&id), &id).is_ok() {
                tracing::info!(capture = %id, "a capture can be read again");
                self.state().damaged.remove(&id);
                self.discover(&id);
                found += 1;
            }
        }
        found
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a published capture is.
    #[must_use]
    pub fn path(&self, id: &SnapshotId) -> PathBuf {
        self.directory.join(id.as_str())
    }

    /// Where a capture is being made.
    #[must_use]
    pub fn unfinished(&self, id: &SnapshotId) -> PathBuf {
        self.directory.join(format!("{id}{UNFINISHED_SUFFIX}"))
    }

    #[must_use]
    pub fn get(&self, id: &SnapshotId) -> Option<Arc<CaptureManifest>> {
        let state = self.state();
        state.known.get(id).map(|known| Arc::clone(&known.manifest))
    }

    /// Every published capture that is not damaged.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<CaptureManifest>> {
        let state = self.state();
        let all = state.known.values();
        all.map(|known| Arc::clone(&known.manifest)).collect()
    }

    /// The captures whose manifests cannot be read. What they need is not known, so as long as
    /// there are any, whatever they might need should stay: captures, and versions of templates.
    #[must_use]
    pub fn damaged(&self) -> Vec<SnapshotId> {
        self.state().damaged.keys().cloned().collect()
    }

    /// Makes the directory in which a capture is made, empty. Repeating it empties it again.
    ///
    /// # Errors
    /// [`CaptureError::File`].
    pub fn begin(&self, id: &SnapshotId) -> Result<PathBuf, CaptureError> {
        let path = self.unfinished(id);
        remove_tree(&path).map_err(|error| file_error(&path, io::Error::other(error)))?;
        std::fs::create_dir(&path).map_err(|source| file_error(&path, source))?;
        let layer = path.join(file_names::MEMORY_LAYER);
        std::fs::File::create(&layer).map_err(|source| file_error(&layer, source))?;
        Ok(path)
    }

    /// Moves a file that an engine could write into a capture that is being made.
    ///
    /// # Errors
    /// [`CaptureError::File`]; also for a link, or a file with a second name.
    pub fn take(&self, id: &SnapshotId, from: &Path, name: &str) -> Result<(), CaptureError> {
        let to = self.unfinished(id).join(name);
        files::move_regular(from, &to).map_err(|source| file_error(from, source))
    }

    /// Lets anybody read the files of an unfinished capture and nobody write them, before they are
    /// durable.
    ///
    /// # Errors
    /// [`CaptureError::File`].
    pub fn hand_out(&self, id: &SnapshotId) -> Result<(), CaptureError> {
        let directory = self.unfinished(id);
        let wrap = |source| file_error(&directory, source);
        for entry in std::fs::read_dir(&directory).map_err(wrap)? {
            files::close_to_writers(&entry.map_err(wrap)?.path()).map_err(wrap)?;
        }
        Ok(())
    }

    /// Makes everything durable and gives the capture its name. A repeat finds it published.
    ///
    /// What the draft lies on must be there, or be in the making: otherwise it could never be
    /// restored. A layer alone never is, so it is not asked.
    ///
    /// # Errors
    /// [`CaptureError`]; nothing is visible then, and what was made is still there.
    pub fn publish(&self, draft: CaptureDraft) -> Result<Arc<CaptureManifest>, CaptureError> {
        self.publish_when(draft, || {})
    }

    /// As [`CaptureStore::publish`], with something to wait for between the slow part and the
    /// moment in which the directory of the unfinished capture is gone.
    ///
    /// # Errors
    /// As [`CaptureStore::publish`].
    pub fn publish_when(
        &self,
        mut draft: CaptureDraft,
        wait: impl FnOnce(),
    ) -> Result<Arc<CaptureManifest>, CaptureError> {
        if let Some(published) = self.get(&draft.id) {
            return Ok(published);
        }
        let directory = self.unfinished(&draft.id);
        let manifest_path = directory.join(file_names::MANIFEST);
        // Left by an attempt that failed behind it.
        match std::fs::remove_file(&manifest_path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(file_error(&manifest_path, error));
            }
            Ok(()) | Err(_) => {}
        }
        let files = seal_and_digest(&directory).map_err(CaptureError::Seal)?;
        wait();
        // Nothing that the draft lies on can go from here on.
        let _alone = self.changing();
        draft.memory_below = self.state().uncovered_memory(&draft.memory_below);
        draft.disk_below = self.state().uncovered_disks(&draft.disk_below);
        self.require_all_below(&draft)?;
        let manifest = draft.finish(files);
        let text = checked_text(&manifest, &manifest_path)?;
        files::write_new(&manifest_path, &text, files::SEALED_MODE)
            .and_then(|()| sync_directory(&directory))
            .map_err(|source| file_error(&manifest_path, source))?;
        self.appear(&directory, &self.path(&manifest.id))?;
        self.verifier
            .trust(&self.path(&manifest.id), &manifest.files);
        Ok(self.learn(manifest, &text))
    }

    fn require_all_below(&self, draft: &CaptureDraft) -> Result<(), CaptureError> {
        if draft.purpose == CapturePurpose::Layer {
            return Ok(());
        }
        for below in draft.memory_below.iter().chain(&draft.disk_below) {
            self.require(&draft.id, below)?;
        }
        Ok(())
    }

    /// Renames, durably or not at all.
    fn appear(&self, from: &Path, to: &Path) -> Result<(), CaptureError> {
        std::fs::rename(from, to).map_err(|source| file_error(to, source))?;
        sync_directory(&self.directory).map_err(|source| {
            // The caller is told that nothing is visible, so nothing may be after a restart.
            if let Err(error) = std::fs::rename(to, from) {
                tracing::error!(path = %to.display(), %error, "a capture cannot be taken back");
            }
            file_error(to, source)
        })
    }

    /// Drops a capture that was not published. An absent one is a success.
    ///
    /// # Errors
    /// [`CaptureError::File`].
    pub fn abandon(&self, id: &SnapshotId) -> Result<(), CaptureError> {
        let path = self.unfinished(id);
        remove_tree(&path).map_err(|error| file_error(&path, io::Error::other(error)))
    }

    /// Changes the manifest of a published capture, on disk and then in memory. `change` sees it as
    /// it is now, and answers whether it changed anything.
    pub(super) fn update(
        &self,
        id: &SnapshotId,
        change: impl FnOnce(&mut CaptureManifest) -> bool,
    ) -> Result<bool, CaptureError> {
        let _alone = self.changing();
        let mut manifest = (*self.require(id, id)?).clone();
        if !change(&mut manifest) {
            return Ok(false);
        }
        let path = self.path(id).join(file_names::MANIFEST);
        let text = checked_text(&manifest, &path)?;
        match write_atomic(&path, &text, files::SEALED_MODE) {
            Ok(()) => {
                self.learn(manifest, &text);
                Ok(true)
            }
            Err(error) => {
                // The failed step may be the one behind the rename, so look which of both stands.
                if let Ok((manifest, text)) = read_capture(&self.path(id), id) {
                    self.learn(manifest, &text);
                }
                Err(file_error(&path, error.source))
            }
        }
    }

    fn learn(&self, manifest: CaptureManifest, text: &[u8]) -> Arc<CaptureManifest> {
        let manifest = Arc::new(manifest);
        let known = Known {
            manifest: Arc::clone(&manifest),
            text: blake3::hash(text),
        };
        self.state().known.insert(manifest.id.clone(), known);
        manifest
    }

    /// Takes a capture from sight. Its bytes stay until the collector finds that nothing needs
    /// them. An absent one is a success.
    ///
    /// # Errors
    /// [`CaptureError::File`].
    pub fn hide(&self, id: &SnapshotId) -> Result<(), CaptureError> {
        if self.state().damaged.contains_key(id) {
            return self.hide_damaged(id);
        }
        let hidden = self.update(id, |manifest| {
            !std::mem::replace(&mut manifest.deleted, true)
        });
        match hidden {
            Ok(_) | Err(CaptureError::Absent(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn hide_damaged(&self, id: &SnapshotId) -> Result<(), CaptureError> {
        let path = self.path(id).join(HIDDEN);
        match files::write_new(&path, b"", files::SEALED_MODE) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(file_error(&path, error));
            }
            Ok(()) | Err(_) => {}
        }
        sync_directory(&self.path(id)).map_err(|source| file_error(&path, source))?;
        if let Some(damaged) = self.state().damaged.get_mut(id) {
            damaged.is_hidden = true;
        }
        Ok(())
    }

    /// Removes a capture for good, unless another names it. The caller knows that no machine and
    /// nobody else needs it.
    pub(super) fn remove(&self, id: &SnapshotId) -> Result<bool, CaptureError> {
        let doomed = {
            let _alone = self.changing();
            // A capture may have been published on it since the caller looked.
            let all = self.all();
            if all.iter().any(|other| other.below().any(|it| it == id)) {
                return Ok(false);
            }
            if let Some(manifest) = self.get(id) {
                self.verifier.forget(&self.path(id), &manifest.files);
            }
            let doomed = self.doom(id)?;
            let mut state = self.state();
            state.known.remove(id);
            state.superseded.remove(id);
            state.given_up.remove(id);
            doomed
        };
        remove_tree(&doomed).map_err(|error| file_error(&doomed, io::Error::other(error)))?;
        Ok(true)
    }

    /// Removes a damaged capture for good. The caller knows that it was hidden and that no visible
    /// one names it.
    pub(super) fn remove_damaged(&self, id: &SnapshotId) -> Result<(), CaptureError> {
        let doomed = self.doom(id)?;
        self.state().damaged.remove(id);
        remove_tree(&doomed).map_err(|error| file_error(&doomed, io::Error::other(error)))
    }

    /// Takes the name from a capture's directory, so that no half of it is ever found.
    fn doom(&self, id: &SnapshotId) -> Result<PathBuf, CaptureError> {
        let path = self.path(id);
        let doomed = self.directory.join(format!("{id}{DOOMED_SUFFIX}"));
        // Left by an attempt that failed behind the rename.
        remove_tree(&doomed).map_err(|error| file_error(&doomed, io::Error::other(error)))?;
        match std::fs::rename(&path, &doomed) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(file_error(&path, error));
            }
            Ok(()) | Err(_) => {}
        }
        sync_directory(&self.directory).map_err(|source| file_error(&path, source))?;
        Ok(doomed)
    }

    /// Removes what a crash left half-made or half-removed, but for those that `needed` names. For
    /// the start of a node: a capture that is being made looks the same.
    ///
    /// # Errors
    /// When the directory cannot be read, or the first that cannot be removed; what can be is.
    pub fn sweep(&self, needed: impl Fn(&SnapshotId) -> bool) -> io::Result<usize> {
        let mut removed = 0;
        let mut failed = Ok(());
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_doomed = name.ends_with(DOOMED_SUFFIX);
            let is_unfinished = name
                .strip_suffix(UNFINISHED_SUFFIX)
                .and_then(|id| SnapshotId::parse(id).ok())
                .is_some_and(|id| !needed(&id));
            if !is_doomed && !is_unfinished {
                continue;
            }
            match remove_tree(&entry.path()) {
                Ok(()) => removed += 1,
                Err(error) => failed = failed.and(Err(io::Error::other(error))),
            }
        }
        failed.map(|()| removed)
    }

    /// Bytes on disk that are this capture's own.
    #[must_use]
    pub fn size_bytes(&self, id: &SnapshotId) -> u64 {
        files::bytes_on_disk(&self.path(id))
    }
}

/// The text of a manifest that keeps what every manifest promises.
fn checked_text(manifest: &CaptureManifest, path: &Path) -> Result<Vec<u8>, CaptureError> {
    document::check(manifest)
        .and_then(|()| document::encode(manifest))
        .map_err(|error| file_error(path, io::Error::new(io::ErrorKind::InvalidData, error)))
}

/// The manifests below a directory of captures, and the ids of those that cannot be read. Changes
/// nothing, so it may be asked beside the node that owns them.
///
/// # Errors
/// When the directory cannot be listed.
pub fn survey(directory: &Path) -> io::Result<(Vec<CaptureManifest>, Vec<SnapshotId>)> {
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((found, damaged)),
        other => other?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| SnapshotId::parse(name).ok()) else {
            continue;
        };
        match read_capture(&entry.path(), &id) {
            Ok((manifest, _)) => found.push(manifest),
            // Collected while the directory was read.
            Err(_) if !entry.path().exists() => {}
            Err(_) => damaged.push(id),
        }
    }
    Ok((found, damaged))
}

fn read_capture(
    directory: &Path,
    id: &SnapshotId,
) -> Result<(CaptureManifest, Vec<u8>), DocumentError> {
    let text = document::read(directory)?;
    Ok((document::decode(&text, id)?, text))
}

#[cfg(test)]
#[path = "store_tests.rs"]
pub(crate) mod tests;
