//! A node in memory. Its execs follow scripts, its refusals are set by the test.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dayfly_node_api::{
    AttachExec, BakeState, ContextLines, EnsureExec, EnsureSandbox, ExecEvents, FileBytes,
    FileChanges, FileRead, FileWrite, ForkRequest, GuestPath, KeptSandbox, LifecycleChange,
    LifecycleReport, NodeApi, NodeCall, NodeError, NodeExecs, NodeReply, NodeSandboxes, NodeStatus,
    PortStream, ResourceUse, SandboxReport, SetNetwork, SnapshotReport, Stage, StdinWrite,
    TemplateReport, VariantRequest, VolumeReport, Watch, WatchFiles,
};
use dayfly_types::exec::{ExecCommand, ExecInfo, WindowSize};
use dayfly_types::file::OpenedFile;
use dayfly_types::{
    ContextLanguage, ExecId, Generation, MemoryMib, ProjectId, RunMeaning, SandboxId, SandboxState,
    SnapshotId, TemplateName, Vcpus,
};
use futures::StreamExt;
use tokio::sync::{Notify, broadcast};

use super::fake_context::FakeContexts;
use super::fake_exec::{self, Counters, Step, exited};
use super::fake_identity::FakeIdentity;
use super::fake_ingress::FakeIngress;
use super::fake_list::{HeldList, load};
use super::fake_network::{FakeDecisions, FakeNetwork, NetworkFailure};
use super::fake_status::status;
use super::fake_variants;

#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) sandboxes: BTreeMap<SandboxId, SandboxReport>,
    pub(super) snapshots: Vec<SnapshotReport>,
    pub(super) volumes: Vec<VolumeReport>,
    pub(super) forks: Vec<ForkRequest>,
    pub(super) fork_delay: Option<Duration>,
    pub(super) snapshot_delay: Option<Duration>,
    /// How many children of a fork are made before the rest is refused.
    pub(super) fork_room: Option<usize>,
    pub(super) state_refusal: Option<NodeError>,
    pub(super) networks: BTreeMap<SandboxId, FakeNetwork>,
    pub(super) decisions: FakeDecisions,
    pub(super) network_failure: Option<(NetworkFailure, usize)>,
    pub(super) network_calls: Vec<SetNetwork>,
    pub(super) ingress: FakeIngress,
    wanted: Vec<EnsureSandbox>,
    pub(super) booted: Vec<SnapshotId>,
    pub(super) files: BTreeMap<(SandboxId, String), Vec<u8>>,
    pub(super) file_requests: Vec<String>,
    pub(super) templates: Vec<TemplateReport>,
    pub(super) variant_requests: Vec<VariantRequest>,
    scripts: HashMap<String, Vec<Step>>,
    requests: Vec<EnsureExec>,
    signals: Vec<(ExecId, i32)>,
    stdin: Vec<u8>,
    pub(super) written: Vec<u8>,
    ensure_refusal: Option<NodeError>,
    ensure_delay: Option<Duration>,
    delete_refusal: Option<NodeError>,
    ensure_calls: u64,
    pub(super) kept: Vec<KeptSandbox>,
    pub(super) contexts: FakeContexts,
    pub(super) disk_is_full: bool,
    pub(super) held_list: Option<HeldList>,
    pub(super) identity: FakeIdentity,
}

#[derive(Debug)]
pub(crate) struct FakeNode {
    inner: Mutex<Inner>,
    changes: broadcast::Sender<SandboxReport>,
    pub(super) recorded: Notify,
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
            recorded: Notify::new(),
            counters: Arc::default(),
        }
    }
}

