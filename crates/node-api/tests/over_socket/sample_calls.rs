//! One sample of each call with an answer, in which every field says something.

use std::time::Duration;

use dayfly_node_api::{
    Changes, ChangesSince, DatabaseMark, EgressDecision, EgressDecisionPage, EnsureDirectory,
    EnsureVolume, ForkChild, ForkOutcome, ForkReport, ForkRequest, GuestPath, IdentityReport,
    LifecycleChange, LifecycleReport, ListChanges, ListDirectory, MoveEntry, NetworkLogPage,
    NodeCall, NodeReply, ReadNetworkLog, RemoveFile, ResourceUse, SetMode, SetNetwork,
    SnapshotRequest, WaitPort,
};
use dayfly_types::exec::WindowSize;
use dayfly_types::file::{ChangeKind, ChangedPath, DirectoryPage};
use dayfly_types::port::Listener;
use dayfly_types::{DiskMib, IdleAction};

use crate::samples::{
    CAPTURE, base, ensure_sandbox, exec, exec_info, full, greeting, guest_path, id, lifecycle,
    network, ordered_template, policy, project, record, report, snapshot, snapshot_report, stat,
    status, template, variant, variant_request, volume, volume_name,
};

fn rules() -> LifecycleReport {
    LifecycleReport {
        lifecycle: lifecycle(),
        expires_in_seconds: Some(1),
        idle_for_seconds: 2,
    }
}

fn about_the_node() -> Vec<(NodeCall, NodeReply)> {
    let identity = IdentityReport {
        incarnation: "a".to_owned(),
        database: Some(mark()),
        accepts_any: true,
        is_empty: true,
    };
    vec![
        (
            NodeCall::Hello { peer: greeting() },
            NodeReply::Hello(greeting()),
        ),
        (NodeCall::Identity {}, NodeReply::Identity(identity)),
        (
            NodeCall::RememberDatabase { database: mark() },
            NodeReply::RememberDatabase(()),
        ),
        (NodeCall::AcceptDatabase {}, NodeReply::AcceptDatabase(())),
        (
            NodeCall::ForgetUnreadable { id: id() },
            NodeReply::ForgetUnreadable(()),
        ),
        (
            NodeCall::Templates {},
            NodeReply::Templates(vec![template()]),
        ),
        (
            NodeCall::FindTemplate { name: base() },
            NodeReply::FindTemplate(template()),
        ),
        (
            NodeCall::EnsureTemplate { name: base() },
            NodeReply::EnsureTemplate(template()),
        ),
        (
            NodeCall::RenewTemplate { name: base() },
            NodeReply::RenewTemplate(template()),
        ),
        (
            NodeCall::OrderTemplate {
                wanted: ordered_template(),
            },
            NodeReply::OrderTemplate(template()),
        ),
        (
            NodeCall::ForgetTemplate { name: base() },
            NodeReply::ForgetTemplate(()),
        ),
        (
            NodeCall::EnsureVariant {
                name: base(),
                wanted: variant_request(),
            },
            NodeReply::EnsureVariant(variant()),
        ),
    ]
}

fn mark() -> DatabaseMark {
    DatabaseMark {
        id: "db".to_owned(),
        epoch: 1,
        changes: 2,
    }
}

fn about_sandboxes() -> Vec<(NodeCall, NodeReply)> {
    let load = ResourceUse {
        id: id(),
        cpu_micros: 1,
        memory_bytes: 2,
        disk_bytes: 3,
        network_in_bytes: 4,
        network_out_bytes: 5,
        machine: "6.7".to_owned(),
    };
    let change = LifecycleChange {
        ttl_seconds: Some(None),
        persistent: Some(true),
        idle_seconds: Some(Some(7)),
        on_timeout: Some(IdleAction::Delete),
    };
    vec![
        (NodeCall::Status {}, NodeReply::Status(status())),
        (
            NodeCall::EnsureSandbox {
                wanted: ensure_sandbox(),
            },
            NodeReply::EnsureSandbox(report()),
        ),
        (
            NodeCall::BootSandbox {
                disk_of: snapshot(),
                wanted: ensure_sandbox(),
            },
            NodeReply::BootSandbox(report()),
        ),
        (
            NodeCall::DeleteSandbox { id: id() },
            NodeReply::DeleteSandbox(()),
        ),
        (NodeCall::Sandbox { id: id() }, NodeReply::Sandbox(report())),
        (NodeCall::Sandboxes {}, NodeReply::Sandboxes(vec![report()])),
        (
            NodeCall::Loads { project: project() },
            NodeReply::Loads(vec![load.clone()]),
        ),
        (NodeCall::AllLoads {}, NodeReply::AllLoads(vec![load])),
        (NodeCall::Pause { id: id() }, NodeReply::Pause(report())),
        (NodeCall::Resume { id: id() }, NodeReply::Resume(report())),
        (
            NodeCall::Hibernate { id: id() },
            NodeReply::Hibernate(report()),
        ),
        (NodeCall::Wake { id: id() }, NodeReply::Wake(report())),
        (
            NodeCall::Rollback {
                id: id(),
                snapshot: snapshot(),
            },
            NodeReply::Rollback(report()),
        ),
        (
            NodeCall::Lifecycle { id: id() },
            NodeReply::Lifecycle(rules()),
        ),
        (
            NodeCall::SetLifecycle { id: id(), change },
            NodeReply::SetLifecycle(rules()),
        ),
    ]
}

