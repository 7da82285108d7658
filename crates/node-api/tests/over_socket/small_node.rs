//! A node that answers just enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dayfly_node_api::{
    AttachExec, ContextLines, EnsureExec, EnsureSandbox, EnsureVolume, ExecEvents, FileBytes,
    ForkChild, ForkOutcome, ForkReport, ForkRequest, LifecycleChange, LifecycleReport, NodeApi,
    NodeError, NodeStatus, SandboxLoad, SandboxReport, SnapshotReport, SnapshotRequest, StdinWrite,
    TemplateReport, VolumeReport, Watch,
};
use dayfly_types::capture::CaptureCost;
use dayfly_types::exec::{
    ExecEnd, ExecEvent, ExecExit, ExecInfo, ExitReason, LimitKind, LogExtent, OutputGap,
    OutputStream, TerminalSize,
};
use dayfly_types::volume::MountedVolume;
use dayfly_types::{
    CpuMillis, ErrorCode, ExecId, Generation, Lifecycle, MemoryMib, OnTimeout, ProjectId,
    SandboxCondition, SandboxId, SandboxState, SnapshotId, TemplateName, Vcpus, VolumeName,
};
use futures::StreamExt;

/// Answers just enough to see every form that the wire has.
#[derive(Debug, Default)]
pub(crate) struct SmallNode {
    pub(crate) written: AtomicU64,
    pub(crate) pulled: Arc<AtomicU64>,
}

pub(crate) fn full() -> NodeError {
    NodeError::new(ErrorCode::NoCapacity, "full")
        .retry_after(Duration::from_secs(3))
        .at_percent(7)
}

pub(crate) fn end() -> ExecEnd {
    let exit = ExecExit {
        code: 3,
        signal: Some(9),
        reason: ExitReason::Killed,
        limits_hit: vec![LimitKind::Memory],
    };
    ExecEnd {
        exit,
        duration_ms: 5,
    }
}

#[async_trait]
impl NodeApi for SmallNode {
    async fn status(&self) -> Result<NodeStatus, NodeError> {
        Err(full())
    }

    async fn templates(&self) -> Result<Vec<TemplateReport>, NodeError> {
        Ok(Vec::new())
    }

    async fn find_template(&self, name: &TemplateName) -> Result<TemplateReport, NodeError> {
        Err(NodeError::not_found(name.as_str()))
    }

    async fn ensure_template(&self, _: &TemplateName) -> Result<TemplateReport, NodeError> {
        Err(full())
    }

    async fn ensure_sandbox(&self, _: EnsureSandbox) -> Result<SandboxReport, NodeError> {
        Err(full())
    }

    async fn delete_sandbox(&self, _: &SandboxId) -> Result<(), NodeError> {
        Ok(())
    }

    async fn sandbox(&self, _: &SandboxId) -> Result<SandboxReport, NodeError> {
        Err(NodeError::not_found("none"))
    }

    async fn sandboxes(&self) -> Result<Vec<SandboxReport>, NodeError> {
        Ok(Vec::new())
    }

    async fn loads(&self, _: &ProjectId) -> Result<Vec<SandboxLoad>, NodeError> {
        Ok(Vec::new())
    }

    async fn watch(&self) -> Result<Watch, NodeError> {
        Ok(futures::stream::iter([Err(full())]).boxed())
    }

    async fn exec(&self, _: &SandboxId, request: EnsureExec) -> Result<ExecEvents, NodeError> {
        let stdin = request.input.unwrap_or_default();
        if stdin.is_empty() {
            let pulled = Arc::clone(&self.pulled);
            let endless = futures::stream::repeat_with(move || {
                pulled.fetch_add(1, Ordering::SeqCst);
                Ok(ExecEvent::Stdout(Bytes::from(vec![0; 64 << 10])))
            });
            return Ok(endless.boxed());
        }
        let events = [
            Ok(ExecEvent::Stdout(stdin.into())),
            Ok(ExecEvent::Stderr(Bytes::new())),
            Ok(ExecEvent::Exited(end())),
        ];
        Ok(futures::stream::iter(events).boxed())
    }

