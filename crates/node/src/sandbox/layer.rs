//! A disk layer that is part of a machine although its capture failed.

use dayfly_snapshots::capture::{CaptureDraft, CaptureError, CapturePurpose, MemoryBase};
use dayfly_types::SnapshotId;
use dayfly_types::capture::CaptureCost;

use crate::engines::engine_of;
use crate::journal::SandboxRecord;
use crate::parts::Parts;

/// Publishes the disk layer of an unfinished capture, and nothing else of it. Blocks.
pub(crate) fn keep_layer(
    parts: &Parts,
    record: &SandboxRecord,
    id: &SnapshotId,
    sealed: &[SnapshotId],
) -> Result<(), CaptureError> {
    parts.captures.keep_disk_only(id);
    let origin = record.phase.origin().cloned().unwrap_or_default();
    let disk_below = parts.captures.below(&origin, sealed)?.disks;
    let draft = CaptureDraft {
        id: id.clone(),
        purpose: CapturePurpose::Layer,
        project: record.project.clone(),
        sandbox: record.id.clone(),
        template: record.template.clone(),
        template_version: record.template_version.clone(),
        name: None,
        created_at: parts.clock.wall(),
        frozen_at: None,
        expires_at: None,
        machine: record.machine.clone(),
        disk_mib: record.disk.unwrap_or(record.machine.disk).into(),
        engine: engine_of(parts, record),
        // It has no memory that could lie on anything.
        memory_base: MemoryBase::Template,
        memory_below: Vec::new(),
        disk_below,
        extents: Vec::new(),
        cost: CaptureCost::default(),
    };
    parts.captures.publish(draft).map(drop)
}
