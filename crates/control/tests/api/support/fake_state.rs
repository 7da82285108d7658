//! What the node in memory does with snapshots, forks, volumes and lifecycles.

use std::sync::atomic::Ordering;
use std::time::Duration;

use dayfly_node_api::{
    EnsureSandbox, EnsureVolume, ForkChild, ForkOutcome, ForkReport, ForkRequest, LifecycleChange,
    LifecycleReport, NodeError, NodeSnapshots, NodeVolumes, SandboxReport, SnapshotReport,
    SnapshotRequest, VolumeReport,
};
use dayfly_types::capture::CaptureCost;
use dayfly_types::volume::MountedVolume;
use dayfly_types::{
    ErrorCode, ProjectId, SandboxId, SandboxState, SnapshotId, TemplateSize, VolumeName,
};

use super::fake_node::{FakeNode, made};

const CAPTURE: CaptureCost = CaptureCost {
    pause_us: 1500,
    frozen_us: 2500,
    device_us: 500,
    memory_us: 700,
    disk_us: 300,
    total_us: 9000,
    memory_bytes: 4096,
    disk_bytes: 8192,
};

impl FakeNode {
    /// Refuses every change of a state, snapshot, fork or volume.
    pub(crate) fn refuse_state(&self, error: Option<NodeError>) {
        self.with(|inner| inner.state_refusal = error);
    }

    pub(crate) fn delay_forks(&self, delay: Duration) {
        self.with(|inner| inner.fork_delay = Some(delay));
    }

    /// How long a capture takes.
    pub(crate) fn delay_snapshots(&self, delay: Duration) {
        self.with(|inner| inner.snapshot_delay = Some(delay));
    }

    /// Makes this many children of each fork, and refuses the rest.
    pub(crate) fn limit_forks(&self, room: Option<usize>) {
        self.with(|inner| inner.fork_room = room);
    }

    pub(crate) fn forks(&self) -> Vec<ForkRequest> {
        self.with(|inner| inner.forks.clone())
    }

    pub(crate) fn snapshot_count(&self) -> usize {
        self.with(|inner| inner.snapshots.len())
    }

    fn may_change(&self) -> Result<(), NodeError> {
        self.with(|inner| inner.state_refusal.clone())
            .map_or(Ok(()), Err)
    }

    /// Has the node's disk be full, or not.
    pub(crate) fn fill_disk(&self, is_full: bool) {
        self.with(|inner| inner.disk_is_full = is_full);
    }

    /// Wakes a hibernated sandbox, as a real node does for a call that needs the guest.
    pub(super) fn awake(&self, id: &SandboxId) -> Result<(), NodeError> {
        let state = self.sandbox_now(id)?.state;
        if state == SandboxState::Hibernated {
            self.change(id, &[state], SandboxState::Running)?;
        }
        if state == SandboxState::Paused {
            let message = "the sandbox is paused; resume it first";
            return Err(NodeError::new(ErrorCode::WrongState, message));
        }
        Ok(())
    }

    pub(super) fn change(
        &self,
        id: &SandboxId,
        from: &[SandboxState],
        state: SandboxState,
    ) -> Result<SandboxReport, NodeError> {
        self.may_change()?;
        let mut report = self.sandbox_now(id)?;
        if report.state != state {
            if !from.contains(&report.state) {
                let message = format!("the sandbox is {}", report.state.as_str());
                return Err(NodeError::new(ErrorCode::WrongState, message));
            }
            report.state = state;
            report.generation = report.generation.next();
            self.put(report.clone());
        }
        Ok(report)
    }

    pub(super) fn roll_back(
        &self,
        id: &SandboxId,
        snapshot: &SnapshotId,
    ) -> Result<SandboxReport, NodeError> {
        self.known(id)?;
        let found = self.with(|inner| inner.snapshots.iter().find(|s| s.id == *snapshot).cloned());
        let snapshot = found.ok_or_else(|| NodeError::not_found("there is no such snapshot"))?;
        if snapshot.sandbox != *id {
            let message = "that snapshot is not of this sandbox";
            return Err(NodeError::new(ErrorCode::InvalidRequest, message));
        }
        let from = [SandboxState::Paused, SandboxState::Hibernated];
        self.change(id, &from, SandboxState::Running)
    }

    pub(super) fn lifecycle_now(&self, id: &SandboxId) -> Result<LifecycleReport, NodeError> {
        let report = self.sandbox_now(id)?;
        Ok(LifecycleReport {
            lifecycle: report.lifecycle,
            expires_in_seconds: report.expires_in_seconds,
            idle_for_seconds: 3,
        })
    }

    pub(super) fn change_lifecycle(
        &self,
        id: &SandboxId,
        change: LifecycleChange,
    ) -> Result<LifecycleReport, NodeError> {
        self.may_change()?;
        let mut report = self.sandbox_now(id)?;
        if let Some(ttl_seconds) = change.ttl_seconds {
            report.lifecycle.ttl_seconds = ttl_seconds;
            report.expires_in_seconds = ttl_seconds;
        }
        if let Some(persistent) = change.persistent {
            report.lifecycle.persistent = persistent;
        }
        if let Some(idle_seconds) = change.idle_seconds {
            report.lifecycle.idle_seconds = idle_seconds;
        }
        if let Some(on_timeout) = change.on_timeout {
            report.lifecycle.on_timeout = on_timeout;
        }
        self.put(report);
        self.lifecycle_now(id)
    }

