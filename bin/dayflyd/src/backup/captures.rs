//! Captures, held by second names while they are copied.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use anyhow::{Context, Result};
use dayfly_host::files::remove_tree;
use dayfly_snapshots::capture::{CaptureManifest, document, file_names};
use dayfly_types::SnapshotId;

use super::output::Output;
use super::stage::hold_tree;

/// A manifest that is replaced while its files are given second names is read again.
const TRIES_MAX: u32 = 5;
/// Of a manifest that was published.
const SEALED_MODE: u32 = 0o444;

/// One capture.
#[derive(Debug)]
enum Held {
    Whole {
        manifest: Box<CaptureManifest>,
        text: Vec<u8>,
    },
    /// Nobody can say what it lies on.
    Damaged,
}

/// The captures of a node.
#[derive(Debug)]
pub(super) struct HeldCaptures {
    source: PathBuf,
    stage: PathBuf,
    held: BTreeMap<SnapshotId, Held>,
}

impl HeldCaptures {
    pub(super) fn new(source: PathBuf, stage: PathBuf) -> Self {
        Self {
            source,
            stage,
            held: BTreeMap::new(),
        }
    }

    /// Holds every published capture that is not held yet.
    pub(super) fn hold_new(&mut self) -> Result<()> {
        let items = match fs::read_dir(&self.source) {
            Ok(items) => items,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).context("cannot list the captures"),
        };
        for item in items {
            let name = item.context("cannot list the captures")?.file_name();
            let id = name.to_str().and_then(|name| SnapshotId::parse(name).ok());
            if let Some(id) = id.filter(|id| !self.held.contains_key(id)) {
                self.hold(&id)?;
            }
        }
        Ok(())
    }

    /// Holds a capture as it is now. One that is gone is held no more.
    pub(super) fn hold(&mut self, id: &SnapshotId) -> Result<()> {
        self.held.remove(id);
        for _ in 0..TRIES_MAX {
            let text = match fs::read(self.source.join(id.as_str()).join(file_names::MANIFEST)) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return self.hold_damaged(id);
                }
                Err(error) => return Err(error).context("cannot read a capture's manifest"),
            };
            let Ok(manifest) = document::decode(&text, id) else {
                return self.hold_damaged(id);
            };
            if self.link(&manifest)? {
                let manifest = Box::new(manifest);
                self.held.insert(id.clone(), Held::Whole { manifest, text });
                return Ok(());
            }
        }
        // A file of it is gone for good. Its disk may be whole, and others may lie on that.
        self.hold_damaged(id)
    }

    /// Whatever there is of it, in case somebody can repair it.
    fn hold_damaged(&mut self, id: &SnapshotId) -> Result<()> {
        let (from, to) = (self.source.join(id.as_str()), self.stage.join(id.as_str()));
        remove_tree(&to)?;
        if hold_tree(&from, &to)? {
            self.held.insert(id.clone(), Held::Damaged);
        }
        Ok(())
    }

    /// Gives the files of a manifest second names. `false`: one of them was just replaced.
    fn link(&self, manifest: &CaptureManifest) -> Result<bool> {
        let id = manifest.id.as_str();
        let (from, to) = (self.source.join(id), self.stage.join(id));
        remove_tree(&to)?;
        fs::create_dir_all(&to).context("cannot make a place for a capture")?;
        for file in &manifest.files {
            match fs::hard_link(from.join(&file.name), to.join(&file.name)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error).context("cannot hold a file of a capture"),
            }
        }
        Ok(true)
    }

    fn manifest(&self, id: &SnapshotId) -> Option<&CaptureManifest> {
        match self.held.get(id)? {
            Held::Whole { manifest, .. } => Some(manifest),
            Held::Damaged => None,
        }
    }

    fn manifests(&self) -> impl Iterator<Item = &CaptureManifest> {
        self.held.keys().filter_map(|id| self.manifest(id))
    }

    /// What a backup has to have: what callers see, what sandboxes sleep in, and what those lie on.
    /// Everything, when nobody can say what is needed.
    pub(super) fn needed<'a>(
        &'a self,
        roots: impl Iterator<Item = &'a SnapshotId>,
        is_all: bool,
    ) -> BTreeSet<&'a SnapshotId> {
        let has_damaged = self.held.values().any(|held| matches!(held, Held::Damaged));
        let visible = self
            .manifests()
            .filter(|it| it.is_snapshot())
            .map(|it| &it.id);
        let mut needed: BTreeSet<&SnapshotId> = roots.chain(visible).collect();
        if is_all || has_damaged {
            needed.extend(self.held.keys());
        }
        let below = needed.iter().filter_map(|id| self.manifest(id));
        let below: Vec<&SnapshotId> = below.flat_map(CaptureManifest::below).collect();
        needed.extend(below);
        needed
    }

    /// Those of them that are not held, or lie on what is not.
    pub(super) fn incomplete(&self, needed: &BTreeSet<&SnapshotId>) -> Vec<SnapshotId> {
        let lacks = |id: &&&SnapshotId| match self.held.get(**id) {
            Some(Held::Whole { manifest, .. }) => {
                manifest.below().any(|below| !self.held.contains_key(below))
            }
            Some(Held::Damaged) => false,
            None => true,
        };
        needed
            .iter()
            .filter(lacks)
            .map(|id| (*id).clone())
            .collect()
    }

    /// The versions of templates that these were made from; `None` when that cannot be told.
    pub(super) fn template_versions(&self, needed: &BTreeSet<&SnapshotId>) -> Option<Vec<String>> {
        let needed = needed.iter().filter(|id| self.held.contains_key(**id));
        let versions = needed.map(|id| self.manifest(id).map(|it| it.template_version.clone()));
        versions.collect()
    }

    /// How many of them callers see.
    pub(super) fn snapshots(&self) -> usize {
        self.manifests().filter(|it| it.is_snapshot()).count()
    }

    pub(super) fn add_to(
        &self,
        output: &mut Output<'_>,
        needed: &BTreeSet<&SnapshotId>,
    ) -> Result<()> {
        for id in needed {
            let (path, source) = (format!("node/captures/{id}"), self.stage.join(id.as_str()));
            match self.held.get(*id) {
                Some(Held::Whole { manifest, text }) => {
                    output.directory(&path, &source)?;
                    for file in &manifest.files {
                        let name = &file.name;
                        output.sealed(&format!("{path}/{name}"), &source.join(name), None)?;
                    }
                    let name = file_names::MANIFEST;
                    output.bytes(&format!("{path}/{name}"), SEALED_MODE, text)?;
                }
                Some(Held::Damaged) => output.changing_tree(&path, &source)?,
                None => {
                    tracing::warn!(capture = %id, "a capture is missing, here as in the backup")
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "captures_tests.rs"]
mod tests;
