//! A node in memory. Its execs follow scripts, its refusals are set by the test.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dayfly_node_api::{
    BakeState, Directory, DirectoryEntry, EnsureSandbox, EnsureVolume, ExecCommand, ExecEvents,
    ExecRequest, FileBytes, FileInfo, FileRead, FileWrite, ForkReport, ForkRequest,
    LifecycleChange, LifecycleReport, NodeApi, NodeError, NodeStatus, PoolStatus, SandboxReport,
    SnapshotReport, SnapshotRequest, Stage, TemplateReport, VolumeReport, Watch,
};
use dayfly_types::{
    Generation, Isolation, MemoryMib, NodeId, ProjectId, SandboxId, SandboxState, SnapshotId,
    TemplateName, Vcpus, VolumeName,
};
use futures::StreamExt;
use tokio::sync::broadcast;

use super::fake_exec::{self, Counters, Step, exited};

#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) sandboxes: BTreeMap<SandboxId, SandboxReport>,
    pub(super) snapshots: Vec<SnapshotReport>,
    pub(super) volumes: Vec<VolumeReport>,
    pub(super) forks: Vec<ForkRequest>,
    pub(super) fork_delay: Option<Duration>,
    /// How many children of a fork are made before the rest is refused.
    pub(super) fork_room: Option<usize>,
    pub(super) state_refusal: Option<NodeError>,
    wanted: Vec<EnsureSandbox>,
    files: BTreeMap<(SandboxId, String), Vec<u8>>,
    templates: Vec<TemplateReport>,
    scripts: HashMap<String, Vec<Step>>,
    requests: Vec<ExecRequest>,
    ensure_refusal: Option<NodeError>,
    ensure_delay: Option<Duration>,
    delete_refusal: Option<NodeError>,
    ensure_calls: u64,
}

#[derive(Debug)]
pub(crate) struct FakeNode {
    inner: Mutex<Inner>,
    changes: broadcast::Sender<SandboxReport>,
    pub(crate) counters: Arc<Counters>,
}

impl Default for FakeNode {
    fn default() -> Self {
        let inner = Inner {
            templates: vec![template("base", BakeState::Ready)],
            ..Inner::default()
        };
        let (changes, _) = broadcast::channel(1024);
        Self {
            inner: Mutex::new(inner),
            changes,
            counters: Arc::default(),
        }
    }
}

pub(crate) fn template(name: &str, state: BakeState) -> TemplateReport {
    TemplateReport {
        name: TemplateName::parse(name).unwrap(),
        description: format!("the {name} template"),
        memory: MemoryMib::new(512).unwrap(),
        vcpus: Vcpus::new(1).unwrap(),
        disk_mib: 4096,
        state,
        size_bytes: 1 << 28,
        baked_at: Some(1_700_000_000),
    }
}

impl FakeNode {
    pub(crate) fn script(&self, command: &str, steps: impl IntoIterator<Item = Step>) {
        self.with(|inner| {
            inner
                .scripts
                .insert(command.to_owned(), steps.into_iter().collect())
        });
    }

    pub(crate) fn set_templates(&self, templates: Vec<TemplateReport>) {
        self.with(|inner| inner.templates = templates);
    }

    pub(crate) fn refuse_ensure(&self, error: Option<NodeError>) {
        self.with(|inner| inner.ensure_refusal = error);
    }

    pub(crate) fn delay_ensure(&self, delay: Duration) {
        self.with(|inner| inner.ensure_delay = Some(delay));
    }

    pub(crate) fn refuse_delete(&self, error: Option<NodeError>) {
        self.with(|inner| inner.delete_refusal = error);
    }

    pub(crate) fn ensure_calls(&self) -> u64 {
        self.with(|inner| inner.ensure_calls)
    }

    /// What was asked for last.
    pub(crate) fn last_wanted(&self) -> Option<EnsureSandbox> {
        self.with(|inner| inner.wanted.last().cloned())
    }

    pub(crate) fn last_exec(&self) -> Option<ExecRequest> {
        self.with(|inner| inner.requests.last().cloned())
    }

    pub(crate) fn ids(&self) -> Vec<SandboxId> {
        self.with(|inner| inner.sandboxes.keys().cloned().collect())
    }

    /// Changes a sandbox behind everybody's back, as a TTL or a crash does.
    pub(crate) fn put(&self, report: SandboxReport) {
        self.with(|inner| {
            if report.state == SandboxState::Deleted {
                inner.sandboxes.remove(&report.id);
            } else {
                inner.sandboxes.insert(report.id.clone(), report.clone());
            }
        });
        let _ = self.changes.send(report);
    }

