//! Snapshots, forks and volumes, as control asks for them.

use std::sync::Arc;

use dayfly_node_api::{
    EnsureVolume, ForkReport, ForkRequest, NodeError, NodeSnapshots, NodeVolumes, SnapshotReport,
    SnapshotRequest, VolumeReport,
};
use dayfly_snapshots::capture::CaptureManifest;
use dayfly_types::{ProjectId, SandboxId, SnapshotId, VolumeName};

use crate::disk_lane::off_runtime;
use crate::node::{Node, unix_seconds};

impl NodeSnapshots for Node {
    async fn snapshot(
        &self,
        id: &SandboxId,
        request: SnapshotRequest,
    ) -> Result<SnapshotReport, NodeError> {
        self.take_snapshot(id, request).await
    }

    async fn snapshots(&self) -> Result<Vec<SnapshotReport>, NodeError> {
        Ok(self.snapshot_reports(|_| true).await)
    }

    async fn snapshots_of(&self, project: &ProjectId) -> Result<Vec<SnapshotReport>, NodeError> {
        let is_own = |capture: &CaptureManifest| capture.project == *project;
        Ok(self.snapshot_reports(is_own).await)
    }

    async fn find_snapshot(&self, id: &SnapshotId) -> Result<SnapshotReport, NodeError> {
        self.one_snapshot(id).await
    }

    async fn delete_snapshot(&self, id: &SnapshotId) -> Result<(), NodeError> {
        self.hide_snapshot(id).await
    }

    async fn fork(&self, id: &SandboxId, request: ForkRequest) -> Result<ForkReport, NodeError> {
        self.make_children(id, request).await
    }
}

impl NodeVolumes for Node {
    async fn ensure_volume(&self, wanted: EnsureVolume) -> Result<VolumeReport, NodeError> {
        let created_at = unix_seconds(self.parts.clock.wall());
        let parts = Arc::clone(&self.parts);
        self.volume_work(move || {
            let _room = parts.book_volume(&wanted)?;
            let made = parts.volumes.ensure(&wanted, created_at);
            // Before the booking goes, so that what was promised now is missing at no moment.
            parts.ledger.set_volumes(parts.volumes.account());
            made
        })
        .await
    }

    async fn volumes(&self) -> Result<Vec<VolumeReport>, NodeError> {
        let volumes = Arc::clone(&self.parts.volumes);
        Ok(off_runtime(move || volumes.reports(None)).await)
    }

    async fn volumes_of(&self, project: &ProjectId) -> Result<Vec<VolumeReport>, NodeError> {
        let (volumes, project) = (Arc::clone(&self.parts.volumes), project.clone());
        Ok(off_runtime(move || volumes.reports(Some(&project))).await)
    }

    async fn find_volume(
        &self,
        project: &ProjectId,
        name: &VolumeName,
    ) -> Result<VolumeReport, NodeError> {
        let (project, name) = (project.clone(), name.clone());
        let volumes = Arc::clone(&self.parts.volumes);
        self.volume_work(move || volumes.find(&project, &name))
            .await
    }

    async fn delete_volume(&self, project: &ProjectId, name: &VolumeName) -> Result<(), NodeError> {
        let (parts, project, name) = (Arc::clone(&self.parts), project.clone(), name.clone());
        self.volume_work(move || {
            parts.volumes.delete(&project, &name)?;
            parts.ledger.set_volumes(parts.volumes.account());
            Ok(())
        })
        .await
    }
}
