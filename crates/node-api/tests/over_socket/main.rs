//! The client and the server of the contract, with a unix socket between them.
#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod files;
mod identity;
mod ingress;
mod network;
mod small_files;
mod small_node;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use dayfly_node_api::{
    AttachExec, EnsureExec, EnsureSandbox, EnsureVolume, ForkOutcome, ForkRequest, LifecycleChange,
    NodeApi, NodeClient, NodeError, NodeFiles, SnapshotRequest, StdinWrite, server, socket,
};
use dayfly_types::egress::EgressPolicy;
use dayfly_types::exec::{ExecCommand, ExecEvent, ExecSpec, OutputGap, OutputStream};
use dayfly_types::{
    DiskMib, ErrorCode, ExecId, Lifecycle, OnTimeout, SandboxId, SandboxState, SnapshotId,
    TemplateName, VolumeName,
};
use futures::StreamExt;
use small_node::{CAPTURE, SmallNode, end, full, mount, project, report};

pub(crate) struct World {
    node: Arc<SmallNode>,
    pub(crate) client: NodeClient,
    pub(crate) id: SandboxId,
    _directory: tempfile::TempDir,
}

pub(crate) fn start() -> World {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node.sock");
    let node = Arc::new(SmallNode::default());
    let listener = socket::listen(&path).unwrap();
    tokio::spawn(server::serve(
        listener,
        Arc::clone(&node) as _,
        std::future::pending(),
    ));
    let id = SandboxId::parse("sb-local-x").unwrap();
    World {
        node,
        client: NodeClient::new(&path),
        id,
        _directory: directory,
    }
}

fn command(stdin: &[u8]) -> EnsureExec {
    let id = ExecId::parse("ex-1").unwrap();
    let spec = ExecSpec::new(id, ExecCommand::Shell("cat".to_owned()));
    EnsureExec {
        input: Some(stdin.to_vec()),
        ..EnsureExec::new(spec)
    }
}

#[tokio::test]
async fn a_refusal_arrives_with_all_its_parts() {
    let world = start();
    assert_eq!(world.client.status().await, Err(full()));
    let mut watch = world.client.watch().await.unwrap();
    assert_eq!(watch.next().await, Some(Err(full())));
    assert_eq!(watch.next().await, None);
    let path = dayfly_node_api::GuestPath {
        path: "/é".to_owned(),
        user: None,
    };
    let stat = world.client.stat(&world.id, path).await;
    assert_eq!(stat, Err(NodeError::not_found("no /é")));
}

#[tokio::test]
async fn nobody_at_the_socket_is_unavailable() {
    let client = NodeClient::new(Path::new("/nonexistent/node.sock"));
    let error = client.templates().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NodeUnavailable);
    assert!(error.retry_after_ms.is_some());
}

#[tokio::test]
async fn an_exec_carries_bytes_and_its_end() {
    let world = start();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let mut events = world.client.exec(&world.id, command(&bytes)).await.unwrap();
    let mut stdout = Vec::new();
    let last = loop {
        match events.next().await.unwrap().unwrap() {
            ExecEvent::Stdout(piece) => stdout.extend_from_slice(&piece),
            ExecEvent::Stderr(piece) => assert!(piece.is_empty()),
            ExecEvent::Gap(gap) => panic!("{gap:?}"),
            ExecEvent::Exited(exit) => break exit,
        }
    };
    assert!(stdout == bytes);
    assert_eq!(last, end());
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn execs_are_described_attached_to_and_talked_to() {
    let world = start();
    let exec = ExecId::parse("ex-1").unwrap();
    let request = AttachExec {
        exec: exec.clone(),
        stdout_offset: Some(77),
        stderr_offset: None,
    };
    let (report, events) = world.client.attach_exec(&world.id, request).await.unwrap();
    let described = world.client.describe_exec(&world.id, &exec).await.unwrap();
    assert_eq!(report, described);
    let gap = ExecEvent::Gap(OutputGap {
        stream: OutputStream::Stdout,
        bytes: 77,
    });
    let seen: Vec<_> = events.collect().await;
    assert_eq!(seen, [Ok(gap), Ok(ExecEvent::Exited(end()))]);
    let signal = async |number| world.client.signal_exec(&world.id, &exec, number).await;
    assert_eq!((signal(15).await, signal(9).await), (Ok(()), Err(full())));
    let write = StdinWrite {
        exec,
        offset: Some(4),
        is_last: true,
    };
    let pieces = [Ok(Bytes::from_static(b"abc")), Ok(Bytes::from_static(b"d"))];
    let content = futures::stream::iter(pieces).boxed();
    let taken = world.client.write_stdin(&world.id, write, content).await;
    assert_eq!(taken, Ok(8));
}

#[tokio::test]
async fn lines_of_a_context_keep_their_ends() {
    let world = start();
    let request = Bytes::from_static(b"{}");
    let lines = world.client.context(&world.id, request).await.unwrap();
    let lines: Vec<_> = lines.map(|line| line.unwrap().len()).collect().await;
    assert_eq!(lines, [200_000, 0, 2]);
}

#[tokio::test]
async fn a_stream_that_is_not_read_stands_still() {
    let world = start();
    let mut events = world.client.exec(&world.id, command(b"")).await.unwrap();
    assert!(events.next().await.is_some());
    let mut before = 0;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = world.node.pulled.load(Ordering::SeqCst);
        if now == before {
            break;
        }
        before = now;
    }
    assert!(
        before * (64 << 10) < 1 << 20,
        "{before} pieces are in flight"
    );
}