    /// Loses a sandbox without a word.
    pub(crate) fn lose(&self, id: &SandboxId) {
        self.with(|inner| inner.sandboxes.remove(id));
    }

    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.inner.lock().unwrap())
    }

    pub(super) fn known(&self, id: &SandboxId) -> Result<(), NodeError> {
        self.sandbox_now(id).map(drop)
    }

    pub(super) fn sandbox_now(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.with(|inner| inner.sandboxes.get(id).cloned())
            .ok_or_else(|| NodeError::not_found("there is no such sandbox on this node"))
    }
}

#[async_trait]
impl NodeApi for FakeNode {
    async fn status(&self) -> Result<NodeStatus, NodeError> {
        Ok(NodeStatus {
            node: NodeId::parse("fake").unwrap(),
            isolation: Isolation::Emulated,
            engine: "fake".to_owned(),
            engine_version: "1".to_owned(),
            accelerator: "none".to_owned(),
            sandboxes: self.ids().len() as u64,
            memory_total_mib: 1024,
            memory_committed_mib: 0,
            memory_reserve_mib: 0,
            disk_available_mib: 1024,
            disk_committed_mib: 0,
            disk_reserve_mib: 0,
            pools: vec![PoolStatus {
                template: TemplateName::parse("base").unwrap(),
                parked: 1,
                target: 2,
            }],
            held_slots: Vec::new(),
            parked_slots: 1,
            parked_slots_target: 2,
        })
    }

    async fn templates(&self) -> Result<Vec<TemplateReport>, NodeError> {
        Ok(self.with(|inner| inner.templates.clone()))
    }

    async fn ensure_sandbox(&self, wanted: EnsureSandbox) -> Result<SandboxReport, NodeError> {
        self.with(|inner| {
            inner.ensure_calls += 1;
            inner.wanted.push(wanted.clone());
        });
        if let Some(error) = self.with(|inner| inner.ensure_refusal.clone()) {
            return Err(error);
        }
        if let Some(delay) = self.with(|inner| inner.ensure_delay) {
            tokio::time::sleep(delay).await;
        }
        if let Ok(report) = self.sandbox_now(&wanted.id) {
            return Ok(report);
        }
        let report = made(wanted);
        self.put(report.clone());
        Ok(report)
    }

    async fn delete_sandbox(&self, id: &SandboxId) -> Result<(), NodeError> {
        if let Some(error) = self.with(|inner| inner.delete_refusal.clone()) {
            return Err(error);
        }
        if let Ok(mut report) = self.sandbox_now(id) {
            report.state = SandboxState::Deleted;
            report.generation = report.generation.next();
            self.put(report);
        }
        Ok(())
    }

    async fn sandbox(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.sandbox_now(id)
    }

    async fn sandboxes(&self) -> Result<Vec<SandboxReport>, NodeError> {
        Ok(self.with(|inner| inner.sandboxes.values().cloned().collect()))
    }

    async fn watch(&self) -> Result<Watch, NodeError> {
        let changes = self.changes.subscribe();
        let all = self.with(|inner| inner.sandboxes.values().cloned().collect::<Vec<_>>());
        let news = futures::stream::unfold(changes, async |mut changes| {
            let report = changes.recv().await.ok()?;
            Some((Ok(report), changes))
        });
        Ok(futures::stream::iter(all.into_iter().map(Ok))
            .chain(news)
            .boxed())
    }

    async fn exec(&self, id: &SandboxId, request: ExecRequest) -> Result<ExecEvents, NodeError> {
        self.awake(id)?;
        let text = match &request.command {
            ExecCommand::Shell(text) => text.clone(),
            ExecCommand::Argv(words) => words.join(" "),
        };
        self.with(|inner| inner.requests.push(request));
        let steps = self
            .with(|inner| inner.scripts.get(&text).cloned())
            .unwrap_or_else(|| vec![Step::Stdout(text.into()), Step::Exit(exited(0))]);
        Ok(fake_exec::run(steps, Arc::clone(&self.counters)))
    }

    async fn read_file(
        &self,
        id: &SandboxId,
        request: FileRead,
    ) -> Result<(FileInfo, FileBytes), NodeError> {
        self.known(id)?;
        let found = self.with(|inner| inner.files.get(&(id.clone(), request.path)).cloned());
        let bytes = found.ok_or_else(|| NodeError::not_found("there is no such file"))?;
        let info = FileInfo {
            size: bytes.len() as u64,
            mode: 0o644,
            mtime: 1_700_000_000,
        };
        let counters = Arc::clone(&self.counters);
        let pieces: Vec<Bytes> = bytes.chunks(64 << 10).map(Bytes::copy_from_slice).collect();
        let content = futures::stream::iter(pieces).map(move |piece| {
            counters
                .bytes_out
                .fetch_add(piece.len() as u64, Ordering::SeqCst);
            Ok(piece)
        });
        Ok((info, content.boxed()))
    }

