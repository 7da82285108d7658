//! Nouns of the protocol, each with every field saying something.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use dayfly_node_api::{
    AttachExec, BakeState, EgressCount, EgressStatus, EnsureExec, EnsureSandbox, FileRead,
    FileWrite, Greeting, GuestPath, KeptSandbox, NetworkReport, NodeError, NodeStatus, NodeStream,
    NodeTransfer, PoolStatus, SandboxReport, SharingStatus, SnapshotReport, Stage, StdinWrite,
    TemplateReport, VariantReport, VariantRequest, VolumeReport, WatchFiles, WritePlace,
};
use dayfly_types::capture::CaptureCost;
use dayfly_types::container_image::{ImageHealthCheck, ImageHealthCommand, MadeImage};
use dayfly_types::egress::{
    Decision, DenyReason, EgressPolicy, EgressRecord, EgressRecordKind, HostName, NameSource,
};
use dayfly_types::exec::{
    ExecCommand, ExecEnd, ExecExit, ExecInfo, ExecLimits, ExecSpec, ExitReason, LimitKind,
    LogExtent, LogRule, StdinMode, WhenFull, WindowSize,
};
use dayfly_types::file::{FileMode, FileStat, WatchEvent, WatchKind};
use dayfly_types::volume::MountedVolume;
use dayfly_types::{
    ContextLanguage, CpuMillis, DiskMib, EndReason, ErrorCode, ExecId, Generation, GuestDefaults,
    IdleAction, Isolation, LifetimeRules, MemoryMib, NodeId, OrderedSource, OrderedTemplate,
    ProjectId, RunMeaning, SandboxClass, SandboxCondition, SandboxId, SandboxState, SleepReason,
    SnapshotId, TemplateName, TemplateSize, Vcpus, VolumeName,
};

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

pub(crate) fn id() -> SandboxId {
    SandboxId::parse("sb-local-x").unwrap()
}

pub(crate) fn exec() -> ExecId {
    ExecId::parse("ex-1").unwrap()
}

pub(crate) fn snapshot() -> SnapshotId {
    SnapshotId::parse("snap-1").unwrap()
}

pub(crate) fn project() -> ProjectId {
    ProjectId::default_project()
}

pub(crate) fn base() -> TemplateName {
    TemplateName::parse("base").unwrap()
}

pub(crate) fn volume_name() -> VolumeName {
    VolumeName::parse("data").unwrap()
}

pub(crate) fn lifecycle() -> LifetimeRules {
    LifetimeRules {
        ttl_seconds: Some(10),
        persistent: true,
        idle_seconds: Some(11),
        on_timeout: IdleAction::Hibernate,
    }
}

pub(crate) fn full() -> NodeError {
    NodeError::new(ErrorCode::NoCapacity, "full")
        .retry_after(Duration::from_secs(7))
        .at_percent(3)
}

pub(crate) fn mount() -> MountedVolume {
    MountedVolume {
        name: volume_name(),
        path: "/data".to_owned(),
        read_only: true,
    }
}

pub(crate) fn policy() -> EgressPolicy {
    let text = r#"{"mode":"observe","rules":[
        {"id":"one","host":"**.example.com","ports":[443]},
        {"id":"two","network":"93.184.216.0/24"}]}"#;
    serde_json::from_str(text).unwrap()
}

pub(crate) fn record() -> EgressRecord {
    let address = SocketAddrV4::new(Ipv4Addr::new(93, 184, 216, 34), 443);
    EgressRecord {
        sequence: 41,
        at_ms: 5,
        kind: EgressRecordKind::Tls,
        decision: Decision::Cut,
        name: Some(HostName::parse("a.example.com").unwrap()),
        name_source: NameSource::Sni,
        destination: Some(address),
        dialed: Some(address),
        answers: vec![*address.ip()],
        rule: Some("one".to_owned()),
        reason: Some(DenyReason::ModeDeny),
        internal_network: Some("mirror".to_owned()),
        would_deny: true,
        bytes_up: 1,
        bytes_down: 2,
        duration_ms: 3,
        suppressed: 4,
    }
}

pub(crate) fn report() -> SandboxReport {
    SandboxReport {
        id: id(),
        project: project(),
        template: base(),
        state: SandboxState::Running,
        generation: Generation(1),
        reason: Some("é".to_owned()),
        memory: MemoryMib::new(512).unwrap(),
        vcpus: Vcpus::new(1).unwrap(),
        ready_ms: Some(2),
        stages: vec![Stage {
            name: "engine".to_owned(),
            micros: 3,
        }],
        stages_began_us: Some(4),
        expires_in_seconds: Some(9),
        lifecycle: lifecycle(),
        cpu: Some(CpuMillis::new(500).unwrap()),
        disk_mib: 12,
        from_snapshot: Some(snapshot()),
        disk_only: true,
        volumes: vec![mount()],
        unavailable: Some("not now".to_owned()),
        metadata: [("team".to_owned(), "red".to_owned())].into(),
        created_at_ms: Some(5),
        class: SandboxClass::Shared,
        sleep_reason: Some(SleepReason::Pressure),
        condition: Some(SandboxCondition::DiskFull),
        ended: Some(EndReason::Ttl),
    }
}

