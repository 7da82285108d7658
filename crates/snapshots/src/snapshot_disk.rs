//! Makes the disk of a template from the disk of a snapshot.
//!
//! A sandbox's disk is a stack: the read-only base of its template, the raw disk that the template's
//! bake began with, and a layer for each capture. The first two are taken as they are; all layers
//! become one, so that the new template needs neither the snapshot nor the old template.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dayfly_types::{ProjectId, SnapshotId};

use crate::capture::{CaptureError, CaptureStore};
use crate::files;
use crate::qcow2::{MergeError, merge_layers};
use crate::recipe::SnapshotImage;
use crate::store::{OpenVersionError, TemplateStore};
use crate::template::{VersionId, file_names};
use crate::verify::{Verifier, VerifyError};

/// Why the disk cannot be taken over. The snapshot is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotDiskError {
    #[error("there is no snapshot {id} of project {project}")]
    Absent { id: SnapshotId, project: ProjectId },
    #[error("the snapshot cannot be used")]
    Capture(#[source] CaptureError),
    #[error("the snapshot names a version of its template that is none")]
    Version,
    #[error("the template below the snapshot is gone")]
    Template(#[source] OpenVersionError),
    #[error("the template below the snapshot is damaged")]
    Damaged(#[source] VerifyError),
    #[error("the template below the snapshot has no disk that can be taken over")]
    Form,
    #[error("cannot use the file {path}")]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot merge the layers of the disk")]
    Merge(#[source] MergeError),
    #[error("snapshots are not kept on this host")]
    NotHere,
}

/// Where snapshots and the templates below them are.
#[derive(Debug, Clone)]
pub struct SnapshotDisks {
    pub captures: Arc<CaptureStore>,
    pub templates: TemplateStore,
    pub verifier: Arc<Verifier>,
}

impl SnapshotDisks {
    /// Writes base, lowest layer and merged layer into `directory`, and gives the names of the files
    /// of the base. Everything is proved to be what was published before it is read. Blocks for as
    /// long as that takes.
    pub(crate) fn take(
        &self,
        image: &SnapshotImage,
        directory: &Path,
    ) -> Result<Vec<String>, SnapshotDiskError> {
        let id = &image.snapshot;
        let absent = || SnapshotDiskError::Absent {
            id: id.clone(),
            project: image.project.clone(),
        };
        let disks = self.captures.stack_disks(id).map_err(|error| match error {
            CaptureError::Absent(_) => absent(),
            other @ (CaptureError::File { .. }
            | CaptureError::Seal(_)
            | CaptureError::Damaged { .. }
            | CaptureError::Incomplete { .. }) => SnapshotDiskError::Capture(other),
        })?;
        let capture = self.captures.get(id).ok_or_else(absent)?;
        // Whoever orders a template of another's snapshot learns as much as of one that is not there.
        if capture.project != image.project {
            return Err(absent());
        }
        let version = VersionId::parse(&capture.template_version);
        let version = version.ok_or(SnapshotDiskError::Version)?;
        let opened = self.templates.open_disk(&capture.template, &version);
        let below = opened.map_err(SnapshotDiskError::Template)?;
        let verified = self.verifier.verify_disk(&below);
        verified.map_err(SnapshotDiskError::Damaged)?;
        let mut layers = below.restore_spec().disks.sealed.into_iter();
        let lowest = layers.next().ok_or(SnapshotDiskError::Form)?;
        if !named(&lowest, file_names::LOWEST_LAYER) {
            return Err(SnapshotDiskError::Form);
        }
        let base = below.manifest().base_contents();
        for name in &base {
            link(&below.directory().join(name), directory)?;
        }
        link(&lowest, directory)?;
        let merged = directory.join(file_names::TAKEN_LAYER);
        merge(layers.chain(disks), &merged)?;
        // An engine may still hold a layer that it wrote. What changed under the merge is found here.
        let proved = self.captures.stack_disks(id);
        proved.map_err(SnapshotDiskError::Capture)?;
        Ok(base)
    }
}

fn named(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|found| found == name)
}

/// A further name of a sealed file.
fn link(from: &Path, directory: &Path) -> Result<(), SnapshotDiskError> {
    let name = from.file_name().ok_or(SnapshotDiskError::Form)?;
    let path = directory.join(name);
    let linked = files::link_or_copy(from, &path);
    linked.map_err(|source| SnapshotDiskError::File { path, source })
}

fn merge(layers: impl Iterator<Item = PathBuf>, target: &Path) -> Result<(), SnapshotDiskError> {
    let wrap = |path: &Path| {
        let path = path.to_owned();
        move |source| SnapshotDiskError::File { path, source }
    };
    let mut sources = Vec::new();
    for path in layers {
        sources.push(File::open(&path).map_err(wrap(&path))?);
    }
    let made = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(target);
    let made = made.map_err(wrap(target))?;
    merge_layers(&sources, &made).map_err(SnapshotDiskError::Merge)?;
    Ok(())
}
