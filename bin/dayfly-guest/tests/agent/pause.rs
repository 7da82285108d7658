//! A guest that is captured notices nothing but a pause; its copies wait for their identity.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::support::{
    Guest, assert_refused, collect, eventually, identity, pattern, run, shell, within,
};
use dayfly_guest_client::{
    AgentClient, AttachSpec, DiskMount, ExecSession, QuiesceSpec, ReadRange, WriteSpec,
};
use dayfly_guest_proto::{GuestErrorCode, GuestState, IdentityEvent};
use dayfly_types::exec::ExecEvent;
use dayfly_types::exec::StdinMode;

const NONCE: [u8; 32] = [0x5C; 32];
const DAY: Duration = Duration::from_secs(24 * 3600);

fn with_lease(lease: Duration) -> QuiesceSpec {
    QuiesceSpec {
        lease: Some(lease),
        mark: Some(NONCE),
    }
}

async fn state(client: &AgentClient) -> GuestState {
    client.status().await.unwrap().state
}

/// A process that never ends by itself, and is known to be on its way.
async fn ticker(client: &AgentClient) -> ExecSession {
    let spec = shell("while sleep 0.01; do echo tick; done");
    let mut session = client.exec(spec).await.unwrap();
    within(session.next()).await.unwrap().unwrap();
    session
}

#[tokio::test]
async fn streams_lose_no_byte_over_a_quiesce_and_a_thaw() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut spec = shell("cat");
    spec.stdin = StdinMode::Piped;
    let session = client.exec(spec).await.unwrap();
    let (input, bytes) = (session.input(), pattern(6 << 20));
    let sent = bytes.clone();
    let writer = tokio::spawn(async move {
        for piece in sent.chunks(100_000) {
            input.write_stdin(piece.to_vec().into()).await.unwrap();
        }
        input.close_stdin().await.unwrap();
    });
    let pauses = tokio::spawn(async move {
        for _ in 0..5 {
            client.quiesce(QuiesceSpec::default()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            client.thaw().await.unwrap();
        }
    });
    let output = collect(session).await;
    assert!(output.stdout == bytes, "bytes differ");
    within(writer).await.unwrap();
    within(pauses).await.unwrap();
}

#[tokio::test]
async fn files_on_their_way_survive_a_quiesce_and_a_thaw() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file").display().to_string();
    let options = WriteSpec {
        user: Some("root".to_owned()),
        ..WriteSpec::default()
    };
    let bytes = pattern(2 << 20);
    let mut writing = client.write_file(&path, options).await.unwrap();
    writing.write(bytes.slice(..1 << 20)).await.unwrap();
    client.quiesce(QuiesceSpec::default()).await.unwrap();
    client.thaw().await.unwrap();
    writing.write(bytes.slice(1 << 20..)).await.unwrap();
    writing.finish().await.unwrap();
    let mut reading = client
        .read_file(&path, Some("root"), ReadRange::default())
        .await
        .unwrap();
    let mut seen = within(reading.next()).await.unwrap().unwrap().to_vec();
    client.quiesce(QuiesceSpec::default()).await.unwrap();
    client.thaw().await.unwrap();
    while let Some(more) = within(reading.next()).await.unwrap() {
        seen.extend_from_slice(&more);
    }
    assert!(seen == bytes, "bytes differ");
}

