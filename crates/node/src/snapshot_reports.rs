//! What a node tells of a snapshot. Looks at the disk for its size, so it blocks.

use dayfly_node_api::SnapshotReport;
use dayfly_snapshots::CaptureStore;
use dayfly_snapshots::capture::CaptureManifest;
use dayfly_types::TemplateSize;

pub(crate) fn snapshot_report(store: &CaptureStore, manifest: &CaptureManifest) -> SnapshotReport {
    SnapshotReport {
        id: manifest.id.clone(),
        project: manifest.project.clone(),
        sandbox: manifest.sandbox.clone(),
        template: manifest.template.clone(),
        size: Some(TemplateSize {
            memory: manifest.machine.memory,
            vcpus: manifest.machine.vcpus,
        }),
        name: manifest.name.clone(),
        disk_mib: manifest.disk_mib,
        size_bytes: store.size_bytes(&manifest.id),
        created_at: manifest.created_at.unix_timestamp(),
        expires_at: manifest.expires_at.map(|at| at.unix_timestamp()),
        capture: manifest.cost,
    }
}