pub(crate) fn template(name: &str, state: BakeState) -> TemplateReport {
    TemplateReport {
        name: TemplateName::parse(name).unwrap(),
        description: format!("the {name} template"),
        alias_of: None,
        memory: MemoryMib::new(512).unwrap(),
        vcpus: Vcpus::new(1).unwrap(),
        disk_mib: 4096,
        run: RunMeaning::Shell,
        contexts: vec![ContextLanguage::Python],
        is_usable: state == BakeState::Ready,
        state,
        size_bytes: 1 << 28,
        baked_at: Some(1_700_000_000),
        image: None,
        variants: Vec::new(),
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

    pub(crate) fn last_exec(&self) -> Option<EnsureExec> {
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

impl FakeNode {
    /// What the exec of this id does.
    fn steps_of(&self, exec: &ExecId) -> Result<Vec<Step>, NodeError> {
        let found = self.with(|inner| {
            let request = inner
                .requests
                .iter()
                .rev()
                .find(|r| r.spec.exec_id == *exec)?;
            let text = match &request.spec.command {
                ExecCommand::Shell(text) => text.clone(),
                ExecCommand::Argv(words) => words.join(" "),
            };
            let usual = || vec![Step::Stdout(text.clone().into()), Step::Exit(exited(0))];
            Some(inner.scripts.get(&text).cloned().unwrap_or_else(usual))
        });
        found.ok_or_else(|| NodeError::not_found("no such exec"))
    }

    /// Signals that were sent.
    pub(crate) fn signals(&self) -> Vec<(ExecId, i32)> {
        self.with(|inner| inner.signals.clone())
    }

    /// Whether a text arrived in any way: as a command, as input, in a file or at a service.
    pub(crate) fn has_arrived(&self, text: &str) -> bool {
        let holds = |bytes: &[u8]| {
            let mut windows = bytes.windows(text.len());
            windows.any(|window| window == text.as_bytes())
        };
        let is_command = |request: &EnsureExec| match &request.spec.command {
            ExecCommand::Shell(command) => command.contains(text),
            ExecCommand::Argv(words) => words.iter().any(|word| word.contains(text)),
        };
        let inside = self.with(|inner| {
            let commands = inner.requests.iter().any(is_command);
            commands || holds(&inner.stdin) || holds(&inner.written)
        });
        inside || holds(&self.received())
    }

    /// Input that was sent to any exec.
    pub(crate) fn stdin(&self) -> Vec<u8> {
        self.with(|inner| inner.stdin.clone())
    }
}

#[async_trait]
impl NodeApi for FakeNode {
    async fn call(&self, call: NodeCall) -> Result<NodeReply, NodeError> {
        dayfly_node_api::answer(self, call).await
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

    async fn exec(&self, id: &SandboxId, request: EnsureExec) -> Result<ExecEvents, NodeError> {
        self.awake(id)?;
        let text = match &request.spec.command {
            ExecCommand::Shell(text) => text.clone(),
            ExecCommand::Argv(words) => words.join(" "),
        };
        self.with(|inner| {
            let id = &request.spec.exec_id;
            inner.requests.retain(|known| known.spec.exec_id != *id);
            inner.requests.push(request);
        });
        let steps = self
            .with(|inner| inner.scripts.get(&text).cloned())
            .unwrap_or_else(|| vec![Step::Stdout(text.into()), Step::Exit(exited(0))]);
        Ok(fake_exec::run(steps, Arc::clone(&self.counters)))
    }

    async fn attach_exec(
        &self,
        id: &SandboxId,
        request: AttachExec,
    ) -> Result<(ExecInfo, ExecEvents), NodeError> {
        let report = self.describe_exec(id, &request.exec).await?;
        let steps = fake_exec::from_offsets(
            self.steps_of(&request.exec)?,
            request.stdout_offset,
            request.stderr_offset,
        );
        let events = fake_exec::run(steps, Arc::clone(&self.counters));
        Ok((report, events))
    }

    async fn write_stdin(
        &self,
        id: &SandboxId,
        request: StdinWrite,
        mut content: FileBytes,
    ) -> Result<u64, NodeError> {
        self.awake(id)?;
        self.steps_of(&request.exec)?;
        while let Some(piece) = content.next().await {
            let piece = piece?;
            self.with(|inner| inner.stdin.extend_from_slice(&piece));
        }
        Ok(self.with(|inner| inner.stdin.len() as u64))
    }

    async fn context(&self, id: &SandboxId, line: String) -> Result<ContextLines, NodeError> {
        self.awake(id)?;
        let lines = self.with(|inner| inner.contexts.answer(line.as_bytes()));
        Ok(futures::stream::iter(lines.into_iter().map(Ok)).boxed())
    }

    async fn read_file(
        &self,
        id: &SandboxId,
        request: FileRead,
    ) -> Result<(OpenedFile, FileBytes), NodeError> {
        self.open_file(id, request).await
    }

    async fn write_file(
        &self,
        id: &SandboxId,
        request: FileWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        self.store_file(id, request, content).await
    }

    async fn watch_files(
        &self,
        id: &SandboxId,
        request: WatchFiles,
    ) -> Result<FileChanges, NodeError> {
        self.watch_path(id, request).await
    }

    async fn pack_tree(&self, id: &SandboxId, request: GuestPath) -> Result<FileBytes, NodeError> {
        self.pack(id, request).await
    }

    async fn unpack_tree(
        &self,
        id: &SandboxId,
        request: GuestPath,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        self.unpack(id, request, content).await
    }

    async fn connect_port(&self, id: &SandboxId, port: u16) -> Result<PortStream, NodeError> {
        self.connect(id, port).await
    }
}

impl NodeSandboxes for FakeNode {
    async fn status(&self) -> Result<NodeStatus, NodeError> {
        Ok(status(self))
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
            let is_own = report.project == wanted.project;
            let foreign = || NodeError::not_found("there is no such sandbox on this node");
            return is_own.then_some(report).ok_or_else(foreign);
        }
        self.has_origin(&wanted)?;
        self.has_volumes(&wanted)?;
        self.begin_network(&wanted);
        let report = made(self.with_size(wanted));
        self.put(report.clone());
        Ok(report)
    }

    async fn boot_sandbox(
        &self,
        disk_of: &SnapshotId,
        wanted: EnsureSandbox,
    ) -> Result<SandboxReport, NodeError> {
        self.ensure_sandbox(self.on_disk(disk_of, wanted)).await
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
        Ok(self.list().await)
    }

    async fn loads(&self, project: &ProjectId) -> Result<Vec<ResourceUse>, NodeError> {
        let reports = self.sandboxes().await?;
        let own = reports.into_iter().filter(|it| it.project == *project);
        Ok(own.map(load).collect())
    }

    async fn all_loads(&self) -> Result<Vec<ResourceUse>, NodeError> {
        Ok(self.loads_now())
    }

    async fn pause(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.change(id, &[SandboxState::Running], SandboxState::Paused)
    }

    async fn resume(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.change(id, &[SandboxState::Paused], SandboxState::Running)
    }

    async fn hibernate(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        let from = [SandboxState::Running, SandboxState::Paused];
        self.change(id, &from, SandboxState::Hibernated)
    }

    async fn wake(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        self.change(id, &[SandboxState::Hibernated], SandboxState::Running)
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
}

impl NodeExecs for FakeNode {
    async fn describe_exec(&self, id: &SandboxId, exec: &ExecId) -> Result<ExecInfo, NodeError> {
        self.awake(id)?;
        Ok(fake_exec::report(exec, &self.steps_of(exec)?))
    }

    async fn list_execs(&self, id: &SandboxId) -> Result<Vec<ExecInfo>, NodeError> {
        self.awake(id)?;
        let ids = self.with(|inner| {
            inner
                .requests
                .iter()
                .map(|r| r.spec.exec_id.clone())
                .collect::<Vec<_>>()
        });
        ids.iter()
            .map(|exec| Ok(fake_exec::report(exec, &self.steps_of(exec)?)))
            .collect()
    }

    async fn signal_exec(
        &self,
        id: &SandboxId,
        exec: &ExecId,
        signal: i32,
    ) -> Result<(), NodeError> {
        self.awake(id)?;
        self.steps_of(exec)?;
        self.with(|inner| inner.signals.push((exec.clone(), signal)));
        Ok(())
    }

    async fn resize_exec(
        &self,
        id: &SandboxId,
        exec: &ExecId,
        _: WindowSize,
    ) -> Result<(), NodeError> {
        self.awake(id)?;
        self.steps_of(exec).map(drop)
    }

    async fn forget_exec(&self, id: &SandboxId, exec: &ExecId) -> Result<(), NodeError> {
        self.awake(id)?;
        self.with(|inner| {
            inner
                .requests
                .retain(|request| request.spec.exec_id != *exec)
        });
        Ok(())
    }
}

/// A sandbox that runs as it was asked for.
pub(crate) fn made(wanted: EnsureSandbox) -> SandboxReport {
    let size = fake_variants::size_of(&wanted);
    SandboxReport {
        id: wanted.id,
        project: wanted.project,
        template: wanted.template,
        state: SandboxState::Running,
        generation: Generation(2),
        reason: None,
        memory: size.memory,
        vcpus: size.vcpus,
        ready_ms: Some(12),
        stages: vec![Stage {
            name: "restore".to_owned(),
            micros: 9000,
        }],
        // As if it took longer than the call itself: nothing may lie outside of that.
        stages_began_us: Some(super::fake_state::now_us()),
        expires_in_seconds: wanted.lifecycle.ttl_seconds,
        lifecycle: wanted.lifecycle,
        cpu: wanted.cpu,
        disk_mib: wanted.disk.map_or(4096, |disk| u64::from(disk.get())),
        from_snapshot: wanted.from_snapshot,
        disk_only: false,
        volumes: wanted.volumes,
        unavailable: None,
        metadata: wanted.metadata,
        created_at_ms: wanted.created_at_ms,
        condition: None,
        ended: None,
        class: wanted.class,
        sleep_reason: None,
    }
}