#[tokio::test]
async fn calls_of_a_quiesced_guest_wait_for_the_thaw_and_keep_their_order() {
    let guest = Guest::start();
    let client = guest.connect().await;
    client.quiesce(QuiesceSpec::default()).await.unwrap();
    client.quiesce(QuiesceSpec::default()).await.unwrap();
    assert_eq!(state(&client).await, GuestState::Quiesced);
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let mut waiting = Vec::new();
    for number in 0..3 {
        let line = format!("echo {number} >> {}; echo {number}", log.display());
        let client = client.clone();
        waiting.push(tokio::spawn(
            async move { run(&client, shell(&line)).await },
        ));
        tokio::task::yield_now().await;
    }
    let root = || Some("root");
    let stat = tokio::spawn({
        let client = client.clone();
        async move { client.stat("/", root()).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!stat.is_finished() && waiting.iter().all(|call| !call.is_finished()));
    assert!(!log.exists(), "nothing runs in a quiesced guest");
    assert_eq!(client.activity().await.unwrap().execs, 0);
    client.thaw().await.unwrap();
    for (number, call) in waiting.into_iter().enumerate() {
        let output = within(call).await.unwrap();
        assert_eq!(output.stdout_text(), format!("{number}\n"));
    }
    assert!(within(stat).await.unwrap().unwrap().is_dir);
    assert_eq!(fs::read_to_string(log).unwrap().lines().count(), 3);
}

#[tokio::test]
async fn pause_does_not_count_against_the_timeout_of_an_exec() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut spec = shell("sleep 1.2; echo done");
    spec.timeout_ms = Some(1_000);
    let session = client.exec(spec).await.unwrap();
    client.quiesce(QuiesceSpec::default()).await.unwrap();
    // Processes of this machine are not frozen, so this one ends after its deadline would have
    // been, in the pause.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    client.thaw().await.unwrap();
    assert_eq!(collect(session).await.stdout_text(), "done\n");
    let mut spec = shell("sleep 1000");
    spec.timeout_ms = Some(100);
    assert_eq!(run(&client, spec).await.exit.code, 137);
}

#[tokio::test]
async fn new_conversation_with_a_quiesced_guest_needs_an_identity_and_kills_nothing() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let session = ticker(&client).await;
    let pid = session.pid();
    client.quiesce(with_lease(DAY)).await.unwrap();
    drop((session, client));
    let client = guest.connect().await;
    assert_eq!(state(&client).await, GuestState::Quarantined);
    assert_refused(client.thaw().await, GuestErrorCode::WrongState);
    client.quiesce(QuiesceSpec::default()).await.unwrap();
    assert_refused(client.thaw().await, GuestErrorCode::WrongState);
    assert_refused(client.exec(shell("true")).await, GuestErrorCode::WrongState);
    client.identify(identity()).await.unwrap();
    assert_eq!(state(&client).await, GuestState::Quarantined);
    assert!(Guest::is_alive(pid));
    assert_eq!(client.activity().await.unwrap().execs, 1);
    client.thaw().await.unwrap();
    assert_eq!(state(&client).await, GuestState::Running);
    assert!(Guest::is_alive(pid));
    run(&client, shell(&format!("kill {pid}"))).await;
    eventually(|| !Guest::is_alive(pid)).await;
}

#[tokio::test]
async fn each_conversation_in_quarantine_needs_its_own_identity() {
    let guest = Guest::start();
    let first = guest.connect().await;
    first.quiesce(QuiesceSpec::default()).await.unwrap();
    drop(first);
    let second = guest.connect().await;
    second.identify(identity()).await.unwrap();
    drop(second);
    let third = guest.connect().await;
    assert_refused(third.thaw().await, GuestErrorCode::WrongState);
}

#[tokio::test]
async fn execs_of_a_copy_are_read_on_after_its_identity_without_a_lost_byte() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let spec = shell("for i in $(seq 2000); do echo line $i; done; exit 3");
    let id = spec.exec_id.clone();
    let mut session = client.exec(spec).await.unwrap();
    let Some(ExecEvent::Stdout(first)) = within(session.next()).await.unwrap() else {
        panic!("no output");
    };
    let mut seen = first.to_vec();
    client.quiesce(with_lease(DAY)).await.unwrap();
    drop((session, client));
    let client = guest.connect().await;
    assert_eq!(state(&client).await, GuestState::Quarantined);
    client.identify(identity()).await.unwrap();
    client.thaw().await.unwrap();
    let from = AttachSpec {
        stdout: Some(seen.len() as u64),
        ..AttachSpec::from_start()
    };
    let (_, session) = client.attach_exec(&id, from).await.unwrap();
    let rest = collect(session).await;
    seen.extend_from_slice(&rest.stdout);
    let expected: String = (1..=2000).map(|i| format!("line {i}\n")).collect();
    assert_eq!(String::from_utf8(seen).unwrap(), expected);
    assert_eq!(rest.exit.code, 3);
}

#[tokio::test]
async fn guest_that_nobody_thaws_goes_on_when_its_lease_ends() {
    let guest = Guest::start();
    let client = guest.connect().await;
    client
        .quiesce(with_lease(Duration::from_millis(300)))
        .await
        .unwrap();
    assert_eq!(state(&client).await, GuestState::Quiesced);
    // The call waits for the thaw, which the lease is.
    let output = run(&client, shell("echo awake")).await;
    assert_eq!(output.stdout_text(), "awake\n");
    assert_eq!(state(&client).await, GuestState::Running);
    client.thaw().await.unwrap();
}

#[tokio::test]
async fn guest_whose_host_died_in_a_capture_goes_on_when_its_lease_ends() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let session = ticker(&client).await;
    let pid = session.pid();
    client
        .quiesce(with_lease(Duration::from_millis(300)))
        .await
        .unwrap();
    drop((session, client));
    let next = guest.connect().await;
    assert_eq!(state(&next).await, GuestState::Quarantined);
    let end = tokio::time::Instant::now() + Duration::from_secs(10);
    while state(&next).await != GuestState::Running {
        assert!(tokio::time::Instant::now() < end, "the lease did not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(Guest::is_alive(pid));
    run(&next, shell(&format!("kill {pid}"))).await;
    eventually(|| !Guest::is_alive(pid)).await;
}

#[tokio::test]
async fn lease_without_a_mark_is_none() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let spec = QuiesceSpec {
        lease: Some(Duration::from_millis(50)),
        mark: None,
    };
    client.quiesce(spec).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(state(&client).await, GuestState::Quiesced);
}

