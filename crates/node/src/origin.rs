//! What a machine is restored from: a template, or a capture on top of one.

use std::sync::Arc;

use dayfly_guest_proto::IdentityEvent;
use dayfly_node_api::NodeError;
use dayfly_types::SnapshotId;

use crate::bake::engine_identity;
use crate::parts::Parts;
use crate::sandbox::bring_up::Origin;
use crate::sandbox::disk_of;
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
    let manifest = parts
        .captures
        .get(id)
        .ok_or_else(|| NodeError::not_found(format!("no snapshot {id}")))?;
    if manifest.engine != engine_identity(parts.engine.capabilities()) {
        let text = format!(
            "snapshot {id} was made by {} {}, which is not this node's engine",
            manifest.engine.kind.as_str(),
            manifest.engine.version
        );
        return Err(NodeError::new(dayfly_types::ErrorCode::SnapshotUnfit, text));
    }
    let (worker, wanted) = (Arc::clone(parts), id.clone());
    let stacked = crate::sandbox::blocking(move || worker.captures.stack(&wanted)).await?;
    let template = parts
        .templates
        .version(&manifest.template, &manifest.template_version)?;
    let mut template = (*template).clone();
    let restore = &mut template.restore;
    restore.disks.sealed.extend(stacked.disks);
    restore.memory_layers = stacked.memory;
    restore.device_state = stacked.device_state;
    restore.disk = disk_of(&manifest, &restore.machine);
    Ok(Origin {
        template: Arc::new(template),
        is_plain: false,
        event,
        volumes: Vec::new(),
        grow: None,
    })
}
