//! What a node tells of a snapshot. Looks at the disk for its size, so it blocks.

use dayfly_node_api::{CaptureReport, SnapshotReport};
use dayfly_snapshots::CaptureStore;
use dayfly_snapshots::capture::CaptureManifest;

pub(crate) fn snapshot_report(store: &CaptureStore, manifest: &CaptureManifest) -> SnapshotReport {
    SnapshotReport {
        id: manifest.id.clone(),
        project: manifest.project.clone(),
        sandbox: manifest.sandbox.clone(),
        template: manifest.template.clone(),
        name: manifest.name.clone(),
        size_bytes: store.size_bytes(&manifest.id),
        created_at: manifest.created_at.unix_timestamp(),
        expires_at: manifest.expires_at.map(|at| at.unix_timestamp()),
        capture: capture_report(manifest),
    }
}

pub(crate) fn capture_report(manifest: &CaptureManifest) -> CaptureReport {
    let cost = manifest.cost;
    CaptureReport {
        pause_us: cost.pause_us,
        frozen_us: cost.frozen_us,
        device_us: cost.device_us,
        memory_us: cost.memory_us,
        disk_us: cost.disk_us,
        total_us: cost.total_us,
        memory_bytes: cost.memory_bytes,
        disk_bytes: cost.disk_bytes,
    }
}