#[tokio::test]
async fn copy_stays_in_quarantine_when_its_lease_ends() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let lease = Duration::from_millis(500);
    client.quiesce(with_lease(lease)).await.unwrap();
    guest.mark_as_copy(&NONCE);
    drop(client);
    let client = guest.connect().await;
    tokio::time::sleep(2 * lease).await;
    assert_eq!(state(&client).await, GuestState::Quarantined);
    assert_refused(client.thaw().await, GuestErrorCode::WrongState);
    client.identify(identity()).await.unwrap();
    client.thaw().await.unwrap();
    // The next capture of what was a copy is one of a guest of its own.
    client.quiesce(with_lease(lease)).await.unwrap();
    assert_eq!(run(&client, shell("echo own")).await.stdout_text(), "own\n");
}

fn put_hook(directory: &Path, name: &str, text: &str) {
    let hooks = directory.join("hooks.d");
    fs::create_dir_all(&hooks).unwrap();
    let path = hooks.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn hooks_run_in_order_with_their_environment_before_the_answer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let log = path.join("log");
    let say = format!(
        "echo $0 $DAYFLY_EVENT $DAYFLY_SANDBOX_ID $DAYFLY_RESEED >> {}",
        log.display()
    );
    put_hook(path, "20-second", &format!("{say}; exit 7"));
    put_hook(path, "10-first", &say);
    let guest = Guest::start_in(path);
    let client = guest.connect().await;
    let mut child = identity();
    child.event = Some(IdentityEvent::Fork);
    child.reseed_user_space = true;
    let answer = client.identify(child).await.unwrap();
    let hooks: Vec<_> = answer
        .hooks
        .iter()
        .map(|hook| (hook.name.as_str(), hook.exit_code, hook.timed_out))
        .collect();
    assert_eq!(
        hooks,
        [("10-first", Some(0), false), ("20-second", Some(7), false)]
    );
    let hooks = path.join("hooks.d");
    let expected = format!(
        "{0}/10-first fork sb-local-0123456789abcdefghjkmnpqrs 1\n\
         {0}/20-second fork sb-local-0123456789abcdefghjkmnpqrs 1\n",
        hooks.display()
    );
    assert_eq!(fs::read_to_string(&log).unwrap(), expected);
    // One hook failed, so nobody knows what programs still share.
    let not_renewed = |words: &[String]| words.iter().any(|word| word == "user_space_randomness");
    assert!(not_renewed(&answer.not_renewed));
    fs::remove_file(hooks.join("20-second")).unwrap();
    let mut child = identity();
    child.reseed_user_space = true;
    let answer = client.identify(child).await.unwrap();
    assert!(not_renewed(&answer.renewed) && !not_renewed(&answer.not_renewed));
}

#[tokio::test]
async fn guest_without_hooks_says_what_it_did_not_renew() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let answer = client.identify(identity()).await.unwrap();
    assert_eq!(answer.hooks, []);
    for word in ["user_space_randomness", "open_connections", "process_ids"] {
        assert!(answer.not_renewed.iter().any(|other| other == word));
    }
}

#[tokio::test]
async fn activity_tells_of_execs_and_of_the_busy_file() {
    let directory = tempfile::tempdir().unwrap();
    let guest = Guest::start_in(directory.path());
    let client = guest.connect().await;
    let idle = client.activity().await.unwrap();
    assert_eq!((idle.execs, idle.busy_ms), (0, 0));
    let session = ticker(&client).await;
    let busy = directory.path().join("busy");
    run(&client, shell(&format!("echo 60 > {}", busy.display()))).await;
    let activity = client.activity().await.unwrap();
    assert_eq!(activity.execs, 1);
    assert!(
        (30_000..=60_000).contains(&activity.busy_ms),
        "{activity:?}"
    );
    session.signal(9).await.unwrap();
    collect(session).await;
    fs::write(busy, "0").unwrap();
    let idle = client.activity().await.unwrap();
    assert_eq!((idle.execs, idle.busy_ms), (0, 0));
}

#[tokio::test]
async fn agent_outside_a_guest_leaves_disks_alone() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let volume = DiskMount {
        serial: "spare0".to_owned(),
        path: "/volumes/a".to_owned(),
        read_only: false,
        expect_bytes: None,
    };
    assert_refused(
        client.mount_volume(volume).await,
        GuestErrorCode::Unsupported,
    );
    assert_refused(
        client.unmount_volume("/volumes/a").await,
        GuestErrorCode::Unsupported,
    );
    assert_refused(client.grow_disk(1).await, GuestErrorCode::Unsupported);
}
