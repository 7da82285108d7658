//! Which files a capture is restored from, and the proof that they are what was published.
//!
//! A capture names all that it lies on, lowest first. One that was flattened holds all that lies
//! below it, so in the lists of others everything before it is passed over.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use dayfly_types::SnapshotId;
use dayfly_types::capture::MachineOrigin;
use dayfly_vmm::MemoryLayer;

use super::document;
use super::error::CaptureError;
use super::file_names;
use super::manifest::{CaptureDraft, CaptureManifest, CapturePurpose, MemoryBase};
use super::store::{CaptureStore, State};
use crate::manifest::SealedFile;
use crate::verify::VerifyError;

/// How often a stack is looked at again because a manifest has changed. Each change is a delete or
/// a merge, of which few can fall into the time of one look.
const ATTEMPTS_MAX: usize = 4;

/// What lies over a template's own files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StackedFiles {
    pub memory: Vec<MemoryLayer>,
    pub disks: Vec<PathBuf>,
    pub device_state: PathBuf,
}

/// What a capture of a machine lies on. What a flattened one covers is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Below {
    pub memory_base: MemoryBase,
    /// Lowest first, as the next.
    pub memory: Vec<SnapshotId>,
    pub disks: Vec<SnapshotId>,
}

/// A capture and all that it lies on, as they were at one moment.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) top: Arc<CaptureManifest>,
    /// Below the top, lowest first.
    pub(super) memory: Vec<Arc<CaptureManifest>>,
    pub(super) disks: Vec<Arc<CaptureManifest>>,
}

impl Chain {
    fn all(&self) -> impl Iterator<Item = &Arc<CaptureManifest>> {
        let below = self.memory.iter().chain(&self.disks);
        below.chain(std::iter::once(&self.top))
    }
}

impl CaptureStore {
    /// Proves that a capture and all that it lies on are what was published, and says which files
    /// a restore needs. They stay at least until the next pass of what collects and drops.
    ///
    /// # Errors
    /// [`CaptureError::Damaged`] names the first file that is wrong, [`CaptureError::Incomplete`]
    /// what is missing. A layer alone cannot be restored, so it is [`CaptureError::Absent`].
    pub fn stack(&self, id: &SnapshotId) -> Result<StackedFiles, CaptureError> {
        self.proved(id, || self.chain(id), |chain| self.prove(chain))
    }

    /// As [`CaptureStore::stack`], for the disks alone, lowest first. Whatever became of memory and
    /// devices, of the capture and of those below it, they are not looked at.
    ///
    /// # Errors
    /// As [`CaptureStore::stack`].
    pub fn stack_disks(&self, id: &SnapshotId) -> Result<Vec<PathBuf>, CaptureError> {
        let prove = |chain: &Chain| {
            self.prove_manifests(chain)?;
            self.prove_disks(chain)
        };
        self.proved(id, || self.chain_of_disks(id), prove)
    }

    /// Proves a chain as it is now.
    fn proved<T>(
        &self,
        id: &SnapshotId,
        find: impl Fn() -> Result<Chain, CaptureError>,
        prove: impl Fn(&Chain) -> Result<T, CaptureError>,
    ) -> Result<T, CaptureError> {
        let mut attempt = 1;
        loop {
            if self.require(id, id)?.purpose == CapturePurpose::Layer {
                return Err(CaptureError::Absent(id.clone()));
            }
            let chain = find()?;
            let stacked = prove(&chain);
            // Reading may have taken long enough for a merge to replace what was read, and for
            // that to be dropped. Then neither the files nor the complaint are worth anything.
            let is_current = chain
                .all()
                .all(|one| self.get(&one.id).is_some_and(|now| Arc::ptr_eq(&now, one)));
            if is_current || attempt == ATTEMPTS_MAX {
                return stacked;
            }
            attempt += 1;
        }
    }

