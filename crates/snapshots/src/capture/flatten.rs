//! Merging a capture with those that it lies on, so that chains stay short and the bytes of
//! deleted captures come back.
//!
//! ```text
//! write new files beside the old -> seal, digest, sync -> replace the manifest -> (later) drop the old
//! ```
//! A crash before the manifest is replaced leaves files that it does not name, and one after that
//! leaves the old ones; both go when the store is opened. What was superseded stays until the caller
//! drops it in a later pass, because a restore may be about to link it: it was told the paths a
//! moment ago. Machines that run have their own links.
//!
//! Pages that no layer has are those of the base, which this module must not know. So the merged map
//! of memory can be coarser nowhere, and when it would have more ranges than an engine can map, the
//! capture stays as it is.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use dayfly_host::files::sync_directory;
use dayfly_types::SnapshotId;
use dayfly_types::limits::MEMORY_EXTENTS_MAX;
use dayfly_vmm::{MemoryLayer, PageRange};

use super::error::{CaptureError, is_full};
use super::manifest::CaptureManifest;
use super::pages::{self, Piece};
use super::stack::Chain;
use super::store::CaptureStore;
use super::upkeep::has_reason;
use crate::manifest::SealedFile;
use crate::qcow2::{LayerError, MergeError, merge_layers};
use crate::sealing::{SealFilesError, seal_and_digest_named};
use crate::{files, sparse};