    pub(super) fn take(
        &self,
        id: &SandboxId,
        request: SnapshotRequest,
    ) -> Result<SnapshotReport, NodeError> {
        self.may_change()?;
        let sandbox = self.sandbox_now(id)?;
        let known = self.with(|inner| inner.snapshots.iter().find(|s| s.id == request.id).cloned());
        if let Some(report) = known {
            return Ok(report);
        }
        let created_at = 1_700_000_000;
        let report = SnapshotReport {
            disk_mib: 4096,
            id: request.id,
            project: sandbox.project,
            sandbox: sandbox.id,
            template: sandbox.template,
            size: Some(TemplateSize {
                memory: sandbox.memory,
                vcpus: sandbox.vcpus,
            }),
            name: request.name,
            size_bytes: 1 << 20,
            created_at,
            expires_at: request
                .retain_seconds
                .map(|seconds| created_at + i64::try_from(seconds).unwrap()),
            capture: CAPTURE,
        };
        self.with(|inner| inner.snapshots.push(report.clone()));
        Ok(report)
    }

    pub(super) fn make_children(
        &self,
        id: &SandboxId,
        request: ForkRequest,
    ) -> Result<ForkReport, NodeError> {
        self.with(|inner| inner.forks.push(request.clone()));
        self.may_change()?;
        self.known(id)?;
        let count = request.children.len();
        let room = self.with(|inner| inner.fork_room).unwrap_or(count);
        let room = match request.all_or_nothing && room < count {
            true => 0,
            false => room,
        };
        let mut children = Vec::new();
        for (index, child) in request.children.into_iter().enumerate() {
            let id = child.id.clone();
            let outcome = match self.sandbox_now(&id) {
                Ok(report) => ForkOutcome::Made(Box::new(report)),
                Err(_) if index < room => {
                    self.begin_network(&child);
                    let report = made(child);
                    self.put(report.clone());
                    ForkOutcome::Made(Box::new(report))
                }
                Err(_) => ForkOutcome::Refused(NodeError::new(ErrorCode::NoCapacity, "no room")),
            };
            children.push(ForkChild { id, outcome });
        }
        Ok(ForkReport {
            capture: CAPTURE,
            children,
            renewed: vec!["machine id".to_owned()],
            not_renewed: vec!["keys that were in memory".to_owned()],
        })
    }

    pub(super) fn make_volume(&self, wanted: EnsureVolume) -> Result<VolumeReport, NodeError> {
        self.may_change()?;
        let is_wanted =
            |volume: &VolumeReport| volume.project == wanted.project && volume.name == wanted.name;
        self.with(|inner| {
            if !inner.volumes.iter().any(is_wanted) {
                inner.volumes.push(VolumeReport {
                    project: wanted.project.clone(),
                    name: wanted.name.clone(),
                    size: wanted.size,
                    used_bytes: 4096,
                    created_at: 1_700_000_000,
                    fence: 1,
                    writer: None,
                    readers: Vec::new(),
                });
            }
            let volume = inner.volumes.iter_mut().find(|v| is_wanted(v)).unwrap();
            if volume.size > wanted.size {
                let message = "the volume is larger than that";
                return Err(NodeError::new(ErrorCode::AlreadyExists, message));
            }
            volume.size = wanted.size;
            Ok(volume.clone())
        })
    }

    /// Every volume with those that have it now.
    pub(super) fn count_list(&self) {
        self.counters.lists_of_all.fetch_add(1, Ordering::Relaxed);
    }

    /// How often somebody asked for everything of a kind.
    pub(crate) fn lists_of_all(&self) -> u64 {
        self.counters.lists_of_all.load(Ordering::Relaxed)
    }

    pub(super) fn snapshots_now(&self) -> Vec<SnapshotReport> {
        self.with(|inner| inner.snapshots.iter().rev().cloned().collect())
    }

    pub(super) fn volumes_now(&self) -> Vec<VolumeReport> {
        self.with(|inner| {
            let mut volumes = inner.volumes.clone();
            for volume in &mut volumes {
                for sandbox in inner.sandboxes.values() {
                    let mine = sandbox.project == volume.project;
                    let mount = sandbox
                        .volumes
                        .iter()
                        .find(|m| mine && m.name == volume.name);
                    match mount.map(|mount| mount.read_only) {
                        Some(true) => volume.readers.push(sandbox.id.clone()),
                        Some(false) => volume.writer = Some(sandbox.id.clone()),
                        None => {}
                    }
                }
            }
            volumes
        })
    }

    /// Notes that a sandbox is to boot on this disk.
    pub(super) fn on_disk(&self, disk_of: &SnapshotId, mut wanted: EnsureSandbox) -> EnsureSandbox {
        self.with(|inner| inner.booted.push(disk_of.clone()));
        wanted.from_snapshot = Some(disk_of.clone());
        wanted
    }