    /// Which files a restore needs of a capture that is complete and not yet published. What it
    /// lies on is proved; its own files were written a moment ago by whoever asks.
    ///
    /// # Errors
    /// As [`CaptureStore::stack`], for what it lies on.
    pub fn stack_unfinished(&self, draft: &CaptureDraft) -> Result<StackedFiles, CaptureError> {
        let directory = self.unfinished(&draft.id);
        let mut stacked = StackedFiles {
            device_state: directory.join(file_names::DEVICE_STATE),
            ..StackedFiles::default()
        };
        let (memory, disks) = {
            let state = self.state();
            (
                state.uncovered_memory(&draft.memory_below),
                state.uncovered_disks(&draft.disk_below),
            )
        };
        for below in &memory {
            let below = self.require(&draft.id, below)?;
            stacked.memory.extend(self.memory_of(&below)?);
        }
        if !draft.extents.is_empty() {
            stacked.memory.push(MemoryLayer {
                file: directory.join(file_names::MEMORY_LAYER),
                extents: draft.extents.clone(),
            });
        }
        for below in &disks {
            let below = self.require(&draft.id, below)?;
            stacked.disks.push(self.verified(&below, &below.disk_file)?);
        }
        stacked.disks.push(directory.join(file_names::DISK_LAYER));
        Ok(stacked)
    }

    fn prove(&self, chain: &Chain) -> Result<StackedFiles, CaptureError> {
        let top = &chain.top;
        self.prove_manifests(chain)?;
        self.prove_files(top, &top.files)?;
        let mut stacked = StackedFiles {
            device_state: self.verified(top, file_names::DEVICE_STATE)?,
            ..StackedFiles::default()
        };
        for manifest in chain.memory.iter().chain([top]) {
            stacked.memory.extend(self.memory_of(manifest)?);
        }
        stacked.disks = self.prove_disks(chain)?;
        Ok(stacked)
    }

    fn prove_manifests(&self, chain: &Chain) -> Result<(), CaptureError> {
        let ids: BTreeSet<&SnapshotId> = chain.all().map(|manifest| &manifest.id).collect();
        ids.into_iter().try_for_each(|id| self.prove_manifest(id))
    }

    fn prove_disks(&self, chain: &Chain) -> Result<Vec<PathBuf>, CaptureError> {
        let all = chain.disks.iter().chain([&chain.top]);
        all.map(|manifest| self.verified(manifest, &manifest.disk_file))
            .collect()
    }

    /// The captures that a restore of this one needs, without those that a flattened one covers.
    pub(super) fn chain(&self, id: &SnapshotId) -> Result<Chain, CaptureError> {
        let Chain { top, disks, .. } = self.chain_of_disks(id)?;
        // A layer alone has no memory, whatever it is said to lie on.
        let memory = match top.purpose {
            CapturePurpose::Layer => Vec::new(),
            CapturePurpose::Snapshot | CapturePurpose::Fork | CapturePurpose::Hibernation => {
                self.state().uncovered_memory(&top.memory_below)
            }
        };
        let memory = self.require_all(id, &memory)?;
        Ok(Chain { top, memory, disks })
    }

    /// The same without those whose memory alone is needed.
    fn chain_of_disks(&self, id: &SnapshotId) -> Result<Chain, CaptureError> {
        let top = self.require(id, id)?;
        let disks = self.state().uncovered_disks(&top.disk_below);
        let disks = self.require_all(id, &disks)?;
        Ok(Chain {
            top,
            memory: Vec::new(),
            disks,
        })
    }

    fn require_all(
        &self,
        id: &SnapshotId,
        below: &[SnapshotId],
    ) -> Result<Vec<Arc<CaptureManifest>>, CaptureError> {
        below.iter().map(|below| self.require(id, below)).collect()
    }

    pub(super) fn require(
        &self,
        id: &SnapshotId,
        below: &SnapshotId,
    ) -> Result<Arc<CaptureManifest>, CaptureError> {
        if let Some(manifest) = self.get(below) {
            return Ok(manifest);
        }
        Err(if self.state().damaged.contains_key(below) {
            damaged_manifest(below)
        } else if id == below {
            CaptureError::Absent(id.clone())
        } else {
            CaptureError::Incomplete {
                id: id.clone(),
                below: below.clone(),
            }
        })
    }