    async fn attach_exec(
        &self,
        _: &SandboxId,
        request: AttachExec,
    ) -> Result<(ExecInfo, ExecEvents), NodeError> {
        let events = [
            Ok(ExecEvent::Gap(OutputGap {
                stream: OutputStream::Stdout,
                bytes: request.stdout_offset.unwrap_or(0),
            })),
            Ok(ExecEvent::Exited(end())),
        ];
        let report = exec_report(request.exec);
        Ok((report, futures::stream::iter(events).boxed()))
    }

    async fn describe_exec(&self, _: &SandboxId, exec: &ExecId) -> Result<ExecInfo, NodeError> {
        Ok(exec_report(exec.clone()))
    }

    async fn list_execs(&self, _: &SandboxId) -> Result<Vec<ExecInfo>, NodeError> {
        Ok(Vec::new())
    }

    async fn signal_exec(&self, _: &SandboxId, _: &ExecId, signal: i32) -> Result<(), NodeError> {
        if signal == 15 { Ok(()) } else { Err(full()) }
    }

    async fn resize_exec(
        &self,
        _: &SandboxId,
        _: &ExecId,
        _: TerminalSize,
    ) -> Result<(), NodeError> {
        Ok(())
    }

    async fn forget_exec(&self, _: &SandboxId, _: &ExecId) -> Result<(), NodeError> {
        Ok(())
    }

    async fn write_stdin(
        &self,
        _: &SandboxId,
        request: StdinWrite,
        mut content: FileBytes,
    ) -> Result<u64, NodeError> {
        let mut bytes = request.offset.unwrap_or(0);
        while let Some(piece) = content.next().await {
            bytes += piece?.len() as u64;
        }
        Ok(bytes)
    }

    async fn context(&self, _: &SandboxId, request: Bytes) -> Result<ContextLines, NodeError> {
        // A line of several records, an empty one, and the request itself.
        let lines = [Bytes::from(vec![b'x'; 200_000]), Bytes::new(), request];
        Ok(futures::stream::iter(lines.map(Ok)).boxed())
    }

    async fn pause(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        Ok(report(id, SandboxState::Paused))
    }

    async fn resume(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        Ok(report(id, SandboxState::Running))
    }

    async fn hibernate(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        Ok(report(id, SandboxState::Hibernated))
    }

    async fn wake(&self, id: &SandboxId) -> Result<SandboxReport, NodeError> {
        Ok(report(id, SandboxState::Waking))
    }

    async fn rollback(
        &self,
        id: &SandboxId,
        snapshot: &SnapshotId,
    ) -> Result<SandboxReport, NodeError> {
        let mut report = report(id, SandboxState::Running);
        report.from_snapshot = Some(snapshot.clone());
        Ok(report)
    }

    async fn lifecycle(&self, _: &SandboxId) -> Result<LifecycleReport, NodeError> {
        Err(full())
    }

    async fn set_lifecycle(
        &self,
        _: &SandboxId,
        change: LifecycleChange,
    ) -> Result<LifecycleReport, NodeError> {
        Ok(LifecycleReport {
            lifecycle: Lifecycle {
                // One more than was asked for; 1 when null was; 0 when nothing was.
                ttl_seconds: change
                    .ttl_seconds
                    .map_or(Some(0), |seconds| Some(seconds.map_or(1, |n| n + 1))),
                persistent: change.persistent.unwrap_or_default(),
                idle_seconds: change.idle_seconds.flatten(),
                on_timeout: change.on_timeout.unwrap_or_default(),
            },
            expires_in_seconds: None,
            idle_for_seconds: 5,
        })
    }

    async fn snapshot(
        &self,
        id: &SandboxId,
        request: SnapshotRequest,
    ) -> Result<SnapshotReport, NodeError> {
        Ok(SnapshotReport {
            id: request.id,
            project: project(),
            sandbox: id.clone(),
            template: TemplateName::parse("base").unwrap(),
            name: request.name,
            size_bytes: 7,
            created_at: 8,
            expires_at: request.retain_seconds.map(|seconds| seconds.cast_signed()),
            capture: CAPTURE,
        })
    }

    async fn snapshots(&self) -> Result<Vec<SnapshotReport>, NodeError> {
        Ok(Vec::new())
    }

    async fn snapshots_of(&self, project: &ProjectId) -> Result<Vec<SnapshotReport>, NodeError> {
        Err(NodeError::not_found(project.as_str()))
    }