#[tokio::test]
async fn every_change_of_a_state_arrives_with_its_report() {
    let world = start();
    let (client, id) = (&world.client, &world.id);
    let expect = |state| Ok(report(id, state));
    assert_eq!(client.pause(id).await, expect(SandboxState::Paused));
    assert_eq!(client.resume(id).await, expect(SandboxState::Running));
    assert_eq!(client.hibernate(id).await, expect(SandboxState::Hibernated));
    assert_eq!(client.wake(id).await, expect(SandboxState::Waking));
    let snapshot = SnapshotId::parse("snap-1").unwrap();
    let rolled = client.rollback(id, &snapshot).await.unwrap();
    assert_eq!(rolled.from_snapshot, Some(snapshot));
}

#[tokio::test]
async fn a_lifecycle_change_keeps_absent_null_and_number_apart() {
    let world = start();
    assert_eq!(world.client.lifecycle(&world.id).await, Err(full()));
    for (asked, answered) in [(None, 0), (Some(None), 1), (Some(Some(7)), 8)] {
        let change = LifecycleChange {
            ttl_seconds: asked,
            idle_seconds: asked,
            persistent: Some(true),
            on_timeout: Some(OnTimeout::Hibernate),
        };
        let report = world.client.set_lifecycle(&world.id, change).await.unwrap();
        assert_eq!(report.lifecycle.ttl_seconds, Some(answered));
        assert_eq!(report.lifecycle.idle_seconds, asked.flatten());
        assert!(report.lifecycle.persistent);
        assert_eq!(report.lifecycle.on_timeout, OnTimeout::Hibernate);
    }
}

#[tokio::test]
async fn snapshots_and_volumes_arrive_whole_and_so_do_their_refusals() {
    let world = start();
    let id = SnapshotId::parse("snap-1").unwrap();
    let request = SnapshotRequest {
        id: id.clone(),
        name: Some("é".to_owned()),
        retain_seconds: Some(60),
    };
    let taken = world.client.snapshot(&world.id, request).await.unwrap();
    assert_eq!((&taken.id, &taken.sandbox), (&id, &world.id));
    assert_eq!(
        (taken.name.as_deref(), taken.expires_at),
        (Some("é"), Some(60))
    );
    assert_eq!(taken.capture, CAPTURE);
    assert_eq!(world.client.snapshots().await, Ok(Vec::new()));
    let absent = |what: &str| NodeError::not_found(what);
    let client = &world.client;
    assert_eq!(client.find_snapshot(&id).await, Err(absent("snap-1")));
    assert_eq!(
        client.snapshots_of(&project()).await,
        Err(absent("default"))
    );
    let in_use = NodeError::new(ErrorCode::SnapshotInUse, "snap-1");
    assert_eq!(world.client.delete_snapshot(&id).await, Err(in_use));

    let name = VolumeName::parse("data").unwrap();
    let wanted = EnsureVolume {
        project: project(),
        name: name.clone(),
        size: DiskMib::new(64).unwrap(),
    };
    let volume = world.client.ensure_volume(wanted).await.unwrap();
    assert_eq!(
        (volume.size.get(), volume.fence, volume.readers.len()),
        (64, 3, 1)
    );
    assert_eq!(world.client.volumes().await, Ok(Vec::new()));
    let found = client.find_volume(&project(), &name).await;
    assert_eq!(found, Err(absent("default data")));
    assert_eq!(client.volumes_of(&project()).await, Err(absent("default")));
    let template = TemplateName::parse("base").unwrap();
    assert_eq!(client.find_template(&template).await, Err(absent("base")));
    let busy = NodeError::new(ErrorCode::VolumeBusy, "default data");
    assert_eq!(
        world.client.delete_volume(&project(), &name).await,
        Err(busy)
    );
}

#[tokio::test]
async fn a_fork_answers_for_each_child_in_order() {
    let world = start();
    let child = |id: &str| EnsureSandbox {
        id: SandboxId::parse(id).unwrap(),
        project: project(),
        template: TemplateName::parse("base").unwrap(),
        from_snapshot: None,
        lifecycle: Lifecycle::default(),
        cpu: None,
        disk: None,
        volumes: vec![mount()],
        reseed_user_space: true,
        egress: EgressPolicy::deny(),
        egress_epoch: 1,
        metadata: [("team".to_owned(), "red".to_owned())].into(),
        created_at_ms: Some(5),
    };
    let request = ForkRequest {
        snapshot: SnapshotId::parse("snap-1").unwrap(),
        children: vec![child("sb-b"), child("sb-a")],
        all_or_nothing: true,
    };
    let forked = world.client.fork(&world.id, request).await.unwrap();
    let ids: Vec<&str> = forked
        .children
        .iter()
        .map(|child| child.id.as_str())
        .collect();
    assert_eq!(ids, ["sb-b", "sb-a"]);
    let made = report(&world.id, SandboxState::Running);
    assert_eq!(
        forked.children[0].outcome,
        ForkOutcome::Made(Box::new(made))
    );
    assert_eq!(forked.children[1].outcome, ForkOutcome::Refused(full()));
    assert_eq!(
        (forked.renewed, forked.not_renewed),
        (vec!["snap-1".to_owned()], vec!["true".to_owned()])
    );
    assert_eq!(forked.capture, CAPTURE);
}