    async fn write_file(
        &self,
        id: &SandboxId,
        request: FileWrite,
        mut content: FileBytes,
    ) -> Result<u64, NodeError> {
        self.known(id)?;
        if request.path.ends_with("/full") {
            let error = NodeError::new(dayfly_types::ErrorCode::DiskFull, "the disk is full");
            return Err(error);
        }
        let mut bytes = Vec::new();
        while let Some(piece) = content.next().await {
            let piece = piece?;
            self.counters
                .bytes_in
                .fetch_add(piece.len() as u64, Ordering::SeqCst);
            bytes.extend_from_slice(&piece);
            if request.path.ends_with("/slow") {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        let length = bytes.len() as u64;
        self.with(|inner| inner.files.insert((id.clone(), request.path), bytes));
        Ok(length)
    }

    async fn list_directory(&self, id: &SandboxId, path: &str) -> Result<Directory, NodeError> {
        self.known(id)?;
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let entries = self.with(|inner| {
            let mine = inner.files.iter().filter(|((owner, _), _)| owner == id);
            mine.filter(|((_, file), _)| file.starts_with(&prefix))
                .map(|((_, file), bytes)| entry(file, bytes))
                .collect()
        });
        Ok(Directory {
            entries,
            truncated: false,
        })
    }

    async fn stat(&self, id: &SandboxId, path: &str) -> Result<DirectoryEntry, NodeError> {
        self.known(id)?;
        self.with(|inner| inner.files.get(&(id.clone(), path.to_owned())).cloned())
            .map(|bytes| entry(path, &bytes))
            .ok_or_else(|| NodeError::not_found("there is no such file"))
    }

    async fn pause(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.change(id, SandboxState::Paused)
    }

    async fn resume(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.change(id, SandboxState::Running)
    }

    async fn hibernate(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.change(id, SandboxState::Hibernated)
    }

    async fn wake(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.change(id, SandboxState::Running)
    }

    async fn rollback(
        &self,
        id: &SandboxId,
        snapshot: &SnapshotId,
    ) -> Result<SandboxReport, NodeError> {
        self.roll_back(id, snapshot)
    }

    async fn lifecycle(&self, id: &SandboxId) -> Result<LifecycleReport, NodeError> {
        self.lifecycle_now(id)
    }

    async fn set_lifecycle(
        &self,
        id: &SandboxId,
        change: LifecycleChange,
    ) -> Result<LifecycleReport, NodeError> {
        self.change_lifecycle(id, change)
    }

    async fn snapshot(
        &self,
        id: &SandboxId,
        request: SnapshotRequest,
    ) -> Result<SnapshotReport, NodeError> {
        self.take(id, request)
    }

    async fn snapshots(&self) -> Result<Vec<SnapshotReport>, NodeError> {
        Ok(self.with(|inner| inner.snapshots.iter().rev().cloned().collect()))
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

    async fn ensure_volume(&self, wanted: EnsureVolume) -> Result<VolumeReport, NodeError> {
        self.make_volume(wanted)
    }

    async fn volumes(&self) -> Result<Vec<VolumeReport>, NodeError> {
        Ok(self.volumes_now())
    }

    async fn delete_volume(&self, project: &ProjectId, name: &VolumeName) -> Result<(), NodeError> {
        self.drop_volume(project, name)
    }
}

/// A sandbox that runs as it was asked for.
pub(super) fn made(wanted: EnsureSandbox) -> SandboxReport {
    SandboxReport {
        id: wanted.id,
        project: wanted.project,
        template: wanted.template,
        state: SandboxState::Running,
        generation: Generation(2),
        reason: None,
        memory: MemoryMib::new(512).unwrap(),
        vcpus: Vcpus::new(1).unwrap(),
        ready_ms: Some(12),
        stages: vec![Stage {
            name: "restore".to_owned(),
            micros: 9000,
        }],
        expires_in_seconds: wanted.lifecycle.ttl_seconds,
        lifecycle: wanted.lifecycle,
        cpu: wanted.cpu,
        disk_mib: wanted.disk.map_or(4096, |disk| u64::from(disk.get())),
        from_snapshot: wanted.from_snapshot,
        volumes: wanted.volumes,
    }
}

fn entry(path: &str, bytes: &[u8]) -> DirectoryEntry {
    DirectoryEntry {
        name: path.rsplit('/').next().unwrap_or_default().to_owned(),
        path: path.to_owned(),
        is_dir: false,
        is_symlink: false,
        size: bytes.len() as u64,
        mode: 0o100_644,
        mtime: 1_700_000_000,
        uid: 1000,
        gid: 1000,
    }
}