    async fn find_snapshot(&self, id: &SnapshotId) -> Result<SnapshotReport, NodeError> {
        Err(NodeError::not_found(id.as_str()))
    }

    async fn delete_snapshot(&self, id: &SnapshotId) -> Result<(), NodeError> {
        Err(NodeError::new(ErrorCode::SnapshotInUse, id.as_str()))
    }

    async fn fork(&self, id: &SandboxId, request: ForkRequest) -> Result<ForkReport, NodeError> {
        let made = ForkOutcome::Made(Box::new(report(id, SandboxState::Running)));
        let outcomes = [made, ForkOutcome::Refused(full())];
        let children = request.children.into_iter().zip(outcomes);
        Ok(ForkReport {
            capture: CAPTURE,
            children: children
                .map(|(child, outcome)| ForkChild {
                    id: child.id,
                    outcome,
                })
                .collect(),
            renewed: vec![request.snapshot.to_string()],
            not_renewed: vec![request.all_or_nothing.to_string()],
        })
    }

    async fn ensure_volume(&self, wanted: EnsureVolume) -> Result<VolumeReport, NodeError> {
        Ok(VolumeReport {
            project: wanted.project,
            name: wanted.name,
            size: wanted.size,
            used_bytes: 1,
            created_at: 2,
            fence: 3,
            writer: Some(SandboxId::parse("sb-w").unwrap()),
            readers: vec![SandboxId::parse("sb-r").unwrap()],
        })
    }

    async fn volumes(&self) -> Result<Vec<VolumeReport>, NodeError> {
        Ok(Vec::new())
    }

    async fn volumes_of(&self, project: &ProjectId) -> Result<Vec<VolumeReport>, NodeError> {
        Err(NodeError::not_found(project.as_str()))
    }

    async fn find_volume(
        &self,
        project: &ProjectId,
        name: &VolumeName,
    ) -> Result<VolumeReport, NodeError> {
        Err(NodeError::not_found(format!("{project} {name}")))
    }

    async fn delete_volume(&self, project: &ProjectId, name: &VolumeName) -> Result<(), NodeError> {
        Err(NodeError::new(
            ErrorCode::VolumeBusy,
            format!("{project} {name}"),
        ))
    }
}

pub(crate) const CAPTURE: CaptureCost = CaptureCost {
    pause_us: 1,
    frozen_us: 2,
    device_us: 3,
    memory_us: 4,
    disk_us: 5,
    total_us: 6,
    memory_bytes: 7,
    disk_bytes: 8,
};

pub(crate) fn project() -> ProjectId {
    ProjectId::default_project()
}

pub(crate) fn mount() -> MountedVolume {
    MountedVolume {
        name: VolumeName::parse("data").unwrap(),
        path: "/data".to_owned(),
        read_only: true,
    }
}

/// A report in which every new field says something.
pub(crate) fn report(id: &SandboxId, state: SandboxState) -> SandboxReport {
    SandboxReport {
        id: id.clone(),
        project: project(),
        template: TemplateName::parse("base").unwrap(),
        state,
        generation: Generation(1),
        reason: None,
        memory: MemoryMib::new(512).unwrap(),
        vcpus: Vcpus::new(1).unwrap(),
        ready_ms: None,
        stages: Vec::new(),
        expires_in_seconds: Some(9),
        lifecycle: Lifecycle {
            ttl_seconds: Some(10),
            persistent: true,
            idle_seconds: Some(11),
            on_timeout: OnTimeout::Hibernate,
        },
        cpu: Some(CpuMillis::new(500).unwrap()),
        disk_mib: 12,
        from_snapshot: None,
        volumes: vec![mount()],
        unavailable: Some("not now".to_owned()),
        metadata: [("team".to_owned(), "red".to_owned())].into(),
        created_at_ms: Some(5),
        condition: Some(SandboxCondition::DiskFull),
    }
}

fn exec_report(exec_id: ExecId) -> ExecInfo {
    ExecInfo {
        exec_id,
        number: 1,
        title: "make".to_owned(),
        user: "agent".to_owned(),
        pid: 42,
        started_unix_ms: 5,
        exit: None,
        duration_ms: 7,
        is_terminal: true,
        takes_stdin: true,
        stdin_bytes: 3,
        stdout: LogExtent { start: 1, end: 2 },
        stderr: LogExtent::default(),
    }
}