fn about_execs() -> Vec<(NodeCall, NodeReply)> {
    let size = WindowSize {
        columns: 80,
        rows: 24,
    };
    vec![
        (
            NodeCall::DescribeExec {
                id: id(),
                exec: exec(),
            },
            NodeReply::DescribeExec(exec_info()),
        ),
        (
            NodeCall::ListExecs { id: id() },
            NodeReply::ListExecs(vec![exec_info()]),
        ),
        (
            NodeCall::SignalExec {
                id: id(),
                exec: exec(),
                signal: 15,
            },
            NodeReply::SignalExec(()),
        ),
        (
            NodeCall::ResizeExec {
                id: id(),
                exec: exec(),
                size,
            },
            NodeReply::ResizeExec(()),
        ),
        (
            NodeCall::ForgetExec {
                id: id(),
                exec: exec(),
            },
            NodeReply::ForgetExec(()),
        ),
    ]
}

fn about_snapshots() -> Vec<(NodeCall, NodeReply)> {
    let request = SnapshotRequest {
        id: snapshot(),
        name: Some("é".to_owned()),
        retain_seconds: Some(60),
    };
    let fork = ForkRequest {
        snapshot: snapshot(),
        children: vec![ensure_sandbox()],
        all_or_nothing: true,
    };
    let child = |outcome| ForkChild { id: id(), outcome };
    let forked = ForkReport {
        capture: CAPTURE,
        children: vec![
            child(ForkOutcome::Made(Box::new(report()))),
            child(ForkOutcome::Refused(full())),
        ],
        renewed: vec!["machine_id".to_owned()],
        not_renewed: vec!["process_ids".to_owned()],
    };
    vec![
        (
            NodeCall::Snapshot { id: id(), request },
            NodeReply::Snapshot(snapshot_report()),
        ),
        (
            NodeCall::Snapshots {},
            NodeReply::Snapshots(vec![snapshot_report()]),
        ),
        (
            NodeCall::SnapshotsOf { project: project() },
            NodeReply::SnapshotsOf(vec![snapshot_report()]),
        ),
        (
            NodeCall::FindSnapshot { id: snapshot() },
            NodeReply::FindSnapshot(snapshot_report()),
        ),
        (
            NodeCall::DeleteSnapshot { id: snapshot() },
            NodeReply::DeleteSnapshot(()),
        ),
        (
            NodeCall::Fork {
                id: id(),
                request: fork,
            },
            NodeReply::Fork(forked),
        ),
    ]
}

fn about_volumes() -> Vec<(NodeCall, NodeReply)> {
    let wanted = EnsureVolume {
        project: project(),
        name: volume_name(),
        size: DiskMib::new(64).unwrap(),
    };
    vec![
        (
            NodeCall::EnsureVolume { wanted },
            NodeReply::EnsureVolume(volume()),
        ),
        (NodeCall::Volumes {}, NodeReply::Volumes(vec![volume()])),
        (
            NodeCall::VolumesOf { project: project() },
            NodeReply::VolumesOf(vec![volume()]),
        ),
        (
            NodeCall::FindVolume {
                project: project(),
                name: volume_name(),
            },
            NodeReply::FindVolume(volume()),
        ),
        (
            NodeCall::DeleteVolume {
                project: project(),
                name: volume_name(),
            },
            NodeReply::DeleteVolume(()),
        ),
    ]
}

