//! What a machine is started from: a template, a capture on top of one, or the disk of a capture.

use std::sync::Arc;

use dayfly_guest_proto::IdentityEvent;
use dayfly_node_api::NodeError;
use dayfly_snapshots::capture::{MemoryBase, StackedFiles};
use dayfly_types::capture::MachineOrigin;
use dayfly_types::{ErrorCode, SnapshotId};
use dayfly_vmm::Capabilities;

use crate::bake::engine_identity;
use crate::boots::BootTurn;
use crate::disk_lane::off_runtime;
use crate::engines::engine_for;
use crate::journal::SandboxRecord;
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
        turn: None,
    }
}

/// What the memory of a record's machine lies on.
pub(crate) fn memory_base_of(parts: &Parts, record: &SandboxRecord) -> MemoryBase {
    match record.phase.origin() {
        Some(MachineOrigin::DiskOf(_)) => MemoryBase::Zeros,
        Some(MachineOrigin::Capture(id)) => {
            let capture = parts.captures.get(id);
            capture.map_or_else(MemoryBase::default, |capture| capture.memory_base)
        }
        Some(MachineOrigin::Template) | None => MemoryBase::Template,
    }
}

/// A capture, whose files and all that they lie on are verified here.
pub(crate) async fn origin_of_capture(
    parts: &Arc<Parts>,
    id: &SnapshotId,
    event: IdentityEvent,
) -> Result<Origin, NodeError> {
    let found = find_capture(parts, id, event).await;
    found.map_err(|refusal| advised(refusal, event))
}

async fn find_capture(
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
            let template = worker.templates.under(manifest.memory_base, name, version);
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

/// Says what still can be had of a capture that cannot be restored.
fn advised(mut refusal: NodeError, event: IdentityEvent) -> NodeError {
    let advice = match (refusal.code, event) {
        (ErrorCode::SnapshotUnfit, IdentityEvent::Wake) => {
            ". The sandbox sleeps on. A snapshot of it still gives its files: create one from that \
             with disk_only (`--disk-only`)"
        }
        (ErrorCode::SnapshotUnfit, _) => {
            ". It still gives its files: a sandbox that is created from it with disk_only \
             (`--disk-only`) boots anew on its disk"
        }
        (ErrorCode::SnapshotCorrupt, IdentityEvent::Create | IdentityEvent::Fork) => {
            ", or try a create with disk_only (`--disk-only`), which needs its disk and nothing of \
             its memory"
        }
        _ => "",
    };
    refusal.message.push_str(advice);
    refusal
}

/// The disk of a capture, which the installed engine boots on. Of the capture, of those below it
/// and of its template only what such a machine uses is verified.
pub(crate) async fn origin_of_disk(
    parts: &Arc<Parts>,
    id: &SnapshotId,
    turn: BootTurn,
) -> Result<Origin, NodeError> {
    let (worker, wanted) = (Arc::clone(parts), id.clone());
    let look = move || {
        let disks = worker.captures.stack_disks(&wanted)?;
        let found = worker.captures.get(&wanted).map(|manifest| {
            let (name, version) = (&manifest.template, &manifest.template_version);
            let bootable = worker.templates.disk_of(name, version);
            (manifest, bootable)
        });
        Ok((disks, found))
    };
    let (disks, found) = crate::sandbox::blocking(look).await?;
    let (manifest, bootable) = found.ok_or_else(|| absent(id))?;
    let bootable = bootable.map_err(|error| {
        let text = format!("the disk of snapshot {id} cannot be used any more: {error}");
        NodeError::new(ErrorCode::SnapshotCorrupt, text)
    })?;
    let mut template = bootable.template;
    let restore = &mut template.restore;
    restore.disks.sealed.extend(disks);
    restore.disk = disk_of(manifest.disk_mib, &restore.machine);
    Ok(Origin {
        template: Arc::new(template),
        engine: engine_identity(parts.engine.capabilities()),
        start: Start::Boot {
            programs: bootable.start,
            _turn: turn,
        },
        event: IdentityEvent::Create,
        volumes: Vec::new(),
        grow: None,
        turn: None,
    })
}

/// The source of a fork whose capture is not published yet.
pub(crate) async fn origin_of_early(
    parts: &Arc<Parts>,
    early: &EarlyCapture,
) -> Result<Origin, NodeError> {
    let draft = &early.draft;
    let (worker, name) = (Arc::clone(parts), draft.template.clone());
    let (base, version) = (draft.memory_base, draft.template_version.clone());
    let look = move || worker.templates.under(base, &name, &version);
    let template = off_runtime(look).await?;
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
        turn: None,
    }
}
