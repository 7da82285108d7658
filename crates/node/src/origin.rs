//! What a machine is restored from: a template, or a capture on top of one.

use std::sync::Arc;

use dayfly_guest_proto::IdentityEvent;
use dayfly_node_api::NodeError;
use dayfly_snapshots::capture::StackedFiles;
use dayfly_types::SnapshotId;

use crate::bake::engine_identity;
use crate::disk_lane::off_runtime;
use crate::parts::Parts;
use crate::sandbox::bring_up::Origin;
use crate::sandbox::{EarlyCapture, disk_of};
use crate::templates::ReadyTemplate;

/// A template as it is.
pub(crate) fn origin_of_template(template: Arc<ReadyTemplate>) -> Origin {
    Origin {
        template,
        is_plain: true,
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
    let (manifest, template) =
        found.ok_or_else(|| NodeError::not_found(format!("no snapshot {id}")))?;
    if manifest.engine != engine_identity(parts.engine.capabilities()) {
        let text = format!(
            "snapshot {id} was made by {} {}, which is not this node's engine",
            manifest.engine.kind.as_str(),
            manifest.engine.version
        );
        return Err(NodeError::new(dayfly_types::ErrorCode::SnapshotUnfit, text));
    }
    Ok(origin_of_files(
        template?.as_ref(),
        stacked,
        manifest.disk_mib,
        event,
    ))
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
    let files = early.files.clone();
    Ok(origin_of_files(
        &template,
        files,
        draft.disk_mib,
        IdentityEvent::Fork,
    ))
}

fn origin_of_files(
    template: &ReadyTemplate,
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
    Origin {
        template: Arc::new(template),
        is_plain: false,
        event,
        volumes: Vec::new(),
        grow: None,
    }
}