pub(crate) fn ensure_sandbox() -> EnsureSandbox {
    EnsureSandbox {
        id: id(),
        project: project(),
        template: base(),
        size: Some(template_size()),
        from_snapshot: Some(snapshot()),
        lifecycle: lifecycle(),
        cpu: Some(CpuMillis::new(500).unwrap()),
        disk: Some(DiskMib::new(64).unwrap()),
        volumes: vec![mount()],
        reseed_user_space: true,
        egress: policy(),
        egress_epoch: 1,
        metadata: [("team".to_owned(), "red".to_owned())].into(),
        created_at_ms: Some(5),
        class: SandboxClass::Shared,
    }
}

pub(crate) fn exec_info() -> ExecInfo {
    ExecInfo {
        exec_id: exec(),
        number: 1,
        title: "make".to_owned(),
        user: "agent".to_owned(),
        pid: 42,
        started_unix_ms: 5,
        exit: Some(end().exit),
        duration_ms: 7,
        is_terminal: true,
        takes_stdin: true,
        stdin_bytes: 3,
        stdout: LogExtent { start: 1, end: 2 },
        stderr: LogExtent::default(),
    }
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

pub(crate) fn ensure_exec(input: &[u8]) -> EnsureExec {
    let spec = ExecSpec {
        exec_id: exec(),
        command: ExecCommand::Shell("cat".to_owned()),
        cwd: Some("/tmp".to_owned()),
        env: [("A".to_owned(), "b".to_owned())].into(),
        user: Some("root".to_owned()),
        timeout_ms: Some(1),
        stdin: StdinMode::Piped,
        terminal: Some(WindowSize {
            columns: 80,
            rows: 24,
        }),
        log: LogRule {
            bytes_max: 1 << 20,
            when_full: WhenFull::Block,
        },
        limits: ExecLimits {
            memory_bytes: Some(1),
            cpu_ms: Some(2),
            processes_max: Some(3),
        },
        is_service: true,
    };
    EnsureExec {
        spec,
        input: Some(input.to_vec()),
        keeps_stdin_open: true,
    }
}

pub(crate) fn template_size() -> TemplateSize {
    TemplateSize {
        memory: MemoryMib::new(1024).unwrap(),
        vcpus: Vcpus::new(2).unwrap(),
    }
}

pub(crate) fn variant() -> VariantReport {
    VariantReport {
        size: template_size(),
        state: BakeState::Ready,
        is_usable: true,
        size_bytes: 1 << 20,
        baked_at: Some(1_700_000_000),
        bake_ms: Some(23_000),
        is_awaited: true,
    }
}

pub(crate) fn variant_request() -> VariantRequest {
    VariantRequest {
        size: template_size(),
        by: Some(project()),
        is_awaited: true,
        renew: true,
    }
}

pub(crate) fn template() -> TemplateReport {
    TemplateReport {
        name: base(),
        description: "é".to_owned(),
        alias_of: Some(base()),
        memory: MemoryMib::new(512).unwrap(),
        vcpus: Vcpus::new(1).unwrap(),
        disk_mib: 4096,
        run: RunMeaning::Shell,
        contexts: vec![ContextLanguage::Python],
        state: BakeState::Baking {
            percent: 5,
            step: "packages".to_owned(),
        },
        is_usable: true,
        size_bytes: 1,
        baked_at: Some(2),
        variants: vec![variant()],
        image: Some(made_image()),
    }
}

fn made_image() -> MadeImage {
    MadeImage {
        digest: "sha256:0".to_owned(),
        layers: vec!["sha256:1".to_owned()],
        defaults: GuestDefaults {
            user: Some("1000:1000".to_owned()),
            directory: Some("/srv".to_owned()),
            environment: [("A".to_owned(), "b".to_owned())].into(),
        },
        entry_point: vec!["/serve".to_owned()],
        command: vec!["--here".to_owned()],
        shell: vec!["/bin/ash".to_owned(), "-c".to_owned()],
        on_build: Some("RUN true".to_owned()),
        health: Some(ImageHealthCheck {
            command: ImageHealthCommand::Shell("true".to_owned()),
            interval_ms: 1,
            timeout_ms: 2,
            start_period_ms: 3,
            retries: 4,
        }),
    }
}

pub(crate) fn ordered_template() -> OrderedTemplate {
    OrderedTemplate {
        name: TemplateName::parse("built.1").unwrap(),
        description: "é".to_owned(),
        source: OrderedSource::Snapshot {
            project: project(),
            snapshot: snapshot(),
            about: Box::new(made_image()),
        },
        memory: MemoryMib::new(512).unwrap(),
        vcpus: Vcpus::new(1).unwrap(),
        disk: DiskMib::new(4096).unwrap(),
        starts_entry_point: true,
    }
}

pub(crate) fn status() -> NodeStatus {
    NodeStatus {
        node: NodeId::parse("one").unwrap(),
        isolation: Isolation::Emulated,
        engine: "qemu".to_owned(),
        engine_version: "1".to_owned(),
        accelerator: "tcg".to_owned(),
        sandboxes: 1,
        memory_total_mib: 2,
        memory_committed_mib: 3,
        memory_reserve_mib: 4,
        sharing: SharingStatus {
            memory: 8,
            disk: 16,
            memory_available_mib: Some(9),
            pressure: Some("little is left".to_owned()),
            put_to_sleep: 3,
            not_put_to_sleep: 1,
        },
        disk_available_mib: 5,
        disk_committed_mib: 6,
        disk_reserve_mib: 7,
        pools: vec![PoolStatus {
            template: base(),
            parked: 1,
            target: 2,
        }],
        parked_slots: 8,
        parked_slots_target: 9,
        held_slots: vec![1],
        kept: vec![KeptSandbox {
            id: id(),
            project: Some(project()),
            reason: "torn".to_owned(),
        }],
        restarts: 10,
        egress: EgressStatus {
            restarts: 11,
            decisions: vec![EgressCount {
                kind: EgressRecordKind::Dns,
                decision: Decision::Denied,
                reason: Some(DenyReason::NoRule),
                count: 12,
            }],
        },
    }
}

pub(crate) fn snapshot_report() -> SnapshotReport {
    SnapshotReport {
        id: snapshot(),
        project: project(),
        sandbox: id(),
        template: base(),
        size: Some(template_size()),
        name: Some("é".to_owned()),
        size_bytes: 1,
        created_at: 2,
        disk_mib: 4096,
        expires_at: Some(3),
        capture: CAPTURE,
    }
}

pub(crate) fn volume() -> VolumeReport {
    VolumeReport {
        project: project(),
        name: volume_name(),
        size: DiskMib::new(64).unwrap(),
        used_bytes: 1,
        created_at: 2,
        fence: 3,
        writer: Some(id()),
        readers: vec![id()],
    }
}

pub(crate) fn network() -> NetworkReport {
    NetworkReport {
        policy: policy(),
        epoch: 3,
        is_enforced: true,
    }
}

pub(crate) fn stat() -> FileStat {
    FileStat {
        name: "é".to_owned(),
        path: "/é".to_owned(),
        is_dir: true,
        is_symlink: true,
        size: 1,
        mode: FileMode::of(0o755),
        mtime: -1,
        uid: 1000,
        gid: 1001,
    }
}

pub(crate) fn guest_path() -> GuestPath {
    GuestPath {
        path: "/é\0\n\"".to_owned(),
        user: Some("root".to_owned()),
    }
}

pub(crate) fn change(number: usize) -> WatchEvent {
    WatchEvent {
        kind: WatchKind::Moved,
        path: format!("/é\n{number}"),
        is_dir: number.is_multiple_of(2),
        from: Some("/before".to_owned()),
    }
}

pub(crate) fn greeting() -> Greeting {
    Greeting {
        program: "0.1.0".to_owned(),
        ..Greeting::ours([("journal".to_owned(), 3)].into())
    }
}

/// A call of each name, and an answer to it.
pub(crate) fn attach() -> AttachExec {
    AttachExec {
        exec: exec(),
        stdout_offset: Some(77),
        stderr_offset: None,
    }
}

pub(crate) fn read() -> FileRead {
    FileRead {
        path: "/é".to_owned(),
        user: Some("root".to_owned()),
        offset: 1,
        limit: Some(2),
    }
}

pub(crate) fn watch() -> WatchFiles {
    WatchFiles {
        path: "/é".to_owned(),
        user: Some("root".to_owned()),
        recursive: true,
    }
}

pub(crate) fn write() -> FileWrite {
    FileWrite {
        path: "/é".to_owned(),
        user: Some("root".to_owned()),
        mode: Some(0o600),
        place: WritePlace::At(3),
    }
}

pub(crate) fn stdin() -> StdinWrite {
    StdinWrite {
        exec: exec(),
        offset: Some(4),
        is_last: true,
    }
}

/// One of each opening of a stream.
pub(crate) fn streams() -> Vec<NodeStream> {
    let id = id();
    vec![
        NodeStream::Watch {},
        NodeStream::Exec {
            id: id.clone(),
            request: Box::new(ensure_exec(b"input")),
        },
        NodeStream::AttachExec {
            id: id.clone(),
            request: attach(),
        },
        NodeStream::Context {
            id: id.clone(),
            line: "{}".to_owned(),
        },
        NodeStream::ReadFile {
            id: id.clone(),
            request: read(),
        },
        NodeStream::WatchFiles {
            id: id.clone(),
            request: watch(),
        },
        NodeStream::PackTree {
            id,
            request: guest_path(),
        },
    ]
}

/// One of each transfer.
pub(crate) fn transfers() -> Vec<NodeTransfer> {
    let id = id();
    vec![
        NodeTransfer::WriteStdin {
            id: id.clone(),
            request: stdin(),
        },
        NodeTransfer::WriteFile {
            id: id.clone(),
            request: write(),
        },
        NodeTransfer::UnpackTree {
            id,
            request: guest_path(),
        },
    ]
}
