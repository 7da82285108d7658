//! What a machine is restored from: a template, or a capture on top of one.

use std::sync::Arc;

use dayfly_guest_proto::IdentityEvent;
use dayfly_node_api::NodeError;
use dayfly_snapshots::capture::StackedFiles;
use dayfly_types::{ErrorCode, SnapshotId};
use dayfly_vmm::Capabilities;

use crate::bake::engine_identity;
use crate::disk_lane::off_runtime;
use crate::engines::engine_for;
use crate::parts::Parts;
use crate::sandbox::bring_up::{Origin, Start};
use crate::sandbox::{EarlyCapture, disk_of};
use crate::templates::ReadyTemplate;

/// A template as it is, which the installed engine restores.
pub(crate) fn origin_of_template(parts: &Parts, template: Arc<ReadyTemplate>) -> Origin {
    Origin {
        template,
        engine: engine_identity(parts.engine.capabilities()),
        start: Start::RestorePlain,
        event: IdentityEvent::Create,
        volumes: Vec::new(),
        grow: None,
    }
}

/// A capture, whose files and all that they lie on are verified here.
pub(crate) async fn origin_of_capture(
    parts: &Arc<Parts>,
    id: &SnapshotId,
    event: IdentityEvent,
) -> Result<Origin, NodeError> {
    let (worker, wanted) = (Arc::clone(parts), id.clone());
    let look = move || {
        // Before anything else: a capture whose manifest cannot be read is damaged, not absent.
        let stacked = worker.captures.stack(&wanted)?;
        let found = worker.captures.get(&wanted).map(|manifest| {
            let (name, version) = (&manifest.template, &manifest.template_version);
            let template = worker.templates.version(name, version);
            (manifest, template)
        });
        Ok((stacked, found))
    };
    let (stacked, found) = crate::sandbox::blocking(look).await?;
    let (manifest, template) = found.ok_or_else(|| absent(id))?;
    let runs_in = engine_for(parts.engine.as_ref(), &manifest.engine).map_err(|error| {
        let text = format!("snapshot {id} cannot be restored here: {error}");
        NodeError::new(ErrorCode::SnapshotUnfit, text)
    })?;
    Ok(origin_of_files(
        template?.as_ref(),
        runs_in,
        stacked,
        manifest.disk_mib,
        event,
    ))
}

fn absent(id: &SnapshotId) -> NodeError {
    NodeError::not_found(format!("no snapshot {id}"))
}

/// The source of a fork whose capture is not published yet.
pub(crate) async fn origin_of_early(
    parts: &Arc<Parts>,
    early: &EarlyCapture,
) -> Result<Origin, NodeError> {
    let draft = &early.draft;
    let (worker, name) = (Arc::clone(parts), draft.template.clone());
    let version = draft.template_version.clone();
    let template = off_runtime(move || worker.templates.version(&name, &version)).await?;
    // The source runs in it.
    let runs_in = engine_for(parts.engine.as_ref(), &draft.engine)
        .map_err(|error| NodeError::new(ErrorCode::SnapshotUnfit, error.to_string()))?;
    let files = early.files.clone();
    Ok(origin_of_files(
        &template,
        runs_in,
        files,
        draft.disk_mib,
        IdentityEvent::Fork,
    ))
}

fn origin_of_files(
    template: &ReadyTemplate,
    runs_in: Capabilities,
    stacked: StackedFiles,
    disk_mib: u64,
    event: IdentityEvent,
) -> Origin {
    let mut template = template.clone();
    let restore = &mut template.restore;
    restore.disks.sealed.extend(stacked.disks);
    restore.memory_layers = stacked.memory;
    restore.device_state = stacked.device_state;
    restore.disk = disk_of(disk_mib, &restore.machine);
    let engine = engine_identity(&runs_in);
    restore.build = runs_in.build;
    Origin {
        template: Arc::new(template),
        engine,
        start: Start::Restore,
        event,
        volumes: Vec::new(),
        grow: None,
    }
}