/// Why a capture was not flattened. It is as it was, but for [`FlattenError::Commit`], after which
/// it is either as it was or flattened, and good in both cases.
#[derive(Debug, thiserror::Error)]
pub enum FlattenError {
    #[error("cannot use the capture or one that it lies on")]
    Source(#[source] CaptureError),
    #[error("cannot merge the disks")]
    Disk(#[source] MergeError),
    #[error("cannot merge the memory")]
    Memory(#[source] io::Error),
    #[error("cannot write {path}")]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot seal the merged files")]
    Seal(#[source] SealFilesError),
    #[error("the capture changed while it was merged")]
    Changed,
    #[error("cannot replace the manifest")]
    Commit(#[source] CaptureError),
}

impl FlattenError {
    /// Whether the reason is that the disk is full.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Source(error) | Self::Commit(error) => error.is_disk_full(),
            Self::Disk(MergeError::Write(error))
            | Self::Memory(error)
            | Self::File { source: error, .. }
            | Self::Seal(
                SealFilesError::List(error)
                | SealFilesError::Seal { source: error, .. }
                | SealFilesError::Digest { source: error, .. },
            ) => is_full(error),
            Self::Disk(MergeError::Nothing | MergeError::Layer { .. })
            | Self::Seal(SealFilesError::TooManyFiles)
            | Self::Changed => false,
        }
    }

    /// Whether another attempt must fail as well: what was published is wrong, and that stays.
    fn is_final(&self) -> bool {
        match self {
            Self::Source(error) => matches!(error, CaptureError::Damaged { .. }),
            Self::Disk(MergeError::Layer { source, .. }) => !matches!(source, LayerError::Read(_)),
            Self::Disk(MergeError::Nothing | MergeError::Write(_))
            | Self::Memory(_)
            | Self::File { .. }
            | Self::Seal(_)
            | Self::Changed
            | Self::Commit(_) => false,
        }
    }
}

/// The new files of a capture and what the manifest says of them.
#[derive(Debug, Default)]
struct Replacement {
    memory: Option<(String, Vec<PageRange>)>,
    disk: Option<String>,
}

impl Replacement {
    fn names(&self) -> Vec<String> {
        let memory = self.memory.as_ref().map(|(name, _)| name);
        memory.into_iter().chain(&self.disk).cloned().collect()
    }

    /// The files that are replaced, and those that stay.
    fn split(&self, top: &CaptureManifest) -> (Vec<SealedFile>, Vec<SealedFile>) {
        top.files.iter().cloned().partition(|entry| {
            (self.memory.is_some() && entry.name == top.memory_file)
                || (self.disk.is_some() && entry.name == top.disk_file)
        })
    }
}

impl CaptureStore {
    /// Merges what lies below a published capture into its own files. Answers whether its manifest
    /// has changed: not when it lies on the template alone, and not when the merged memory would
    /// have too many ranges.
    ///
    /// When a capture below was flattened already, and without what that one covers the chain is
    /// short and nothing in it was deleted, then only the lists become shorter.
    ///
    /// One merge runs at a time; blocks for as long as it takes to copy everything. The superseded
    /// files stay; see [`CaptureStore::drop_superseded`].
    ///
    /// # Errors
    /// [`FlattenError`].
    pub fn flatten(&self, id: &SnapshotId) -> Result<bool, FlattenError> {
        let _one_at_a_time = self
            .flattening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let flattened = self.flatten_alone(id);
        if flattened.as_ref().is_err_and(FlattenError::is_final) {
            self.state().given_up.insert(id.clone());
        }
        flattened
    }

    fn flatten_alone(&self, id: &SnapshotId) -> Result<bool, FlattenError> {
        let chain = self.chain(id).map_err(FlattenError::Source)?;
        if chain.top.is_lowest() {
            return Ok(false);
        }
        if self.can_shorten(&chain) {
            return self.shorten(&chain);
        }
        let mut layers: Vec<&[PageRange]> = Vec::new();
        layers.extend(chain.memory.iter().map(|below| below.extents.as_slice()));
        layers.push(&chain.top.extents);
        let pieces = pages::overlay(&layers);
        let extents = pages::union(&pieces);
        if extents.len() > MEMORY_EXTENTS_MAX {
            self.state().given_up.insert(id.clone());
            return Ok(false);
        }
        {
            let _alone = self.changing();
            self.drop_unnamed(&chain.top)
                .map_err(FlattenError::Source)?;
        }
        let replacement = Replacement {
            memory: (!chain.memory.is_empty()).then(|| (fresh_name(&chain.top, "memory"), extents)),
            disk: (!chain.disks.is_empty()).then(|| fresh_name(&chain.top, "disk")),
        };
        let written = self.write_merged(&chain, &replacement, &pieces);
        if written.is_err() {
            self.discard(&chain.top, &replacement);
        }
        self.commit(&chain, &replacement, written?)
    }

    /// Writes the new files and makes them durable.
    fn write_merged(
        &self,
        chain: &Chain,
        replacement: &Replacement,
        pieces: &[Piece],
    ) -> Result<Vec<SealedFile>, FlattenError> {
        let directory = self.path(&chain.top.id);
        // Disks first: they are what an engine can have spoilt, and memory may be much to copy.
        if let Some(name) = &replacement.disk {
            let mut sources = Vec::new();
            for manifest in chain.disks.iter().chain([&chain.top]) {
                let path = self.verified(manifest, &manifest.disk_file);
                sources.push(open(&path.map_err(FlattenError::Source)?)?);
            }
            let target = create(&directory.join(name))?;
            merge_layers(&sources, &target).map_err(FlattenError::Disk)?;
        }
        if let Some((name, _)) = &replacement.memory {
            let mut sources = Vec::new();
            for manifest in chain.memory.iter().chain([&chain.top]) {
                let layer = self.memory_of(manifest).map_err(FlattenError::Source)?;
                sources.push(
                    layer
                        .map(|MemoryLayer { file, .. }| open(&file))
                        .transpose()?,
                );
            }
            let target = create(&directory.join(name))?;
            copy_pieces(pieces, &sources, &target).map_err(FlattenError::Memory)?;
        }
        // An engine may still hold a layer that it wrote. What changed under the merge is found
        // here, before the result gets a digest that says that it is right.
        self.prove_sources(chain).map_err(FlattenError::Source)?;
        let entries =
            seal_and_digest_named(&directory, replacement.names()).map_err(FlattenError::Seal)?;
        sync_directory(&directory).map_err(|source| FlattenError::File {
            path: directory,
            source,
        })?;
        Ok(entries)
    }

    fn prove_sources(&self, chain: &Chain) -> Result<(), CaptureError> {
        for manifest in chain.disks.iter().chain([&chain.top]) {
            self.verified(manifest, &manifest.disk_file)?;
        }
        for manifest in chain.memory.iter().chain([&chain.top]) {
            self.memory_of(manifest)?;
        }
        Ok(())
    }

    /// Lets the manifest name the new files. From here on they are the capture.
    fn commit(
        &self,
        chain: &Chain,
        replacement: &Replacement,
        entries: Vec<SealedFile>,
    ) -> Result<bool, FlattenError> {
        let top = &chain.top;
        self.verifier.trust(&self.path(&top.id), &entries);
        let (superseded, kept) = replacement.split(top);
        let committed = self.update(&top.id, |manifest| {
            if !has_same_content(manifest, top) {
                return false;
            }
            manifest.files = kept;
            manifest.files.extend(entries);
            manifest.files.sort_by(|one, two| one.name.cmp(&two.name));
            if let Some((name, extents)) = &replacement.memory {
                manifest.memory_file.clone_from(name);
                manifest.extents.clone_from(extents);
            }
            if let Some(name) = &replacement.disk {
                manifest.disk_file.clone_from(name);
            }
            manifest.memory_below.clear();
            manifest.disk_below.clear();
            manifest.flattened = true;
            true
        });
        match committed {
            Ok(true) => {
                // A stack that was asked for a moment ago reads them once more, and that is all.
                self.verifier.forget(&self.path(&top.id), &superseded);
                self.state().superseded.insert(top.id.clone());
                Ok(true)
            }
            Ok(false) | Err(CaptureError::Absent(_)) => {
                self.discard(top, replacement);
                Err(FlattenError::Changed)
            }
            // Which manifest survives a crash is not known, so the files of both stay until then.
            Err(error) => Err(FlattenError::Commit(error)),
        }
    }

    /// Removes new files that no manifest names. What cannot be removed goes at the next start.
    fn discard(&self, top: &CaptureManifest, replacement: &Replacement) {
        for name in replacement.names() {
            let _ = std::fs::remove_file(self.path(&top.id).join(name));
        }
    }

    /// Whether leaving out what a flattened one covers is all that it takes.
    fn can_shorten(&self, chain: &Chain) -> bool {
        let (memory, disks) = (ids(&chain.memory), ids(&chain.disks));
        let top = &chain.top;
        let is_shorter =
            memory.len() < top.memory_below.len() || disks.len() < top.disk_below.len();
        is_shorter && !has_reason(&self.state(), &memory, &disks)
    }

    fn shorten(&self, chain: &Chain) -> Result<bool, FlattenError> {
        let top = &chain.top;
        let shortened = self.update(&top.id, |manifest| {
            let is_same = has_same_content(manifest, top);
            if is_same {
                manifest.memory_below = ids(&chain.memory);
                manifest.disk_below = ids(&chain.disks);
            }
            is_same
        });
        match shortened {
            Ok(true) => Ok(true),
            Ok(false) => Err(FlattenError::Changed),
            Err(error) => Err(FlattenError::Commit(error)),
        }
    }
}

/// Everything may differ that is not about the content.
fn has_same_content(one: &CaptureManifest, two: &CaptureManifest) -> bool {
    one.files == two.files
        && one.memory_below == two.memory_below
        && one.disk_below == two.disk_below
}

fn ids(manifests: &[Arc<CaptureManifest>]) -> Vec<SnapshotId> {
    manifests
        .iter()
        .map(|manifest| manifest.id.clone())
        .collect()
}

/// A name for a layer that the manifest does not use.
fn fresh_name(manifest: &CaptureManifest, stem: &str) -> String {
    let used = manifest.files.len();
    let mut names = (1..=used + 1).map(|number| format!("{stem}-{number}.layer"));
    // One more name than there are files, so one of them is free.
    names
        .find(|name| manifest.entry(name).is_none())
        .unwrap_or_default()
}

fn open(path: &Path) -> Result<File, FlattenError> {
    files::open_regular(path).map_err(|source| FlattenError::File {
        path: path.to_owned(),
        source,
    })
}

fn create(path: &Path) -> Result<File, FlattenError> {
    let created = File::options().write(true).create_new(true).open(path);
    created.map_err(|source| FlattenError::File {
        path: path.to_owned(),
        source,
    })
}

/// Copies each piece from its layer to the same place. Zeros become holes.
fn copy_pieces(pieces: &[Piece], sources: &[Option<File>], target: &File) -> io::Result<()> {
    let mut length = 0;
    for source in sources.iter().flatten() {
        length = length.max(source.metadata()?.len());
    }
    target.set_len(length)?;
    for Piece { pages, layer } in pieces {
        let source = sources.get(*layer).and_then(Option::as_ref);
        let source = source.ok_or(io::ErrorKind::InvalidInput)?;
        let (from, to) = (pages.offset(), pages.offset() + pages.bytes());
        sparse::visit_blocks(source, from, to, |offset, block| {
            if sparse::is_zero(block) {
                return Ok(());
            }
            target.write_all_at(block, offset)
        })?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "flatten_tests.rs"]
mod tests;
