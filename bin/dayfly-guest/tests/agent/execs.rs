//! Execs by their id: once each, a few at a time, and gone when told so.

use crate::support::{
    Gate, Guest, argv, assert_refused, collect, eventually, new_id, pattern, printed, run, shell,
    within,
};
use dayfly_guest_client::{AgentClient, AttachSpec, CallError};
use dayfly_guest_proto::GuestErrorCode;
use dayfly_types::exec::{ExecEnd, ExecEvent, ExecSpec};
use dayfly_types::exec::{ExecLimits, ExitReason, StdinMode, WindowSize};
use dayfly_types::limits::{EXEC_READERS_MAX, EXECS_KEPT_MAX, EXECS_MAX};

#[tokio::test]
async fn same_words_under_one_id_run_once() {
    let guest = Guest::start();
    let directory = tempfile::tempdir().unwrap();
    let count = directory.path().join("count");
    let gate = Gate::new();
    let line = format!("echo run >> {}; {}; echo out", count.display(), gate.wait());
    let spec = shell(&line);
    let client = guest.connect().await;
    let first = client.exec(spec.clone()).await.unwrap();
    let second = client.exec(spec.clone()).await.unwrap();
    assert_eq!(first.pid(), second.pid());
    drop((first, second, client));
    let client = guest.connect().await;
    let third = client.exec(spec.clone()).await.unwrap();
    let mut other = spec.clone();
    other.cwd = Some("/".to_owned());
    assert_refused(client.exec(other).await, GuestErrorCode::Exists);
    gate.open();
    assert_eq!(collect(third).await.stdout_text(), "out\n");
    assert_eq!(run(&client, spec).await.stdout_text(), "out\n");
    assert_eq!(std::fs::read_to_string(count).unwrap(), "run\n");
}

#[tokio::test]
async fn lists_and_descriptions_tell_what_is_there() {
    let guest = Guest::start();
    let client = guest.connect().await;
    assert_eq!(client.list_execs().await.unwrap(), []);
    let mut hidden = shell("sleep 1000");
    hidden.is_service = true;
    let service = client.exec(hidden.clone()).await.unwrap();
    let ended = argv(&["sh", "-c", "printf abc; printf de >&2; exit 6"]);
    run(&client, ended.clone()).await;
    let mut running = shell("echo \u{1b}[31m; cat; true");
    running.stdin = StdinMode::Piped;
    let session = client.exec(running.clone()).await.unwrap();
    let execs = client.list_execs().await.unwrap();
    let ids: Vec<_> = execs.iter().map(|exec| &exec.exec_id).collect();
    assert_eq!(ids, [&ended.exec_id, &running.exec_id]);
    let (first, second) = (&execs[0], &execs[1]);
    assert_eq!(first.title, "sh -c printf abc; printf de >&2; exit 6");
    assert_eq!((first.user.as_str(), first.is_terminal), ("root", false));
    assert_eq!((first.stdout.end, first.stderr.end), (3, 2));
    assert_eq!(first.exit.as_ref().unwrap().code, 6);
    assert!(!first.takes_stdin && second.takes_stdin);
    assert!(second.exit.is_none() && second.number > first.number);
    assert_eq!(second.title, "echo  [31m; cat; true");
    assert_eq!(second.pid, session.pid());
    assert!(second.started_unix_ms > 1_600_000_000_000);
    // A service is found by who knows it, and keeps no guest awake.
    let info = client.describe_exec(&hidden.exec_id).await.unwrap();
    assert_eq!(info.pid, service.pid());
    assert_eq!(client.activity().await.unwrap().execs, 1);
    let stranger = client.describe_exec(&new_id()).await;
    assert_refused(stranger, GuestErrorCode::NotFound);
}

#[tokio::test]
async fn one_exec_too_many_is_refused_until_another_ends() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut sessions = Vec::new();
    for number in 0..EXECS_MAX {
        let mut spec = argv(&["sleep", "1000"]);
        spec.is_service = number % 2 == 0;
        sessions.push(client.exec(spec).await.unwrap());
    }
    let refused = client.exec(shell("true")).await;
    assert_refused(refused, GuestErrorCode::TooMany);
    let last = sessions.pop().unwrap();
    last.signal(15).await.unwrap();
    assert_eq!(collect(last).await.exit.code, 143);
    assert_eq!(run(&client, shell("exit 2")).await.exit.code, 2);
}

#[tokio::test]
async fn one_reader_too_many_is_refused() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let spec = shell("sleep 1000");
    let id = spec.exec_id.clone();
    let mut readers = vec![client.exec(spec).await.unwrap()];
    while readers.len() < EXEC_READERS_MAX {
        let attached = client.attach_exec(&id, AttachSpec::from_start()).await;
        readers.push(attached.unwrap().1);
    }
    let refused = client.attach_exec(&id, AttachSpec::from_start()).await;
    assert_refused(refused, GuestErrorCode::TooMany);
    readers.pop();
    client
        .attach_exec(&id, AttachSpec::from_start())
        .await
        .unwrap();
}

#[tokio::test]
async fn oldest_ended_execs_make_room() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let first = shell("echo first");
    run(&client, first.clone()).await;
    for _ in 0..EXECS_KEPT_MAX - 1 {
        run(&client, argv(&["true"])).await;
    }
    let (_, kept) = client
        .attach_exec(&first.exec_id, AttachSpec::from_start())
        .await
        .unwrap();
    assert_eq!(collect(kept).await.stdout_text(), "first\n");
    run(&client, argv(&["true"])).await;
    let execs = client.list_execs().await.unwrap();
    assert_eq!(execs.len(), EXECS_KEPT_MAX);
    assert!(execs.iter().all(|exec| exec.exec_id != first.exec_id));
    let gone = client.describe_exec(&first.exec_id).await;
    assert_refused(gone, GuestErrorCode::NotFound);
}