    /// Whether the manifest on disk is still the one in memory. If not, nothing is wrong yet, but the
    /// capture is lost at the next start, and whoever uses it should hear of it now.
    fn prove_manifest(&self, id: &SnapshotId) -> Result<(), CaptureError> {
        let is_same = || {
            let text = document::read(&self.path(id)).map(|text| blake3::hash(&text));
            let state = self.state();
            let known = state.known.get(id);
            known.is_some_and(|known| text.is_ok_and(|text| text == known.text))
        };
        if is_same() {
            return Ok(());
        }
        // Between the two halves of a change, the new one is on disk and the old one in memory.
        let _alone = self.changing();
        if is_same() {
            return Ok(());
        }
        Err(damaged_manifest(id))
    }

    pub(super) fn memory_of(
        &self,
        manifest: &CaptureManifest,
    ) -> Result<Option<MemoryLayer>, CaptureError> {
        if manifest.extents.is_empty() {
            return Ok(None);
        }
        Ok(Some(MemoryLayer {
            file: self.verified(manifest, &manifest.memory_file)?,
            extents: manifest.extents.clone(),
        }))
    }

    pub(super) fn verified(
        &self,
        manifest: &CaptureManifest,
        name: &str,
    ) -> Result<PathBuf, CaptureError> {
        let entry = manifest.entry(name).ok_or_else(|| CaptureError::Damaged {
            id: manifest.id.clone(),
            source: VerifyError::Read {
                name: name.to_owned(),
                source: io::ErrorKind::NotFound.into(),
            },
        })?;
        self.prove_files(manifest, std::slice::from_ref(entry))?;
        Ok(self.path(&manifest.id).join(name))
    }

    fn prove_files(
        &self,
        manifest: &CaptureManifest,
        entries: &[SealedFile],
    ) -> Result<(), CaptureError> {
        self.verifier
            .verify_files(&self.path(&manifest.id), entries)
            .map_err(|source| CaptureError::Damaged {
                id: manifest.id.clone(),
                source,
            })
    }

    /// What lies below a machine that was started from `origin` and has sealed `sealed` since.
    ///
    /// # Errors
    /// [`CaptureError::Absent`] when the origin is gone, [`CaptureError::Damaged`] when it cannot
    /// be read.
    pub fn below(
        &self,
        origin: &MachineOrigin,
        sealed: &[SnapshotId],
    ) -> Result<Below, CaptureError> {
        let mut below = Below::default();
        if let Some(origin) = origin.capture() {
            let manifest = self.require(origin, origin)?;
            below.disks.extend(manifest.disk_below.iter().cloned());
            below.disks.push(origin.clone());
        }
        match origin {
            MachineOrigin::Template => {}
            MachineOrigin::Capture(origin) => {
                let manifest = self.require(origin, origin)?;
                below.memory_base = manifest.memory_base;
                below.memory.extend(manifest.memory_below.iter().cloned());
                below.memory.push(origin.clone());
            }
            MachineOrigin::DiskOf(_) => below.memory_base = MemoryBase::Zeros,
        }
        below.disks.extend(sealed.iter().cloned());
        let state = self.state();
        below.memory = state.uncovered_memory(&below.memory);
        below.disks = state.uncovered_disks(&below.disks);
        Ok(below)
    }
}

impl State {
    /// What of a list of memory layers is still needed.
    pub(super) fn uncovered_memory(&self, below: &[SnapshotId]) -> Vec<SnapshotId> {
        self.uncovered(below, |manifest| {
            manifest.flattened && manifest.purpose != CapturePurpose::Layer
        })
    }

    /// What of a list of disk layers is still needed.
    pub(super) fn uncovered_disks(&self, below: &[SnapshotId]) -> Vec<SnapshotId> {
        self.uncovered(below, |manifest| manifest.flattened)
    }

    /// Only a capture that says so covers others. An empty list is not enough: it would make a
    /// list that somebody forgot to fill cost a guest its files.
    fn uncovered(
        &self,
        below: &[SnapshotId],
        covers: impl Fn(&CaptureManifest) -> bool,
    ) -> Vec<SnapshotId> {
        let is_cover = |id: &SnapshotId| {
            let known = self.known.get(id);
            known.is_some_and(|known| covers(&known.manifest))
        };
        let start = below.iter().rposition(is_cover).unwrap_or(0);
        below[start..].to_vec()
    }
}

fn damaged_manifest(id: &SnapshotId) -> CaptureError {
    CaptureError::Damaged {
        id: id.clone(),
        source: VerifyError::Content {
            name: file_names::MANIFEST.to_owned(),
        },
    }
}