    /// The disks that sandboxes were to be booted on.
    pub(crate) fn booted(&self) -> Vec<SnapshotId> {
        self.with(|inner| inner.booted.clone())
    }

    /// Refuses a sandbox whose snapshot is not there.
    pub(super) fn has_origin(&self, wanted: &EnsureSandbox) -> Result<(), NodeError> {
        let Some(snapshot) = &wanted.from_snapshot else {
            return Ok(());
        };
        let is_it = |one: &SnapshotReport| one.id == *snapshot && one.project == wanted.project;
        let is_there = self.with(|inner| inner.snapshots.iter().any(is_it));
        let absent = || NodeError::not_found("there is no such snapshot");
        is_there.then_some(()).ok_or_else(absent)
    }

    /// Refuses a sandbox that cannot have its volumes: each has one writer, or readers.
    pub(super) fn has_volumes(&self, wanted: &EnsureSandbox) -> Result<(), NodeError> {
        let volumes = self.volumes_now();
        let is_busy = |mount: &MountedVolume| {
            volumes.iter().any(|volume| {
                let is_it = volume.project == wanted.project && volume.name == mount.name;
                is_it && (volume.writer.is_some() || !mount.read_only && !volume.readers.is_empty())
            })
        };
        if wanted.volumes.iter().any(is_busy) {
            let message = "another sandbox has the volume";
            return Err(NodeError::new(ErrorCode::VolumeBusy, message));
        }
        Ok(())
    }

    pub(super) fn drop_volume(
        &self,
        project: &ProjectId,
        name: &VolumeName,
    ) -> Result<(), NodeError> {
        let volumes = self.volumes_now();
        let is_it = |volume: &VolumeReport| volume.project == *project && volume.name == *name;
        let is_used = |volume: &VolumeReport| volume.writer.is_some() || !volume.readers.is_empty();
        if volumes
            .iter()
            .any(|volume| is_it(volume) && is_used(volume))
        {
            let message = "a sandbox has the volume";
            return Err(NodeError::new(ErrorCode::VolumeBusy, message));
        }
        self.with(|inner| inner.volumes.retain(|volume| !is_it(volume)));
        Ok(())
    }
}

impl NodeSnapshots for FakeNode {
    async fn snapshot(
        &self,
        id: &SandboxId,
        request: SnapshotRequest,
    ) -> Result<SnapshotReport, NodeError> {
        if let Some(delay) = self.with(|inner| inner.snapshot_delay) {
            tokio::time::sleep(delay).await;
        }
        self.take(id, request)
    }

    async fn snapshots(&self) -> Result<Vec<SnapshotReport>, NodeError> {
        self.count_list();
        Ok(self.snapshots_now())
    }

    async fn snapshots_of(&self, project: &ProjectId) -> Result<Vec<SnapshotReport>, NodeError> {
        let mut snapshots = self.snapshots_now();
        snapshots.retain(|snapshot| snapshot.project == *project);
        Ok(snapshots)
    }

    async fn find_snapshot(&self, id: &SnapshotId) -> Result<SnapshotReport, NodeError> {
        let found = self.snapshots_now().into_iter().find(|one| one.id == *id);
        found.ok_or_else(|| NodeError::not_found("no such snapshot"))
    }

    async fn delete_snapshot(&self, id: &SnapshotId) -> Result<(), NodeError> {
        self.with(|inner| inner.snapshots.retain(|snapshot| snapshot.id != *id));
        Ok(())
    }

    async fn fork(&self, id: &SandboxId, request: ForkRequest) -> Result<ForkReport, NodeError> {
        if let Some(delay) = self.with(|inner| inner.fork_delay) {
            tokio::time::sleep(delay).await;
        }
        self.make_children(id, request)
    }
}

impl NodeVolumes for FakeNode {
    async fn ensure_volume(&self, wanted: EnsureVolume) -> Result<VolumeReport, NodeError> {
        self.make_volume(wanted)
    }

    async fn volumes(&self) -> Result<Vec<VolumeReport>, NodeError> {
        self.count_list();
        Ok(self.volumes_now())
    }

    async fn volumes_of(&self, project: &ProjectId) -> Result<Vec<VolumeReport>, NodeError> {
        let mut volumes = self.volumes_now();
        volumes.retain(|volume| volume.project == *project);
        Ok(volumes)
    }

    async fn find_volume(
        &self,
        project: &ProjectId,
        name: &VolumeName,
    ) -> Result<VolumeReport, NodeError> {
        let own = self.volumes_of(project).await?;
        let found = own.into_iter().find(|one| one.name == *name);
        found.ok_or_else(|| NodeError::not_found("no such volume"))
    }

    async fn delete_volume(&self, project: &ProjectId, name: &VolumeName) -> Result<(), NodeError> {
        self.drop_volume(project, name)
    }
}

/// Unix microseconds.
pub(super) fn now_us() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_micros().try_into().unwrap()
}