fn about_the_network() -> Vec<(NodeCall, NodeReply)> {
    let wanted = SetNetwork {
        epoch: 2,
        policy: policy(),
    };
    let request = ReadNetworkLog {
        after: 40,
        max: 9,
        wait: Duration::from_millis(1500),
    };
    let log = NetworkLogPage {
        records: vec![record()],
        oldest: 9,
        latest: 1500,
        lost: 7,
    };
    let decision = EgressDecision {
        number: 41,
        project: project(),
        sandbox: id(),
        record: record(),
    };
    let decisions = EgressDecisionPage {
        series: "a".to_owned(),
        decisions: vec![decision],
        through: 42,
    };
    let listener = Listener {
        port: 8080,
        address: "127.0.0.1".to_owned(),
    };
    vec![
        (
            NodeCall::SetNetwork { id: id(), wanted },
            NodeReply::SetNetwork(network()),
        ),
        (
            NodeCall::Network { id: id() },
            NodeReply::Network(network()),
        ),
        (
            NodeCall::NetworkLog { id: id(), request },
            NodeReply::NetworkLog(log),
        ),
        (
            NodeCall::EgressDecisions { request },
            NodeReply::EgressDecisions(decisions),
        ),
        (
            NodeCall::Ports { id: id() },
            NodeReply::Ports(vec![listener.clone()]),
        ),
        (
            NodeCall::WaitPort {
                id: id(),
                request: WaitPort {
                    port: 8080,
                    limit: Duration::from_secs(60),
                },
            },
            NodeReply::WaitPort(listener),
        ),
    ]
}

fn about_files() -> Vec<(NodeCall, NodeReply)> {
    let GuestPath { path, user } = guest_path();
    let list = ListDirectory {
        path: path.clone(),
        user,
        after: Some("a/b".to_owned()),
        limit: 7,
        depth: 3,
    };
    let page = DirectoryPage {
        entries: vec![stat()],
        has_more: true,
    };
    let list_changes = ListChanges {
        path,
        since: ChangesSince::Snapshot(snapshot()),
        limit: 10,
    };
    let changed = ChangedPath {
        path: "/é".to_owned(),
        kind: ChangeKind::Added,
        is_dir: true,
        size: 1,
        mtime: -1,
    };
    let changes = Changes {
        entries: vec![changed],
        truncated: true,
    };
    vec![
        (
            NodeCall::ListDirectory {
                id: id(),
                request: list,
            },
            NodeReply::ListDirectory(page),
        ),
        (
            NodeCall::Stat {
                id: id(),
                request: guest_path(),
            },
            NodeReply::Stat(stat()),
        ),
        (
            NodeCall::ListChanges {
                id: id(),
                request: list_changes,
            },
            NodeReply::ListChanges(changes),
        ),
    ]
}

fn about_changes_of_files() -> Vec<(NodeCall, NodeReply)> {
    let GuestPath { path, user } = guest_path();
    let make = EnsureDirectory {
        path: path.clone(),
        user: user.clone(),
        mode: Some(0o700),
        parents: true,
    };
    let rename = MoveEntry {
        from: path.clone(),
        to: "/b".to_owned(),
        user: user.clone(),
        replace: true,
    };
    let mode = SetMode {
        path: path.clone(),
        mode: 0o4755,
        user: user.clone(),
    };
    let remove = RemoveFile {
        path,
        user,
        recursive: true,
    };
    vec![
        (
            NodeCall::MakeDirectory {
                id: id(),
                request: make,
            },
            NodeReply::MakeDirectory(()),
        ),
        (
            NodeCall::MoveFile {
                id: id(),
                request: rename,
            },
            NodeReply::MoveFile(()),
        ),
        (
            NodeCall::ChangeMode {
                id: id(),
                request: mode,
            },
            NodeReply::ChangeMode(()),
        ),
        (
            NodeCall::RemoveFile {
                id: id(),
                request: remove,
            },
            NodeReply::RemoveFile(()),
        ),
    ]
}

pub(crate) fn calls() -> Vec<(NodeCall, NodeReply)> {
    let mut all = about_the_node();
    all.extend(about_sandboxes());
    all.extend(about_execs());
    all.extend(about_snapshots());
    all.extend(about_volumes());
    all.extend(about_the_network());
    all.extend(about_files());
    all.extend(about_changes_of_files());
    all
}