fn log_files(directory: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(directory.join("execs"));
    entries.map_or(0, |entries| entries.count())
}

#[tokio::test]
async fn forgotten_exec_ends_and_takes_its_log_along() {
    let directory = tempfile::tempdir().unwrap();
    let guest = Guest::start_in(directory.path());
    let client = guest.connect().await;
    let file = printed(&pattern(100_000));
    let spec = shell(&format!("cat {}; sleep 1000; true", file.path));
    let id = spec.exec_id.clone();
    let session = client.exec(spec.clone()).await.unwrap();
    let pid = session.pid();
    eventually(|| log_files(directory.path()) == 1).await;
    client.forget_exec(&id).await.unwrap();
    let gone = client.describe_exec(&id).await;
    assert_refused(gone, GuestErrorCode::NotFound);
    assert_eq!(log_files(directory.path()), 0);
    let mut session = session;
    let exit = loop {
        if let ExecEvent::Exited(ExecEnd { exit, .. }) =
            within(session.next()).await.unwrap().unwrap()
        {
            break exit;
        }
    };
    assert_eq!((exit.code, exit.reason), (137, ExitReason::Killed));
    eventually(|| !Guest::is_alive(pid)).await;
    client.forget_exec(&id).await.unwrap();
    assert_eq!(client.list_execs().await.unwrap(), []);
    // The id is free again.
    let again = client.exec(spec).await.unwrap();
    assert_ne!(again.pid(), pid);
    client.forget_exec(&id).await.unwrap();
}

#[tokio::test]
async fn ended_exec_is_forgotten_with_its_log() {
    let directory = tempfile::tempdir().unwrap();
    let guest = Guest::start_in(directory.path());
    let client = guest.connect().await;
    let file = printed(&pattern(100_000));
    let spec = argv(&["cat", &file.path]);
    let id = spec.exec_id.clone();
    run(&client, spec).await;
    assert_eq!(log_files(directory.path()), 1);
    client.forget_exec(&id).await.unwrap();
    assert_eq!(log_files(directory.path()), 0);
    assert_eq!(client.list_execs().await.unwrap(), []);
}

#[tokio::test]
async fn signals_reach_a_process_by_its_id() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let spec = shell("trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.01; done");
    let id = spec.exec_id.clone();
    let mut session = client.exec(spec).await.unwrap();
    within(session.next()).await.unwrap().unwrap();
    drop((session, client));
    let client = guest.connect().await;
    client.signal_exec(&id, 10).await.unwrap();
    let (_, session) = client
        .attach_exec(&id, AttachSpec::from_start())
        .await
        .unwrap();
    let output = collect(session).await;
    assert_eq!(output.stdout_text(), "ready\ncaught\n");
    assert_eq!(output.exit.code, 5);
    for signal in [15, 9] {
        let late = client.signal_exec(&id, signal).await;
        assert_refused(late, GuestErrorCode::NotFound);
    }
    let unknown = client.signal_exec(&new_id(), 15).await;
    assert_refused(unknown, GuestErrorCode::NotFound);
}

async fn attach(client: &AgentClient, spec: &ExecSpec, stdout: u64) -> Result<(), CallError> {
    let from = AttachSpec {
        stdout: Some(stdout),
        stderr: Some(0),
        stdin: false,
    };
    let attached = client.attach_exec(&spec.exec_id, from).await;
    attached.map(drop)
}

#[tokio::test]
async fn offsets_behind_the_end_are_refused_while_it_runs_and_after() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let ended = shell("printf abc");
    run(&client, ended.clone()).await;
    let running = shell("printf abc; sleep 1000");
    let mut session = client.exec(running.clone()).await.unwrap();
    within(session.next()).await.unwrap().unwrap();
    for spec in [ended, running] {
        for offset in [4, 1 << 40, u64::MAX] {
            let refused = attach(&client, &spec, offset).await;
            assert_refused(refused, GuestErrorCode::Invalid);
        }
        attach(&client, &spec, 3).await.unwrap();
    }
}

#[tokio::test]
async fn calls_about_nothing_and_limits_that_cannot_be_kept_are_refused() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let size = WindowSize {
        columns: 80,
        rows: 24,
    };
    let unknown = client.resize_exec(&new_id(), size).await;
    assert_refused(unknown, GuestErrorCode::NotFound);
    let plain = shell("sleep 1000");
    let _session = client.exec(plain.clone()).await.unwrap();
    let no_terminal = client.resize_exec(&plain.exec_id, size).await;
    assert_refused(no_terminal, GuestErrorCode::Invalid);
    let (id, from) = (new_id(), AttachSpec::from_start());
    let unknown = client.attach_exec(&id, from).await;
    assert_refused(unknown, GuestErrorCode::NotFound);
    // This agent has no control groups.
    let mut limited = shell("true");
    limited.limits = ExecLimits {
        processes_max: Some(10),
        ..ExecLimits::default()
    };
    let refused = client.exec(limited).await;
    assert_refused(refused, GuestErrorCode::Unsupported);
}

#[tokio::test]
async fn waiting_for_the_end_needs_no_stream() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let gate = Gate::new();
    let mut spec = shell(&format!("echo much; {}; exit 8", gate.wait()));
    spec.timeout_ms = Some(50_000);
    let id = spec.exec_id.clone();
    drop(client.exec(spec).await.unwrap());
    let nothing = AttachSpec {
        stdout: None,
        stderr: None,
        stdin: false,
    };
    let (_, session) = client.attach_exec(&id, nothing).await.unwrap();
    gate.open();
    let output = collect(session).await;
    assert_eq!((output.exit.code, output.stdout.len()), (8, 0));
}
